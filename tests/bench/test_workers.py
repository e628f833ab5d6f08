"""Benches of worker processes."""

from contextlib import ExitStack
from functools import partial

import pytest

from cagepool.bench import workers
from cagepool.bench.measure import (
    BareLoops,
    DummyEnv,
    Figures,
    Pace,
    SharedWorkers,
    SleepingEnv,
    Workers,
)
from cagepool.bench.schema import rates
from cagepool.bench.workers import (
    StragglersConfig,
    WorkersConfig,
    measure_stragglers,
    measure_workers,
)
from tests.bench.results import FakeContender

PACE = Pace(repetitions=2, seconds=0.001)


@pytest.fixture(scope="module")
def overhead() -> tuple[Figures, set[str]]:
    groups: set[str] = set()
    config = WorkersConfig(pace=PACE, sizes=(2,), max_ray_actors=0)
    return measure_workers(config, lambda group, *_: groups.add(group)), groups


def test_every_group_is_measured_beside_other_libraries(
    overhead: tuple[Figures, set[str]],
) -> None:
    figures, groups = overhead
    assert groups == figures.groups.keys() == {"overhead 2"}
    assert rates(figures.groups["overhead 2"]).keys() >= {
        "cagepool, barrier",
        "cagepool, asynchronous",
        "Gymnasium, sync",
        "Gymnasium, pipes",
        "Gymnasium, pipes only",
    }


def test_ratios_are_throughput_divided_by_that_of_other_libraries(
    overhead: tuple[Figures, set[str]],
) -> None:
    figures, _ = overhead
    rate = rates(figures.groups["overhead 2"])
    expected = rate["cagepool, asynchronous"] / rate["Gymnasium, pipes"]
    name = "overhead 2: cagepool, asynchronous / Gymnasium, pipes"
    assert figures.ratios[name] == round(expected, 3)
    assert all(value > 0 for value in figures.ratios.values())


def test_the_start_of_the_workers_is_measured(overhead: tuple[Figures, set[str]]) -> None:
    start = overhead[0].facts["start"]
    assert (start["environments"], start["workers"]) == (2, 2)
    assert start["processes"] >= 2
    assert start["megabytes_per_worker"] > 1


def test_throughput_with_stragglers_is_a_share_of_the_ideal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("Workers", "Gymnasium"):
        monkeypatch.setattr(workers, name, FakeContender)
    monkeypatch.setattr(
        workers,
        "BareLoops",
        lambda name, shared: FakeContender(name=name, env_fns=shared.env_fns),
    )
    config = StragglersConfig(pace=PACE, waiting_envs=2, computing_envs=2)
    figures = measure_stragglers(config, lambda *_: None)
    ideal = figures.facts["ideal_steps_per_second"]
    assert ideal["heavy tail"] == 2 / 0.005
    assert ideal["one slow"] == (1 + 1 / 5) / 0.005
    rate = rates(figures.groups["one slow"])
    share = figures.ratios["one slow: Gymnasium, pipes / ideal"]
    assert share == round(rate["Gymnasium, pipes"] / ideal["one slow"], 3)
    assert "one slow, computing: cagepool, barrier / ideal" in figures.ratios
    share = figures.ratios["one slow: cagepool, barrier / bare loops"]
    assert share == round(rate["cagepool, barrier"] / rate["bare loops"], 3)


def test_bare_loops_count_the_steps_of_all_processes() -> None:
    with ExitStack() as stack:
        bare = BareLoops(name="bare", shared=SharedWorkers([partial(SleepingEnv, 0.002)] * 2, 2))
        contender = bare(stack)
        assert contender.steps_per_call == 2
        # A call is two steps of 2 ms on average, at the same time.
        assert contender.timer(50) > 50 * 0.002 / 2


def test_contenders_of_one_group_share_processes_and_those_of_the_next_do_not() -> None:
    shared = SharedWorkers([DummyEnv] * 2, 2)
    with ExitStack() as stack:
        first = shared(stack)
        for min_ready in (0, 1, 2):
            contender = Workers(
                name="", env_fns=[DummyEnv] * 2, workers=2, min_ready=min_ready, shared=shared
            )(stack)
            assert contender.timer(3) > 0
        assert shared(stack) is first
    assert first.closed
    with ExitStack() as stack:
        assert shared(stack) is not first
