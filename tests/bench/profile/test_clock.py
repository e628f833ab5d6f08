"""Stages that exclude each other, on a clock that only goes when it is told to."""

import threading

import pytest

from cagepool.bench.profile.accounts import CALLS, Calibration, OwnCost, settled
from cagepool.bench.profile.clock import Spot, Stage, StageClock
from cagepool.bench.profile.instruments import Instruments
from tests.bench.profile.fake import FakeClock

ROOT = Spot("run", Stage.OTHER)
SEEN, UNSEEN = Spot("part", Stage.STORING), Spot("part, unseen", Stage.UNSEEN)
FREE = OwnCost(0.0, 0.0)


class Program:
    """Plays for a second, two of which are in an environment, and then learns."""

    def __init__(self, now: FakeClock) -> None:
        self.now = now

    def play(self) -> None:
        self.now.passes(0.5)
        self.step()
        self.now.passes(0.5)

    def step(self) -> str:
        self.now.passes(2.0)
        return "stepped"

    def fail(self) -> None:
        self.now.passes(1.0)
        raise KeyError("as it happens")


def instruments(clock: StageClock, program: Program) -> Instruments:
    found = Instruments()
    found.watch(clock, program, "play", Stage.STORING)
    found.watch(clock, program, "step", Stage.STEP)
    found.watch(clock, program, "fail", Stage.UPDATE)
    return found


def test_a_stage_inside_of_another_stops_it() -> None:
    now = FakeClock()
    clock, program = StageClock(now), Program(now)
    with instruments(clock, program), clock.running(ROOT) as lane:
        now.passes(0.25)
        program.play()
        program.step()
    block = settled(lane, FREE, SEEN, UNSEEN)
    assert block.stages() == {"storing": 1.0, "env step": 4.0, "other": 0.25, "profiler": 0.0}
    assert block.total == 5.25
    assert [(part.label, part.calls) for part in block.parts[:2]] == [
        ("Program.play", 1),
        ("Program.step", 1),
    ]


def test_an_exception_leaves_its_stage() -> None:
    now = FakeClock()
    clock, program = StageClock(now), Program(now)
    with instruments(clock, program), clock.running(ROOT) as lane:
        with pytest.raises(KeyError, match="as it happens"):
            program.fail()
        now.passes(3.0)
    stages = settled(lane, FREE, SEEN, UNSEEN).stages()
    assert (stages[Stage.UPDATE], stages[Stage.OTHER]) == (1.0, 3.0)


def test_what_is_called_for_a_true_state_belongs_to_it() -> None:
    now = FakeClock()
    clock, program = StageClock(now), Program(now)
    watched = Instruments()
    watched.watch(clock, program, "play", Stage.TRUTH)
    watched.watch(clock, program, "step", Stage.WAITING)
    with watched, clock.running(ROOT) as lane:
        program.play()
    stages = settled(lane, FREE, SEEN, UNSEEN).stages()
    assert (stages[Stage.TRUTH], Stage.WAITING in stages) == (3.0, False)


def test_another_thread_has_a_clock_of_its_own_and_is_idle_between_calls() -> None:
    now = FakeClock()
    clock, program = StageClock(now), Program(now)
    with instruments(clock, program), clock.running(ROOT):
        now.passes(1.0)
        other = threading.Thread(target=program.step)
        other.start()
        other.join()
        now.passes(1.0)
    blocks = {name: settled(lane, FREE, SEEN, UNSEEN) for name, lane in clock.lanes.items()}
    assert blocks["thread 1"].stages() == {"env step": 2.0, "idle": 2.0, "profiler": 0.0}
    assert blocks["main"].stages() == {"other": 4.0, "profiler": 0.0}


def test_objects_are_as_before_once_the_instruments_are_off() -> None:
    now = FakeClock()
    clock, program = StageClock(now), Program(now)
    own = program.now = FakeClock()
    found = instruments(clock, program)
    found.put(program, "now", lambda _: now)
    found.put(Program, "fail", lambda _: lambda _self: None)
    method = Program.fail
    with found:
        assert program.now is now
        assert program.step() == "stepped"
    assert vars(program) == {"now": own}
    assert Program.fail is method


def test_a_method_that_is_gone_is_noticed() -> None:
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        Instruments().watch(StageClock(), Program(FakeClock()), "walk", Stage.STEP)


def test_the_cost_of_watching_is_found_and_taken_out() -> None:
    now = FakeClock(tick=0.125)  # that every reading takes
    cost = Calibration(now).cost
    assert cost == OwnCost(0.125, 0.125)
    clock, program = StageClock(now), Program(now)
    with instruments(clock, program), clock.running(ROOT) as lane:
        for _ in range(CALLS):
            program.play()
    stages = settled(lane, cost, SEEN, UNSEEN).stages()
    assert stages[Stage.STEP] == 2.0 * CALLS
    assert stages[Stage.STORING] == 1.0 * CALLS
    assert stages[Stage.OTHER] == 0.125  # the last reading
    assert stages[Stage.PROFILER] == 4 * 0.125 * CALLS


def test_parts_that_were_seen_stand_for_those_that_were_not() -> None:
    now = FakeClock()
    clock, program = StageClock(now), Program(now)
    found = Instruments()
    found.watch(clock, program, "step", Stage.STEP)
    unseen = clock.watched(program.play, UNSEEN)
    with clock.running(ROOT) as lane:
        with found:
            clock.watched(program.play, SEEN)()
        for _ in range(3):
            unseen()
    block = settled(lane, FREE, SEEN, UNSEEN)
    assert block.stages() == {"storing": 4.0, "env step": 8.0, "other": 0.0, "profiler": 0.0}
    assert block.parts[0].calls == 4
