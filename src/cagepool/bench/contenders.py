"""Vector environments of ours and of others as contenders; each is closed with its stack."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.bench.dummy_envs import pipes_only
from cagepool.bench.measure import Clock, Contender, Settings, timed
from cagepool.envs import WorkerVectorEnv, make_vec
from cagepool.envs.env_fns import EnvFn
from cagepool.envs.workers.true_state import TrueStateMode
from cagepool.types import Int64s


@dataclass(frozen=True, kw_only=True)
class Ours:
    """Worker processes of ours."""

    name: str
    makers: list[EnvFn]
    workers: int
    min_ready: int = 0
    """How many results are waited for in free mode; 0: barrier mode."""
    true_state: TrueStateMode = "never"
    actions: int = 1
    """Actions are drawn from so many."""

    def __call__(self, stack: ExitStack) -> Contender:
        """Start them."""
        envs = stack.enter_context(
            WorkerVectorEnv(
                self.makers, workers=self.workers, timeout=None, true_state=self.true_state
            )
        )
        envs.reset(seed=0)
        settings: Settings = {"workers": self.workers}
        if self.min_ready:
            settings["min_ready"] = self.min_ready
            clock = _free_clock(
                envs, self.min_ready, random_actions(len(self.makers), self.actions)
            )
        else:
            clock = _step_clock(envs, len(self.makers), self.actions)
        return _contender(self.name, self.makers, clock, settings)


@dataclass(frozen=True, kw_only=True)
class Native:
    """Native games of CAGE-2 with random blue."""

    games: int
    settings: dict[str, Any] = field(default_factory=dict)
    """As `make_vec` takes them."""

    def __call__(self, _: ExitStack) -> Contender:
        """Make them."""
        envs = make_vec(self.games, **self.settings)
        envs.reset(seed=0)
        clock = _step_clock(envs, self.games, _core.ACTION_COUNT)
        shown: Settings = {"environments": self.games, **self.settings}
        return Contender(name="native", settings=shown, steps=self.games, clock=clock)


@dataclass(frozen=True, kw_only=True)
class Gymnasium:
    """Gymnasium's own: `sync`, `pipes`, or pipes without shared memory."""

    backend: str
    makers: list[EnvFn]
    actions: int = 1
    """Actions are drawn from so many."""

    def __call__(self, stack: ExitStack) -> Contender:
        """Start them."""
        if self.backend == "pipes only":
            envs: Any = pipes_only(self.makers)
        else:
            envs = make_vec(len(self.makers), env=self.makers, backend=self.backend)  # type: ignore[call-overload]
        stack.callback(envs.close)
        envs.reset(seed=0)
        clock = _step_clock(envs, len(self.makers), self.actions)
        return _contender(f"Gymnasium, {self.backend}", self.makers, clock, {})


def stable_baselines(makers: list[EnvFn], stack: ExitStack) -> Contender:
    """Stable-Baselines3's SubprocVecEnv."""
    library = import_module("stable_baselines3.common.vec_env")
    envs = library.SubprocVecEnv(makers, start_method="forkserver")
    stack.callback(envs.close)
    envs.reset()
    return _contender("SB3, SubprocVecEnv", makers, _step_clock(envs, len(makers), 1), {})


def ray_actors(makers: list[EnvFn], stack: ExitStack) -> Contender:
    """Ray's usual way: an actor an environment, all asked and all waited for."""
    library = import_module("ray")
    if not library.is_initialized():
        library.init(
            include_dashboard=False,
            object_store_memory=100 * 2**20,
            log_to_driver=False,
            logging_level="ERROR",
        )
        stack.callback(library.shutdown)
    kind = library.remote(num_cpus=0)(Actor)
    actors = [kind.remote(maker) for maker in makers]
    library.get([actor.reset.remote() for actor in actors])

    def step() -> None:
        library.get([actor.step.remote(0) for actor in actors])

    return _contender("Ray, an actor each", makers, timed(step), {})


class Actor:
    """An environment in a process of Ray's."""

    def __init__(self, maker: EnvFn) -> None:
        """Make it."""
        self._env = maker()

    def reset(self) -> object:
        """Start an episode."""
        return self._env.reset(seed=0)

    def step(self, action: int) -> object:
        """Step it."""
        return self._env.step(action)


def _contender(name: str, makers: list[EnvFn], clock: Clock, settings: Settings) -> Contender:
    shown: Settings = {"environments": len(makers), **settings}
    return Contender(name=name, settings=shown, steps=len(makers), clock=clock)


def random_actions(count: int, kinds: int = _core.ACTION_COUNT) -> Int64s:
    """Rows of actions, one a step, used in turn."""
    return np.random.default_rng(0).integers(0, kinds, (64, count))


def _step_clock(envs: Any, count: int, kinds: int) -> Clock:
    actions = list(random_actions(count, kinds))
    turn = 0

    def step() -> None:
        nonlocal turn
        turn += 1
        envs.step(actions[turn % len(actions)])

    return timed(step)


def _free_clock(envs: WorkerVectorEnv, min_ready: int, actions: Int64s) -> Clock:
    def clock(calls: int, /) -> float:
        """Seconds for so many steps of each environment on average."""
        wanted = calls * envs.num_envs
        turn = 0
        envs.send(actions[0])
        began_s = time.perf_counter()
        while wanted > 0:
            ready = envs.recv(min_ready)
            count = len(ready.ids)
            wanted -= count
            turn += 1
            envs.send(actions[turn % len(actions), :count], ready.ids)
        elapsed_s = time.perf_counter() - began_s
        envs.recv(envs.num_envs)  # what is still on its way
        return elapsed_s

    return clock
