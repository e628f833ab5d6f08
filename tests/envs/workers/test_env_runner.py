"""Results of a step are accepted or refused as in SyncVectorEnv; the spin-wait returns in time."""

import os
import pickle
import sys
from collections.abc import Callable
from functools import partial
from threading import Timer
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cagepool import _core, make_vec
from cagepool.envs.workers.env_results import pickle_info
from cagepool.errors import EnvironmentFault
from tests.envs.contract import assert_same
from tests.envs.workers.toy_envs import LoadedBy

ROW = np.array([0.5, 0.25, 1.0], np.float32)
TAKEN: dict[str, tuple[Any, ...]] = {
    "usual": (ROW, 1.5, False, False, {}),
    "whole number": (ROW, 2, False, False, {}),
    "NumPy's": (ROW, np.float32(1.5), np.False_, np.True_, {}),
    "another type": (ROW.astype(np.float64), 1.5, True, False, {"why": "done"}),
    "every other": (np.repeat(ROW, 2)[::2], 1.5, False, False, {}),
    "list": ([0.5, 0.25, 1.0], 1.5, False, False, {}),
}
REFUSED: dict[str, tuple[Any, str]] = {
    "nothing": (None, "step must return five values .*, got NoneType"),
    "four": ((ROW, 1.0, False, {}), "five values .*, got 4; for .* return .*done, False, info"),
    "no reward": ((ROW, None, False, False, {}), "float"),
    "longer": ((np.zeros(4, np.float32), 1.0, False, False, {}), r"must have shape \(3,\)"),
    "no info": ((ROW, 1.0, False, False, None), "an info must be a dict, got NoneType"),
    "another kind": ((np.zeros(3, complex), 1.0, False, False, {}), "Cannot cast"),
}


class Giver(gym.Env[Any, Any]):
    """Returns a fixed result."""

    observation_space = gym.spaces.Box(0, 1, (3,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> Any:
        assert isinstance(action, np.int64)
        return self.outcome


@pytest.mark.parametrize("form", TAKEN)
def test_results_are_those_of_gymnasiums_loop(form: str) -> None:
    make = partial(Giver, TAKEN[form])
    results = []
    pool = make_vec(2, env=make, backend="workers", workers=1)
    for envs in (pool, make_vec(2, env=make, backend="sync")):
        envs.reset(seed=0)
        results.append([envs.step(np.array([1, 2])) for _ in range(3)])
        envs.close()
    assert_same(results[0], results[1])


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_no_result_is_a_fault(form: str) -> None:
    outcome, words = REFUSED[form]
    envs = make_vec(2, env=partial(Giver, outcome), backend="workers", workers=1)
    envs.reset(seed=0)
    with pytest.raises(EnvironmentFault, match=f"environment 0 raised.*{words}"):
        envs.step([0, 0])


@pytest.fixture
def pipe() -> Any:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


WAYS: dict[str, Callable[[int], _core.SpinWait]] = {
    "looking": partial(_core.SpinWait, spin=True),
    "asleep": partial(_core.SpinWait, spin=False),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_wait_ends_with_news_or_with_its_limit(way: str, pipe: Any) -> None:
    waiter = WAYS[way](pipe[0])
    for _ in range(20):  # after some failed spins it blocks at once
        assert not waiter.wait(0.001)
    assert not waiter.wait(0.0)
    Timer(0.05, os.write, (pipe[1], b"news")).start()
    assert waiter.wait(1e6)  # returns with the news, long before its limit
    assert waiter.wait(-1.0)


BAD = LoadedBy(sys.exit, 4)


@pytest.mark.parametrize(
    "info",
    [{"key": BAD}, {"key": [BAD]}, {"outer": {"key": BAD}}, {BAD: 1}, {"key": np.array([BAD])}],
    ids=["value", "in a list", "in a dict", "key", "in an array"],
)
def test_an_info_that_cannot_be_loaded_is_found_wherever_the_cause_is(info: Any) -> None:
    with pytest.raises(pickle.UnpicklingError, match="SystemExit: 4"):
        pickle_info(info)


def test_an_info_is_pickled_as_it_is() -> None:
    info = {"mask": np.ones(3, np.bool_), "episode": {"r": np.float32(1.5), "l": 7}, "names": ["a"]}
    pickled = pickle_info(info)
    assert pickled is not None
    assert_same(pickle.loads(pickled), info)
    assert pickle_info({}) is None
