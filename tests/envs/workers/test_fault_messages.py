"""What is said of a fault is true, complete and short."""

import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cagepool import make_vec
from cagepool.errors import EnvironmentFault
from tests.envs.workers.toy_envs import Checksummed, Faulty, LoadedBy, load_in_process

pytestmark = pytest.mark.slow


class Raising(Checksummed):
    """Raises a given exception in a step, and cannot be made again after that."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def step(self, action: np.int64) -> Any:  # noqa: ARG002 - Gymnasium's signature
        raise self.error


def fault_of(error: BaseException, **settings: Any) -> EnvironmentFault:
    envs = make_vec(1, env=partial(Raising, error), backend="workers", **settings)
    envs.reset(seed=0)
    with pytest.raises(EnvironmentFault) as caught:
        envs.step([0])
    return caught.value


@pytest.mark.parametrize(
    ("error", "summary"),
    [
        (ValueError("first line\nsecond line"), "ValueError: first line second line"),
        (KeyError(), "KeyError"),
        (SyntaxError("wrong", ("file.py", 1, 1, "x =", 1, 2)), "SyntaxError: wrong"),
    ],
)
def test_the_sentence_has_the_type_of_the_exception(error: Exception, summary: str) -> None:
    sentence = str(fault_of(error)).partition("\n")[0]
    assert sentence == f"environment 0 raised while being stepped: {summary}"


def test_a_huge_message_is_cut_and_says_how_much() -> None:
    fault = fault_of(ValueError("a" * 50_000_000 + "the end"))
    assert len(str(fault)) < 25_000
    sentence = str(fault).partition("\n")[0]
    assert sentence.startswith("environment 0 raised while being stepped: ValueError: aaa")
    assert sentence.endswith("(49,999,019 characters left out)")
    assert fault.trace.rstrip().endswith("the end")
    assert "characters left out" in fault.trace


@pytest.fixture
def ignored_sigchld() -> Iterator[None]:
    previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, previous)


@pytest.mark.usefixtures("ignored_sigchld")
def test_a_status_that_the_kernel_does_not_tell_is_called_unknown() -> None:
    envs = make_vec(1, env=partial(Faulty, "kill"), backend="workers")
    envs.reset(seed=0)
    words = "worker 0 ended with an unknown status .SIGCHLD.* while environment 0 was being stepped"
    with pytest.raises(EnvironmentFault, match=words):
        envs.step([Faulty.FAIL])


class MadeOnce(Raising):
    """Cannot be made a second time in the same process."""

    made = False

    def __init__(self) -> None:
        if type(self).made:
            raise OSError("the port is taken")
        type(self).made = True
        super().__init__(ValueError("by chance"))


def test_an_environment_that_cannot_be_made_again_is_said_to_be_made_again() -> None:
    envs = make_vec(1, env=MadeOnce, backend="workers", on_fault="restart", max_restarts=1)
    envs.reset(seed=0)
    words = "environment 0 raised while being made again: OSError: the port is taken"
    with pytest.raises(EnvironmentFault, match=words):
        envs.step([0])


class Answering(Checksummed):
    """Has methods that fail or return what only their process can unpickle."""

    def leave(self) -> None:
        raise SystemExit(4)

    def own_object(self) -> Any:
        return LoadedBy(load_in_process, 0)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("leave", "environment 0 raised while being asked to call: SystemExit: 4"),
        ("own_object", "environment 0 returned a value that can't be unpickled: ValueError: unp"),
    ],
)
def test_a_call_that_fails_is_a_fault_and_the_workers_continue(method: str, words: str) -> None:
    with make_vec(2, env=Answering, backend="workers", workers=1) as envs:
        envs.reset(seed=0)
        with pytest.raises(EnvironmentFault, match=words):
            envs.call(method)
        assert envs.step([0, 0])[0][:, 0].tolist() == [1, 1]


class Informing(Checksummed):
    """Has an info that depends on its action."""

    def step(self, action: np.int64) -> Any:
        *results, _ = super().step(action)
        return *results, {"value": "text" if action else 1}


def test_infos_that_cannot_be_merged_are_a_fault_with_the_environment() -> None:
    envs = make_vec(2, env=Informing, backend="workers", workers=1)
    envs.reset(seed=0)
    with pytest.raises(
        EnvironmentFault, match=r"info of environment 1 can't be merged.*text"
    ) as it:
        envs.step([0, 1])
    assert it.value.index == 1


class OldReset(Checksummed):
    """Returns the observation alone, as in Gym before 0.26."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed, options=options)[0]


def test_a_reset_without_infos_is_told_what_to_return() -> None:
    envs = make_vec(1, env=OldReset, backend="workers")
    with pytest.raises(EnvironmentFault, match=r"reset must return two values .*, got ndarray"):
        envs.reset(seed=0)


def test_an_environment_without_a_true_state_is_told_so() -> None:
    words = "true_state must be 'never' for environments without a method true_state.., which CartP"
    with pytest.raises(EnvironmentFault, match=words):
        make_vec(1, env="CartPole-v1", backend="workers", true_state="every")


class OutOfBounds(gym.Env[Any, Any]):
    """Observes its action, which may be outside of the space of observations."""

    observation_space = gym.spaces.Box(0, 5, (2,), np.float32)
    action_space = gym.spaces.Discrete(10)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed, options=options)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.array([0, action], np.float32), 0.0, False, False, {}


def test_observations_are_checked_on_request() -> None:
    with make_vec(2, env=OutOfBounds, backend="workers", workers=1) as envs:
        envs.reset(seed=0)
        assert envs.step([1, 7])[0][1].tolist() == [0, 7]
    envs = make_vec(2, env=OutOfBounds, backend="workers", workers=1, check=True)
    envs.reset(seed=0)
    assert envs.step([1, 5])[0].tolist() == [[0, 1], [0, 5]]
    words = r"environment 1 raised .*: the observation\[1\] must be from 0.0 to 5.0, got 7.0"
    with pytest.raises(EnvironmentFault, match=words):
        envs.step([1, 7])
