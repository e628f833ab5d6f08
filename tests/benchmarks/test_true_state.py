"""The true state is read as often as configured, and compared with no reads."""

from contextlib import ExitStack
from functools import partial

import pytest

from benchmarks.suites import true_state
from benchmarks.suites.true_state import (
    Episodes,
    Period,
    TrueStateConfig,
    measure_true_state,
)
from cagepool.bench.measure import Pace
from cagepool.bench.schema import rates
from cagepool.cyborg import CybORGNotFoundError
from cagepool.envs import make_vec


@pytest.mark.parametrize(
    ("period", "reads"), [("never", 0), ("every", 10), ("twice", 20), (4, 2), ("end", 1)]
)
def test_an_episode_has_the_configured_number_of_reads(period: Period, reads: int) -> None:
    counted: list[int] = []
    envs = make_vec(2, max_steps=10)
    episodes = Episodes(lambda _: envs, "array", period, partial(counted.append, 1), max_steps=10)
    with ExitStack() as stack:
        contender = episodes(stack)
    contender.timer(1)
    assert len(counted) == reads
    assert contender.steps_per_call == 2 * 10
    assert envs.step([0, 0])[3].sum() == 0  # the first step of the next episode
    envs.close()


def test_every_backend_is_measured_with_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_cyborg() -> None:
        raise CybORGNotFoundError("not here")

    monkeypatch.setattr(true_state, "CybORGEnv", no_cyborg)
    config = TrueStateConfig(
        pace=Pace(repetitions=2, seconds=0.001), games=2, max_steps=2, period=2, workers=1
    )
    figures = measure_true_state(config, lambda *_: None)
    names = list(rates(figures.groups["native games, workers"]))
    assert names[:2] == ["off", "array, every step"]
    assert len(names) == 1 + 2 * 4
    backends = ("native", "sync", "pipes", "workers")
    assert figures.groups.keys() == {f"native games, {name}" for name in backends}
    assert "native games, pipes: array / dictionary, every step" in figures.ratios
