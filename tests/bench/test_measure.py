"""Contenders take turns, each long enough, and what they took is told by median and quartiles."""

import json

import pytest

from cagepool.bench.measure import Contender, Measurement, Pace, compare, timed


@pytest.fixture(autouse=True)
def _a_steady_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference takes 2 ms a call, and no time at all."""
    steady = Contender(name="reference", settings={}, steps=1, clock=lambda calls: 0.002 * calls)
    monkeypatch.setattr("cagepool.bench.measure.reference_contender", lambda: steady)


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
    return Contender(name=name, settings={"games": steps}, steps=steps, clock=clock)


def measured(seconds: list[float], *, calls: int = 1, steps: int = 1) -> Measurement:
    settings: dict[str, str | float | bool] = {"games": steps, "red": "SleepAgent"}
    return Measurement(
        name="Batch.step", settings=settings, steps=steps, calls=calls, seconds=seconds
    )


def test_contenders_take_turns_after_all_have_warmed_up() -> None:
    log: list[tuple[str, int]] = []
    pair = [contender("a", 0.1, log), contender("b", 0.05, log)]

    compare(pair, Pace(repetitions=3, seconds=0.2), lambda: None)

    turns = 2 * 3
    assert log[-turns:] == [("a", 2), ("b", 4)] * 3
    assert [name for name, _ in log[:-turns]] == sorted(name for name, _ in log[:-turns])


@pytest.mark.parametrize(
    ("seconds", "calls"),
    [(1e-7, 2_000_000), (0.001, 200), (0.15, 1), (0.2, 1), (7.0, 1)],
)
def test_a_turn_is_about_as_long_as_it_should_be(seconds: float, calls: int) -> None:
    log: list[tuple[str, int]] = []

    (result,) = compare([contender("a", seconds, log)], Pace(seconds=0.2), lambda: None)

    assert result.calls == calls
    assert {asked for _, asked in log[-15:]} == {calls}
    assert result.seconds == [calls * seconds] * 15


def test_a_clock_too_coarse_to_see_a_call_is_asked_for_more() -> None:
    def coarse(calls: int, /) -> float:
        return calls // 1000 * 0.01

    blurred = Contender(name="a", settings={}, steps=1, clock=coarse)
    (result,) = compare([blurred], Pace(seconds=0.2), lambda: None)

    assert 0.1 <= result.seconds[0] <= 0.4


def test_the_reference_takes_its_turn_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "cagepool.bench.measure.reference_contender", lambda: contender("reference", 0.01, log)
    )
    pair = [contender("a", 0.1, log), contender("b", 0.1, log)]

    measurements = compare(pair, Pace(repetitions=2, seconds=0.2), lambda: None)

    assert [name for name, _ in log[-6:]] == ["reference", "a", "b"] * 2
    assert [one.name for one in measurements] == ["a", "b"]
    assert [one.reference for one in measurements] == [pytest.approx([0.01, 0.01])] * 2  # divided


def test_the_warm_up_is_told_but_not_counted() -> None:
    (result,) = compare([contender("a", 0.05, [])], Pace(repetitions=2), lambda: None)

    assert result.warm_up_s == pytest.approx(0.05 + 0.1)  # once, then twice: half of a turn
    assert len(result.seconds) == 2


def test_progress_is_told_of_every_turn() -> None:
    log: list[tuple[str, int]] = []
    told: list[int] = []
    pair = [contender("a", 1, log), contender("b", 1, log)]

    compare(pair, Pace(repetitions=4), lambda: told.append(len(log)))

    warm_up = told[0] - 1
    assert told == [warm_up + turn for turn in range(1, 9)]


def test_a_contender_keeps_its_name_settings_and_steps() -> None:
    (result,) = compare([contender("a", 0.1, [], steps=50)], Pace(repetitions=2), lambda: None)

    assert (result.name, result.settings, result.steps) == ("a", {"games": 50}, 50)
    assert result.nanoseconds == pytest.approx([0.1e9 / 50] * 2)  # floats are divided


def test_a_timed_call_is_made_as_often_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10.0

    def call() -> None:
        nonlocal now
        now += 0.5

    monkeypatch.setattr("time.perf_counter", lambda: now)
    clock = timed(call)

    assert clock(6) == 3.0
    assert clock(1) == 0.5


def test_cost_is_told_by_game_step_with_median_and_quartiles() -> None:
    result = measured([5e-6, 1e-6, 4e-6, 2e-6, 3e-6, 7e-6, 6e-6], calls=10, steps=100)

    assert result.nanoseconds == pytest.approx([5, 1, 4, 2, 3, 7, 6])  # floats are divided
    assert result.quartiles == pytest.approx((2, 4, 6))
    assert result.steps_per_second == pytest.approx(1e9 / 4)


def test_one_slow_turn_does_not_move_the_median() -> None:
    assert measured([1e-6] * 4 + [1.0]).quartiles[1] == pytest.approx(1000)


def test_the_json_form_holds_settings_beside_figures() -> None:
    form = measured([1e-6, 2e-6, 4e-6], calls=1, steps=1000).as_dict()

    assert json.loads(json.dumps(form)) == {
        "name": "Batch.step",
        "games": 1000,
        "red": "SleepAgent",
        "nanoseconds_per_step": {"median": 2.0, "quartiles": [1.0, 4.0], "repetitions": 3},
        "steps_per_second": 500_000_000,
        "turns": {
            "calls": 1,
            "steps_in_a_call": 1000,
            "warm_up_s": 0.0,
            "seconds": [1e-6, 2e-6, 4e-6],
            "reference": [],
        },
    }


def test_a_pace_that_tells_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^repetitions must be at least 2, got 1$"):
        Pace(repetitions=1)
    with pytest.raises(ValueError, match=r"^seconds must be more than 0, got 0$"):
        Pace(seconds=0)
