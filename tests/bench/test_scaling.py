"""Scaling: throughput by number of environments and backend."""

import time
from contextlib import ExitStack

import psutil
import pytest

from cagepool.bench import workers as scaling
from cagepool.bench.measure import ComputingEnv, Figures, Pace, Workers
from cagepool.bench.schema import rates
from cagepool.bench.workers import KINDS, CpuTimer, ScalingConfig, measure_scaling
from tests.bench.results import FakeContender

RATES = {
    "loop": {1: 100.0, 10: 200.0, 100: 200.0},
    "workers": {1: 50.0, 10: 400.0, 100: 800.0},
    "pipes": {1: 10.0, 10: 40.0},
}


def test_efficiency_is_what_is_left_of_the_rate_of_one_times_their_number() -> None:
    assert scaling.efficiency(RATES["loop"]) == {1: 1.0, 10: 0.2, 100: 0.02}


def test_the_best_is_the_fastest_of_those_that_were_measured() -> None:
    assert [scaling.fastest_backend(RATES, size) for size in (1, 10, 100)] == [
        "loop",
        "workers",
        "workers",
    ]


def test_a_crossing_lies_where_the_rates_would_be_equal() -> None:
    # The lead of the loop goes from twice to half as fast: halfway between 1 and 10, as powers.
    (only,) = scaling.crossings(RATES)
    assert (only.overtaken, only.faster) == ("loop", "workers")
    assert only.environments == pytest.approx(10**0.5)


def test_rates_that_meet_and_part_again_have_no_crossing() -> None:
    assert (
        list(scaling.crossings({"a": {1: 2.0, 2: 2.0, 3: 2.0}, "b": {1: 1.0, 2: 2.0, 3: 1.0}}))
        == []
    )


def test_advice_puts_sizes_with_the_same_best_together() -> None:
    assert scaling.fastest_ranges(RATES) == [
        scaling.Fastest(1, 1, "loop"),
        scaling.Fastest(10, 100, "workers"),
    ]


def test_costs_are_fitted_by_the_fullest_of_the_processes() -> None:
    rates = {size: size / (5.0 + 2.0 * -(-size // 2)) for size in (2, 3, 10, 101)}
    assert scaling.fit_cost(rates, processes=2) == pytest.approx((5, 2))


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Figures:
    for name in ("Workers", "Gymnasium"):
        monkeypatch.setattr(scaling, name, FakeContender)
    pace = Pace(repetitions=2, seconds=0.001)
    config = ScalingConfig(pace=pace, sizes=(1, 3), max_pipes=1, busy_sizes=(3,), busy_factor=1)
    return measure_scaling(config, lambda *_: None)


def test_every_backend_is_measured_at_every_number_that_it_can_do(figures: Figures) -> None:
    names = {group: set(rates(measured)) for group, measured in figures.groups.items()}
    assert names == {
        "CAGE-2 1": {"native", "sync", "workers", "pipes"},
        "CAGE-2 3": {"native", "sync", "workers"},
        "cheap 1": {"sync", "workers", "pipes"},
        "cheap 3": {"sync", "workers"},
        "costly 1": {"sync", "workers", "pipes"},
        "costly 3": {"sync", "workers"},
        "busy: CAGE-2 3": {"native", "sync", "workers"},
        "busy: cheap 3": {"sync", "workers"},
        "busy: costly 3": {"sync", "workers"},
    }
    assert figures.facts["left_out"].startswith("pipes above 1 environments")


def test_efficiency_and_recommendation_follow_from_the_rates(figures: Figures) -> None:
    for kind in KINDS:
        facts = figures.facts["scaling"][kind]
        by_size = {size: rates(figures.groups[f"{kind} {size}"]) for size in (1, 3)}
        for name, shares in facts["efficiency"].items():
            assert shares["1"] == 1
            if "3" in shares:
                expected = by_size[3][name] / by_size[1][name] / 3
                assert shares["3"] == pytest.approx(expected, rel=1e-5)  # rounded
        last = facts["recommendation"][-1]
        assert last["last"] == 3
        assert by_size[3][last["backend"]] == max(by_size[3].values())


def test_the_choice_of_auto_is_compared_with_the_fastest(figures: Figures) -> None:
    for group, measured in figures.groups.items():
        if group.startswith(scaling.BUSY):
            continue
        kind, size = group.rsplit(" ", 1)
        auto = figures.facts["scaling"][kind]["auto"][size]
        rate = rates(measured)
        ratio = figures.ratios[f"{group}: auto ({auto['choice']}) / fastest"]
        assert ratio == round(rate[auto["choice"]] / rate[auto["fastest"]], 3)
    choices = figures.facts["scaling"]["CAGE-2"]["auto"].values()
    assert {auto["choice"] for auto in choices} == {"native"}


def test_the_choice_is_measured_beside_busy_processes_too(figures: Figures) -> None:
    groups = [name.partition(": auto")[0] for name in figures.ratios]
    assert groups == list(figures.groups)


def test_busy_processes_run_only_meanwhile() -> None:
    before = set(psutil.Process().children())
    with scaling._run_busy_processes(2):
        busy = set(psutil.Process().children()) - before
        assert len(busy) == 2
        assert all(process.is_running() for process in busy)
    assert not any(process.is_running() for process in busy)


def test_cpu_time_has_that_of_worker_processes() -> None:
    cpu_seconds = 0.01
    env_fns = [lambda: ComputingEnv(cpu_seconds)] * 2
    with ExitStack() as stack:
        contender = Workers(name="workers", env_fns=env_fns, workers=2)(stack)
        timer = CpuTimer(contender.timer)
        timer(10)
    assert timer.calls == 10
    # Two processes, each counted in units of 10 ms.
    assert timer.cpu_seconds >= 10 * 2 * cpu_seconds - 2 * 0.02


def test_cpu_time_does_not_pass_while_sleeping() -> None:
    def sleep(calls: int, /) -> float:
        time.sleep(0.05 * calls)
        return 0.05 * calls

    timer = CpuTimer(sleep)
    assert timer(2) == 0.1
    assert timer.cpu_seconds <= 0.05


def test_one_environment_must_be_among_the_sizes() -> None:
    with pytest.raises(ValueError, match=r"^sizes must contain 1, got \(2, 5\)$"):
        ScalingConfig(sizes=(2, 5))
