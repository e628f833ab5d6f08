"""Contenders are timed interleaved, each long enough."""

from contextlib import ExitStack

import pytest

from cagepool.bench.measure import (
    Contender,
    Pace,
    measure_groups,
    measure_interleaved,
    time_calls,
)
from cagepool.bench.schema import Measurement, Repetitions


@pytest.fixture(autouse=True)
def _a_steady_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference takes 2 ms a call, and no time at all."""
    steady = Contender(
        name="reference", settings={}, steps_per_call=1, timer=lambda calls: 0.002 * calls
    )
    monkeypatch.setattr("cagepool.bench.measure.reference_workload", lambda: steady)


class FakeClock:
    """Takes a fixed time a call, and writes down who was asked for how many calls."""

    def __init__(self, name: str, seconds: float, log: list[tuple[str, int]]) -> None:
        self.name = name
        self.seconds = seconds
        self.log = log

    def __call__(self, calls: int, /) -> float:
        self.log.append((self.name, calls))
        return calls * self.seconds


def contender(name: str, seconds: float, log: list[tuple[str, int]], steps: int = 1) -> Contender:
    clock = FakeClock(name, seconds, log)
    return Contender(name=name, settings={"games": steps}, steps_per_call=steps, timer=clock)


def repetitions(measurement: Measurement) -> Repetitions:
    return measurement.repetitions


def test_contenders_take_turns_after_all_have_warmed_up() -> None:
    log: list[tuple[str, int]] = []
    pair = [contender("a", 0.1, log), contender("b", 0.05, log)]

    measure_interleaved(pair, Pace(repetitions=3, seconds=0.2), lambda: None)

    turns = 2 * 3
    assert log[-turns:] == [("a", 2), ("b", 4)] * 3
    assert [name for name, _ in log[:-turns]] == sorted(name for name, _ in log[:-turns])


@pytest.mark.parametrize(
    ("seconds", "calls"),
    [(1e-7, 2_000_000), (0.001, 200), (0.15, 1), (0.2, 1), (7.0, 1)],
)
def test_a_turn_is_about_as_long_as_it_should_be(seconds: float, calls: int) -> None:
    log: list[tuple[str, int]] = []

    (result,) = measure_interleaved([contender("a", seconds, log)], Pace(seconds=0.2), lambda: None)

    assert repetitions(result).calls == calls
    assert {asked for _, asked in log[-15:]} == {calls}
    assert repetitions(result).seconds == pytest.approx([calls * seconds] * 15)  # six digits


def test_a_clock_too_coarse_to_see_a_call_is_asked_for_more() -> None:
    def coarse(calls: int, /) -> float:
        return calls // 1000 * 0.01

    blurred = Contender(name="a", settings={}, steps_per_call=1, timer=coarse)
    (result,) = measure_interleaved([blurred], Pace(seconds=0.2), lambda: None)

    assert 0.1 <= repetitions(result).seconds[0] <= 0.4


def test_the_reference_takes_its_turn_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "cagepool.bench.measure.reference_workload", lambda: contender("reference", 0.01, log)
    )
    pair = [contender("a", 0.1, log), contender("b", 0.1, log)]

    measurements = measure_interleaved(pair, Pace(repetitions=2, seconds=0.2), lambda: None)

    assert [name for name, _ in log[-6:]] == ["reference", "a", "b"] * 2
    assert [one.name for one in measurements] == ["a", "b"]
    assert [repetitions(one).reference_seconds for one in measurements] == [
        pytest.approx([0.01, 0.01])
    ] * 2  # divided


def test_the_warm_up_is_told_but_not_counted() -> None:
    (result,) = measure_interleaved([contender("a", 0.05, [])], Pace(repetitions=2), lambda: None)

    # One call, then two, which are half of a repetition.
    assert repetitions(result).warm_up_seconds == pytest.approx(0.05 + 0.1)
    assert len(repetitions(result).seconds) == 2


def test_progress_is_reported_after_every_repetition() -> None:
    log: list[tuple[str, int]] = []
    told: list[int] = []
    pair = [contender("a", 1, log), contender("b", 1, log)]

    measure_interleaved(pair, Pace(repetitions=4), lambda: told.append(len(log)))

    warm_up = told[0] - 1
    assert told == [warm_up + turn for turn in range(1, 9)]


def test_a_contender_keeps_its_name_settings_and_steps() -> None:
    (result,) = measure_interleaved(
        [contender("a", 0.1, [], steps=50)], Pace(repetitions=2), lambda: None
    )

    assert (result.name, result.settings) == ("a", {"games": 50})
    assert repetitions(result).steps_per_call == 50
    costs = repetitions(result).nanoseconds_per_step
    assert costs == pytest.approx([0.1e9 / 50] * 2)  # floats are divided


def test_a_timed_call_is_made_as_often_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10.0

    def call() -> None:
        nonlocal now
        now += 0.5

    monkeypatch.setattr("time.perf_counter", lambda: now)
    clock = time_calls(call)

    assert clock(6) == 3.0
    assert clock(1) == 0.5


def test_groups_are_measured_one_after_the_other_and_closed() -> None:
    events: list[str] = []

    def make(name: str, stack: ExitStack) -> Contender:
        events.append(f"open {name}")
        stack.callback(events.append, f"close {name}")
        return contender(name, 1.0, [])

    def groups() -> list[tuple[str, list[object]]]:
        return [(name, [lambda stack, name=name: make(name, stack)]) for name in ("a", "b")]

    progress: list[tuple[str, int, int]] = []
    measured = measure_groups(
        groups(),  # type: ignore[arg-type]
        Pace(repetitions=2),
        lambda *repetition: progress.append(repetition),
    )
    assert list(measured) == ["a", "b"]
    assert events == ["open a", "close a", "open b", "close b"]
    assert progress == [(name, done, 2) for name in ("a", "b") for done in (0, 1, 2)]


def test_a_pace_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^repetitions must be at least 2, got 1$"):
        Pace(repetitions=1)
    with pytest.raises(ValueError, match=r"^seconds must be more than 0, got 0$"):
        Pace(seconds=0)
