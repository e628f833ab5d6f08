"""Looks at the true state are taken when they should be, and compared with none."""

from contextlib import ExitStack
from functools import partial

import pytest

from cagepool.bench.measure import Pace
from cagepool.bench.true_state import Looking, TrueStateConfig, When, measure_true_state
from cagepool.envs import make_vec


@pytest.mark.parametrize(
    ("when", "looks"), [("never", 0), ("every", 10), ("twice", 20), (4, 2), ("end", 1)]
)
def test_an_episode_has_as_many_looks_as_asked_for(when: When, looks: int) -> None:
    taken: list[int] = []
    envs = make_vec(2, max_steps=10)
    looking = Looking(lambda _: envs, "array", when, partial(taken.append, 1), max_steps=10)
    with ExitStack() as stack:
        contender = looking(stack)
    contender.clock(1)
    assert len(taken) == looks
    assert contender.steps == 2 * 10
    assert envs.step([0, 0])[3].sum() == 0  # the first step of the next episode
    envs.close()


def test_every_backend_is_measured_with_and_without() -> None:
    config = TrueStateConfig(
        pace=Pace(repetitions=2, seconds=0.001), games=2, cyborgs=1, max_steps=3, every=2
    )
    result = measure_true_state(config, lambda *_: None)
    names = [one.name for one in result.groups["native games, workers"]]
    assert names[:2] == ["off", "array, every step"]
    assert len(names) == 1 + 2 * 4
    assert {f"native games, {name}" for name in ("native", "sync", "pipes", "workers")} <= (
        result.groups.keys()
    )
    assert "native games, pipes: array / dictionary, every step" in result.ratios
