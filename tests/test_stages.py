"""Profiling stages with a clock that the test moves."""

import threading

import pytest

from cagepool._stages import StageTimes, count_message, record, stage


class FakeClock:
    """A clock that `advance` moves; each reading takes `tick` seconds."""

    def __init__(self, tick: float = 0.0) -> None:
        self.time = 100.0
        self.tick = tick

    def __call__(self) -> float:
        self.time += self.tick
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def step(clock: FakeClock) -> None:
    with stage("env_step"):
        clock.advance(2.0)


def play(clock: FakeClock) -> None:
    with stage("rollout"):
        clock.advance(0.5)
        step(clock)
        clock.advance(0.5)


def test_nested_stages_count_exclusive_time(clock: FakeClock) -> None:
    with record(clock) as recording:
        clock.advance(0.25)
        play(clock)
        step(clock)
    main = recording.threads["main"]
    assert main.by_stage() == {"rollout": 1.0, "env_step": 4.0, "other": 0.25}
    assert main.total == 5.25
    assert main.calls_of("env_step") == 2
    assert recording.entries == 3


def test_a_stage_is_reported_below_the_stage_that_entered_it(clock: FakeClock) -> None:
    with record(clock) as recording:
        play(clock)
        play(clock)
        step(clock)
    assert recording.threads["main"] == StageTimes(
        "other",
        0.0,
        0,
        (
            StageTimes("rollout", 2.0, 2, (StageTimes("env_step", 4.0, 2),)),
            StageTimes("env_step", 2.0, 1),
        ),
    )


def test_a_stage_inside_itself_is_counted_once(clock: FakeClock) -> None:
    with record(clock) as recording, stage("update"):
        clock.advance(1.0)
        with stage("update"):
            clock.advance(2.0)
    assert recording.threads["main"].by_stage() == {"update": 3.0, "other": 0.0}


def fail(clock: FakeClock) -> None:
    with stage("update"):
        clock.advance(1.0)
        raise KeyError


def test_an_exception_leaves_its_stage(clock: FakeClock) -> None:
    with record(clock) as recording:
        with pytest.raises(KeyError):
            fail(clock)
        clock.advance(3.0)
    assert recording.threads["main"].by_stage() == {"update": 1.0, "other": 3.0}


def test_other_threads_are_recorded_beside_the_main_thread(clock: FakeClock) -> None:
    with record(clock) as recording:
        clock.advance(1.0)
        other = threading.Thread(target=step, args=[clock])
        other.start()
        other.join()
        clock.advance(1.0)
    assert recording.threads["main"].by_stage() == {"other": 4.0}
    assert recording.threads["thread 1"].by_stage() == {"env_step": 2.0, "idle": 2.0}


def test_a_stage_that_is_open_at_the_end_is_counted_until_then(clock: FakeClock) -> None:
    with record(clock) as recording:
        opened = stage("update")
        opened.__enter__()
        clock.advance(1.0)
    opened.__exit__(None, None, None)
    assert recording.threads["main"].by_stage() == {"update": 1.0, "other": 0.0}


def test_a_paused_recording_counts_time_as_unsampled(clock: FakeClock) -> None:
    with record(clock) as recording:
        step(clock)
        with recording.pause():
            play(clock)
            count_message(4)
        step(clock)
    assert recording.threads["main"].by_stage() == {"env_step": 4.0, "unsampled": 3.0, "other": 0.0}
    assert recording.messages == 0


def test_every_reading_of_the_clock_is_part_of_the_total() -> None:
    clock = FakeClock(tick=0.125)
    with record(clock) as recording:
        for _ in range(10):
            play(clock)
    assert recording.threads["main"].total == 10 * (3.0 + 4 * 0.125) + 0.125


def test_messages_are_counted_while_recording() -> None:
    count_message(4)
    with record() as recording:
        count_message(8)
        count_message(44)
    count_message(4)
    assert (recording.messages, recording.message_bytes) == (2, 52)


def test_without_a_recording_all_stages_are_one_object() -> None:
    assert stage("update") is stage("env_step")
    with stage("update"), stage("update"):
        pass


def test_a_second_recording_is_refused() -> None:
    with record(), pytest.raises(RuntimeError, match="only one profile"), record():
        pass
    with record():
        pass
