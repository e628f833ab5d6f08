"""Invalid calls of the native vector environment raise a clear error and change nothing."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from numpy.typing import NDArray

from cagepool import make_vec
from cagepool.envs import NativeVectorEnv
from tests.environment import LIMIT_S
from tests.envs.contract import actions_for, everything, play, started


@pytest.mark.parametrize(
    ("row", "error", "sentence"),
    [
        ([0, 0, 145, 0], IndexError, "the action of game 2 must be below 145, got 145"),
        ([0, -1, 0, 0], IndexError, "the action of game 1 must be below 145, got -1"),
        ([0, 0, 0], ValueError, "one action per game, got 3 for 4 games"),
        ([[0, 0, 0, 0]], ValueError, r"actions must have one dimension, got shape \(1, 4\)"),
        (0, ValueError, r"actions must have one dimension, got shape \(\)"),
        ([], ValueError, "one action per game, got 0 for 4 games"),
        ([0.0, 0.0, 0.0, 0.0], TypeError, "actions must be integers, got float64"),
        ([True, True, True, True], TypeError, "actions must be integers, got bool"),
        (None, TypeError, "actions must be integers, got object"),
    ],
)
@pytest.mark.parametrize("copy", [True, False], ids=["copies", "same arrays"])
def test_a_wrong_action_is_refused_and_nothing_is_played(
    row: Any, error: type[Exception], sentence: str, copy: bool
) -> None:
    envs = started(copy=copy)
    play(envs, actions_for(4, 10))
    before, seen = everything(envs), envs.observations.copy()
    with pytest.raises(error, match=sentence):
        envs.step(row)
    assert everything(envs) == before
    np.testing.assert_array_equal(envs.observations, seen)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"num_envs": 0}, ValueError, "at least 1 game, got 0"),
        ({"red": "purple"}, ValueError, "red must be one of B_lineAgent, .*; got 'purple'"),
        ({"edition": "3"}, ValueError, "edition must be one of 2.1, leaderboard; got '3'"),
        ({"order": "user"}, ValueError, "an order must be one of .*; got 'user'"),
        ({"max_steps": 0}, ValueError, "max_steps must be a whole number from 1 .*, got 0"),
        (
            {"max_steps": [1, 2, 3]},
            ValueError,
            "max_steps must be one value or one per game, got 3",
        ),
        ({"autoreset": "never"}, ValueError, "autoreset must be one of next_step, .*'never'"),
        ({"observation_dtype": "int8"}, ValueError, "observation_dtype must be one of .*'int8'"),
        ({"render_mode": "human"}, ValueError, "must be 'ansi', 'rgb_array' or None, got 'human'"),
        ({"blue": "me"}, TypeError, "unknown setting blue, the settings are red, "),
    ],
)
def test_a_wrong_setting_is_refused(
    options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        make_vec(**{"num_envs": 2} | options)


@pytest.mark.parametrize(
    ("seed", "error", "sentence"),
    [
        ([1, 2], ValueError, "one seed per game, got 2 for 4 games"),
        (1.5, TypeError, "seed must be an integer, or one per game, got 1.5"),
        ("four", TypeError, "seed must be an integer, or one per game, got 'four'"),
        (-1, ValueError, r"a seed must be from 0 to 2\*\*64 - 1, got -1"),
        (2**64 - 2, ValueError, r"a seed must be from 0 to 2\*\*64 - 1, got 18446744073709551616"),
    ],
)
def test_a_wrong_seed_is_refused(seed: Any, error: type[Exception], sentence: str) -> None:
    envs = started()
    before = everything(envs)
    with pytest.raises(error, match=sentence):
        envs.reset(seed=seed)
    assert everything(envs) == before


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        ([True] * 4, "an array of 4 Booleans, got .True, True, True, True."),
        (np.ones(4), r"an array of 4 Booleans, got float64 of shape \(4,\)"),
        (np.ones(3, np.bool_), r"an array of 4 Booleans, got bool of shape \(3,\)"),
        (np.zeros(4, np.bool_), "at least one game, got none"),
    ],
)
def test_a_wrong_reset_mask_is_refused(mask: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        started().reset(options={"reset_mask": mask})


def test_the_options_of_the_caller_are_not_changed() -> None:
    options = {"reset_mask": np.array([True, False, False, True])}
    started().reset(options=options)
    assert list(options) == ["reset_mask"]


def test_reset_must_come_before_step() -> None:
    envs = make_vec(3)
    with pytest.raises(RuntimeError, match="game 0 has not been reset"):
        envs.step([0, 0, 0])
    envs.reset(options={"reset_mask": np.array([True, True, False])})
    with pytest.raises(RuntimeError, match="game 2 has not been reset"):
        envs.step([0, 0, 0])


def test_without_autoreset_a_game_that_is_over_must_be_reset() -> None:
    envs = started(2, max_steps=1, autoreset="disabled")
    envs.step([0, 0])
    with pytest.raises(RuntimeError, match="game 0 is over"):
        envs.step([0, 0])


@pytest.mark.parametrize(
    "use",
    [
        lambda envs: envs.step([0, 0]),
        lambda envs: envs.reset(),
        lambda envs: envs.save([0]),
        lambda envs: envs.restore([], []),
        lambda envs: envs.render(),
        lambda envs: envs.action_masks(),
        lambda envs: envs.true_state_dict(0),
    ],
    ids=["step", "reset", "save", "restore", "render", "action_masks", "true_state_dict"],
)
def test_nothing_works_after_close(use: Callable[[NativeVectorEnv], object]) -> None:
    with started(2, render_mode="ansi") as envs:
        envs.step([0, 0])
    assert envs.closed
    with pytest.raises(ClosedEnvironmentError, match="must not be used after it was closed"):
        use(envs)


class Interruption:
    """Actions that call the environment from another thread while they are read."""

    def __init__(self, use: Callable[[], object]) -> None:
        self.use = use
        self.error: BaseException | None = None

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[np.int64]:
        with ThreadPoolExecutor(1) as pool:
            self.error = pool.submit(self.use).exception()
        return np.zeros(2, np.int64)


@pytest.mark.parametrize("method", ["step", "reset", "restore"])
def test_a_second_thread_is_refused_at_once(method: str) -> None:
    envs, alone = started(2), started(2)
    uses: dict[str, Callable[[], object]] = {
        "step": lambda: envs.step([0, 0]),
        "reset": envs.reset,
        "restore": lambda: envs.restore([], []),
    }
    interruption = Interruption(uses[method])
    envs.step(interruption)
    alone.step([0, 0])
    assert isinstance(interruption.error, RuntimeError)
    assert "used by one thread at a time" in str(interruption.error)
    assert everything(envs) == everything(alone)


def test_a_forked_child_can_step_and_close() -> None:
    """A forked child has none of the threads, and must not wait for them."""
    program = (
        "import os, cagepool, numpy as np\n"
        "envs = cagepool.make_vec(2048, threads=2)\n"
        "envs.reset(seed=0)\n"
        "actions = np.zeros(2048, np.int64)\n"
        "envs.step(actions)\n"
        "child = os.fork()\n"
        "envs.step(actions)\n"
        "envs.close()\n"
        "if child: assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=LIMIT_S)
