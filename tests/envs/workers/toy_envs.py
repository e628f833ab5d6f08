"""Small environments with known behavior, correct and faulty."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

SPACES: dict[str, spaces.Space[Any]] = {
    "box": spaces.Box(-1, 1, (3,), np.float32),
    "image": spaces.Box(0, 255, (4, 5, 3), np.uint8),
    "number": spaces.Box(-1, 1, (), np.float64),
    "discrete": spaces.Discrete(7),
    "shifted": spaces.Discrete(7, start=-3),
    "multidiscrete": spaces.MultiDiscrete([3, 4, 5]),
    "multibinary": spaces.MultiBinary(6),
    "dict": spaces.Dict({"a": spaces.Box(0, 1, (2,)), "b": spaces.Discrete(3)}),
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, (2, 2)))),
    "nested": spaces.Dict(
        {"one": spaces.Tuple((spaces.MultiBinary(2), spaces.Dict({"x": spaces.Discrete(2)})))}
    ),
}


class Sampler(gym.Env[Any, Any]):
    """Observes samples of its space; the reward identifies the action."""

    def __init__(self, observed: str = "box", taken: str = "discrete", horizon: int = 5) -> None:
        self.observation_space = deepcopy(SPACES[observed])
        self.action_space = deepcopy(SPACES[taken])
        self.horizon = horizon
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {"options": repr(options)} if options else {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.steps += 1
        ended = self.steps >= self.horizon
        info = {"steps": self.steps, "word": "odd"} if self.steps % 2 else {}
        return self.observation_space.sample(), weight(action), ended, False, info


class ModuleReporter(Sampler):
    """Reports the libraries that its process has imported."""

    def has_imported(self, library: str) -> bool:
        return library in sys.modules


def weight(action: Any) -> float:
    """A number that identifies an action."""
    flat = np.concatenate([np.ravel(part) for part in _leaves(action)]).astype(np.float64)
    return float(flat @ np.arange(1, len(flat) + 1))


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = tuple(value[key] for key in sorted(value))
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


SIZE = 64


class Checksummed(gym.Env[NDArray[np.int64], np.int64]):
    """Observes the number of steps and the action; the sum of an observation is 0."""

    observation_space = spaces.Box(-(2**62), 2**62, (SIZE,), np.int64)
    action_space = spaces.Discrete(2**31)

    def __init__(self, horizon: int = 10**9) -> None:
        self.horizon = horizon
        self.steps = 0
        self.seed = 0

    def seen(self, action: int) -> NDArray[np.int64]:
        row = np.arange(SIZE) * (self.steps + 1) + action
        row[0], row[1], row[2] = self.steps, action, self.seed
        row[-1] = -row[:-1].sum()
        return row

    def reset(
        self,
        *,
        seed: int | None = None,
        options: Any = None,  # noqa: ARG002 - Gymnasium's signature
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        self.steps = 0
        self.seed = self.seed if seed is None else seed
        return self.seen(0), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        self.steps += 1
        truncated = self.steps >= self.horizon
        return self.seen(int(action)), float(self.steps), False, truncated, {}

    def true_state(self) -> NDArray[np.int64]:
        return np.array([self.steps, self.seed])


class Gated(Checksummed):
    """A step waits until a file exists."""

    def __init__(self, gate: Path) -> None:
        super().__init__()
        self.gate = gate

    def step(self, action: np.int64) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        while not self.gate.exists():
            time.sleep(0.001)
        return super().step(action)


class Forking(Checksummed):
    """Has a forked child that never ends."""

    def __init__(self) -> None:
        super().__init__()
        self.child = os.fork()
        while self.child == 0:
            time.sleep(1)

    def child_pid(self) -> int:
        return self.child


def raise_an_exception(_: "Faulty") -> None:
    raise ValueError("a mistake in the environment")


def exit_at_once(_: "Faulty") -> None:
    os._exit(3)


def kill_oneself(_: "Faulty") -> None:
    os.kill(os.getpid(), signal.SIGKILL)


HANGS_VARIABLE = "CAGEPOOL_TEST_HANGS"  # folder where a hung process leaves its id


def note_hang() -> None:
    if HANGS_VARIABLE in os.environ:
        Path(os.environ[HANGS_VARIABLE], str(os.getpid())).touch()


def never_return(_: "Faulty") -> None:
    note_hang()
    while True:
        time.sleep(1)


def leave_python(_: "Faulty") -> None:
    raise SystemExit(4)


def unpicklable_info(env: "Faulty") -> None:
    env.info = {"function": lambda: None}


def no_dict_as_info(env: "Faulty") -> None:
    env.info = ["no", "dict"]  # type: ignore[assignment]


def info_in_itself(env: "Faulty") -> None:
    env.info = {"outer": {"key": 1}}
    env.info["outer"]["inner"] = env.info


class LoadedBy:
    """Unpickling it calls a function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def load_in_process(pid: int) -> None:
    if os.getpid() != pid:
        raise ValueError("unpickled in another process")


def info_that_exits(env: "Faulty") -> None:
    env.info = {"object": LoadedBy(sys.exit, 4)}


def info_for_workers_only(env: "Faulty") -> None:
    env.info = {"object": LoadedBy(load_in_process, os.getpid())}


def close_pipes(env: "Faulty") -> None:
    os.closerange(3, 256)
    never_return(env)  # else the worker is in its next environment when its end is noticed


def hold_gil(_: "Faulty") -> None:
    note_hang()
    ctypes.PyDLL(None).pause()


def wrong_shape(env: "Faulty") -> None:
    env.wrong = np.zeros(SIZE + 1, np.int64)


FAULTS: dict[str, Callable[["Faulty"], None]] = {
    "exception": raise_an_exception,
    "exit": exit_at_once,
    "kill": kill_oneself,
    "loop": never_return,
    "SystemExit": leave_python,
    "unpicklable info": unpicklable_info,
    "list as info": no_dict_as_info,
    "info in itself": info_in_itself,
    "info that exits": info_that_exits,
    "info for workers only": info_for_workers_only,
    "closed pipes": close_pipes,
    "GIL held": hold_gil,
    "wrong shape": wrong_shape,
}
HANGS = ("loop", "GIL held")  # noticed by the time limit only


class Faulty(Checksummed):
    """Fails if its action, or the option of a reset, is FAIL; or in its constructor."""

    FAIL = 2**31 - 1

    def __init__(self, fault: str, *, at_start: bool = False) -> None:
        super().__init__()
        self.fail = FAULTS[fault]
        self.info: dict[str, Any] = {}
        self.wrong: NDArray[np.int64] | None = None
        if at_start:
            self.fail(self)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        row, _ = super().reset(seed=seed)
        if options and options["fail"] == seed:
            self.fail(self)
        return (row if self.wrong is None else self.wrong), self.info

    def step(self, action: np.int64) -> tuple[NDArray[np.int64], float, bool, bool, dict[str, Any]]:
        if action == self.FAIL:
            self.fail(self)
        row, *others, _ = super().step(action)
        return (row if self.wrong is None else self.wrong), *others, self.info  # type: ignore[return-value]
