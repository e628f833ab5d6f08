"""Which slices are looked into, and what that costs, on a clock that only goes when told to."""

from itertools import pairwise

import pytest

from cagepool.bench.profile.accounts import Calibration, settled
from cagepool.bench.profile.clock import Spot, Stage, StageClock
from cagepool.bench.profile.result import Profile
from cagepool.bench.profile.slices import MOST, Slices
from tests.bench.profile.fake import FakeClock

ROOT = Spot("run", Stage.OTHER)
PART = Spot("part", Stage.STORING)


class Game:
    def __init__(self, now: FakeClock, seconds: float) -> None:
        self.now = now
        self.seconds = seconds

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        self.now.passes(self.seconds)


def sliced(step_s: float, tick: float, slices: int, steps: int = 10) -> tuple[Slices, StageClock]:
    now = FakeClock(tick)
    clock, game = StageClock(now), Game(now, step_s)
    made = Slices(clock, PART)
    made.instruments.watch(clock, game, "step", Stage.STEP)
    with clock.running(ROOT):
        for _ in range(slices):
            made.run(lambda: game.play(steps), lambda: steps)
    return made, clock


def test_the_first_slice_is_looked_into_and_never_two_in_a_row() -> None:
    made, _ = sliced(step_s=1.0, tick=0.0, slices=200)
    looked = [turn.is_seen for turn in made.turns]
    assert looked[0]
    assert (True, True) not in pairwise(looked)
    assert 40 < sum(looked) < 90  # a third on average


def test_little_is_looked_into_where_looking_is_dear() -> None:
    dear, clock = sliced(step_s=1.0, tick=0.1, slices=500, steps=100)
    result = profile_of(dear, clock)
    assert 1 < result.overhead["looked_into"] < 50
    assert result.overhead["slower"] == pytest.approx(0.2, rel=0.01)  # of which little is left
    assert result.overhead["counted"] < 2 * MOST


def test_what_was_not_seen_is_told_from_what_was() -> None:
    made, clock = sliced(step_s=1.0, tick=0.0, slices=50)
    (lane,) = clock.lanes.values()
    stages = settled(lane, made.calibration.cost, made.seen, made.unseen).stages()
    assert stages[Stage.STEP] == pytest.approx(500.0)
    assert stages[Stage.UNSEEN] == 0


def profile_of(made: Slices, clock: StageClock) -> Profile:
    (lane,) = clock.lanes.values()
    return Profile(
        what="step",
        settings={},
        machine={},
        load_after=0.0,
        busy=None,
        steps=1,
        threads={"main": settled(lane, made.calibration.cost, made.seen, made.unseen)},
        turns=made.overhead,
        seen_seconds=made.seen_seconds,
        traffic={},
        notes=(),
    )


def test_overhead_by_turns_is_how_much_slower_it_was_under_watch() -> None:
    made, clock = sliced(step_s=1.0, tick=0.01, slices=300)
    result = profile_of(made, clock)
    # Two readings a step, and two more around each slice of ten steps, watched or not.
    seen, bare = 10 * (1.0 + 2 * 0.01) + 0.03, 10 * 1.0 + 0.03
    assert result.overhead["slower"] == pytest.approx(seen / bare - 1)
    assert result.overhead["seconds_per_watched_call"] == pytest.approx(2 * 0.01)
    extra = (seen - bare) * result.overhead["looked_into"]
    assert result.overhead["by_turns"] == pytest.approx(extra / result.wall_seconds)
    # By count there is also what was done between slices.
    assert result.overhead["by_turns"] <= result.overhead["counted"]
    assert sum(result.stages().values()) == pytest.approx(result.wall_seconds)


def test_nothing_is_said_of_overhead_after_a_single_slice() -> None:
    made, _ = sliced(step_s=1.0, tick=0.01, slices=1)
    assert made.overhead["slower"] is None


def test_calibration_goes_on_while_slices_are_looked_into() -> None:
    now = FakeClock(tick=0.5)
    calibration = Calibration(now)
    now.tick = 0.25
    for _ in range(1000):
        calibration.try_again()
    assert calibration.cost.inside == 0.25
