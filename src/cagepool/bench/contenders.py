"""Contenders: vector environments of this package and of others, and dummy environments for them.

A contender is a function that starts the environments; the exit stack closes them.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, VectorEnv

from cagepool import _core
from cagepool.bench.measure import Contender, Timer, time_calls
from cagepool.bench.schema import Setting
from cagepool.envs import WorkerVectorEnv, make_vec
from cagepool.envs.env_fns import EnvFn
from cagepool.envs.workers.true_state import TrueStateMode
from cagepool.types import Float32s, Infos, Int64s

ACTION_ROWS = 64  # drawn before the measurement, used in turn


class DummyEnv(gym.Env[Float32s, np.int64]):
    """Environment whose step costs almost nothing; its spaces have the sizes of CAGE-2's."""

    observation_space = gym.spaces.Box(0, 1, (52,), np.float32)
    action_space = gym.spaces.Discrete(145)

    def __init__(self) -> None:
        """Allocate the observation, which is always zero."""
        self._observation = np.zeros(52, np.float32)

    def reset(
        self,
        *,
        seed: int | None = None,
        options: Infos | None = None,  # noqa: ARG002 - Gymnasium's signature
    ) -> tuple[Float32s, Infos]:
        """Begin an episode that never ends."""
        super().reset(seed=seed)
        return self._observation, {}

    def step(self, action: np.int64) -> tuple[Float32s, float, bool, bool, Infos]:  # noqa: ARG002
        """Return the same observation."""
        return self._observation, 0.0, False, False, {}

    def step_for(self, seconds: float) -> int:
        """Step without any communication; returns the number of steps in this time."""
        end = time.perf_counter() + seconds
        steps = 0
        while True:
            self.step(np.int64(0))
            if time.perf_counter() >= end:
                return steps
            steps += 1


class SleepingEnv(DummyEnv):
    """Environment that sleeps in each step: log-normal durations, at most 4 times the mean."""

    def __init__(self, mean_seconds: float) -> None:
        """Set the mean duration of a step."""
        super().__init__()
        self._mean_seconds = mean_seconds

    def step(self, action: np.int64) -> tuple[Float32s, float, bool, bool, Infos]:
        """Sleep."""
        # The mean of this clipped distribution is 1.
        factor = min(4.0, self.np_random.lognormal(-0.292, 0.8))
        time.sleep(factor * self._mean_seconds)
        return super().step(action)


class ComputingEnv(DummyEnv):
    """Environment that computes in each step."""

    def __init__(self, cpu_seconds: float) -> None:
        """Set the CPU time of a step."""
        super().__init__()
        self._cpu_seconds = cpu_seconds

    def step(self, action: np.int64) -> tuple[Float32s, float, bool, bool, Infos]:
        """Compute."""
        end = time.thread_time() + self._cpu_seconds
        while time.thread_time() < end:
            pass
        return super().step(action)


@dataclass(frozen=True, kw_only=True)
class Native:
    """Native games of CAGE-2 with random blue actions."""

    num_envs: int
    settings: dict[str, Any] = field(default_factory=dict)
    """Arguments of `make_vec`."""

    def __call__(self, _: ExitStack) -> Contender:
        """Create the games."""
        envs = make_vec(self.num_envs, **self.settings)
        envs.reset(seed=0)
        return Contender(
            name="native",
            settings={"environments": self.num_envs, **self.settings},
            steps_per_call=self.num_envs,
            timer=_step_timer(envs, self.num_envs, _core.ACTION_COUNT),
        )


class SharedWorkers:
    """Worker processes that several contenders of a group step, each in its turn."""

    def __init__(self, env_fns: Sequence[EnvFn], workers: int) -> None:
        """Set what the first contender starts."""
        self.env_fns = env_fns
        self.workers = workers
        self._envs: WorkerVectorEnv | None = None

    def __call__(self, stack: ExitStack) -> WorkerVectorEnv:
        """Start the workers, or return those that the same stack closes."""
        if self._envs is None:
            self._envs = _start_workers(self.env_fns, self.workers, "never", stack)
            stack.callback(self._forget)
        return self._envs

    def _forget(self) -> None:
        self._envs = None


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Worker processes of this package."""

    name: str
    env_fns: Sequence[EnvFn]
    workers: int
    shared: SharedWorkers | None = None
    """Processes to use instead of own ones."""
    min_ready: int = 0
    """Results per `recv`; 0: `step`, which waits for all environments."""
    true_state: TrueStateMode = "never"
    action_count: int = 1

    def __call__(self, stack: ExitStack) -> Contender:
        """Start the workers."""
        count = len(self.env_fns)
        if self.shared is None:
            envs = _start_workers(self.env_fns, self.workers, self.true_state, stack)
        else:
            envs = self.shared(stack)
        settings: dict[str, Setting] = {"environments": count, "workers": self.workers}
        if self.min_ready:
            settings["min_ready"] = self.min_ready
            timer = _async_timer(envs, self.min_ready, random_actions(count, self.action_count))
        else:
            timer = _step_timer(envs, count, self.action_count)
        return Contender(name=self.name, settings=settings, steps_per_call=count, timer=timer)


@dataclass(frozen=True, kw_only=True)
class BareLoops:
    """One process per environment, which steps it in a loop without any communication."""

    name: str
    shared: SharedWorkers
    """As many processes as environments."""

    def __call__(self, stack: ExitStack) -> Contender:
        """Start the processes."""
        count = len(self.shared.env_fns)
        envs = self.shared(stack)
        steps_per_second = 10.0 * count

        def timer(calls: int, /) -> float:
            """Return the seconds of `calls` steps per environment on average."""
            nonlocal steps_per_second
            seconds = calls * count / steps_per_second
            steps = 0
            while not steps:
                steps = sum(envs.call("step_for", seconds))
                seconds *= 1 if steps else 2
            steps_per_second = steps / seconds
            return calls * count / steps_per_second

        settings: dict[str, Setting] = {"environments": count, "workers": count}
        return Contender(name=self.name, settings=settings, steps_per_call=count, timer=timer)


@dataclass(frozen=True, kw_only=True)
class Gymnasium:
    """Vector environments of Gymnasium: `sync`, `pipes`, or `pipes only` (no shared memory)."""

    backend: str
    env_fns: Sequence[EnvFn]
    action_count: int = 1

    def __call__(self, stack: ExitStack) -> Contender:
        """Start the environments."""
        if self.backend == "pipes only":
            envs: Any = pipes_only(self.env_fns)
        else:
            envs = make_vec(len(self.env_fns), env=self.env_fns, backend=self.backend)  # type: ignore[call-overload]
        stack.callback(envs.close)
        envs.reset(seed=0)
        timer = _step_timer(envs, len(self.env_fns), self.action_count)
        return _peer(f"Gymnasium, {self.backend}", self.env_fns, timer)


def pipes_only(env_fns: Sequence[EnvFn]) -> VectorEnv[Any, Any, Any]:
    """Create Gymnasium's AsyncVectorEnv without shared memory."""
    return AsyncVectorEnv(env_fns, shared_memory=False, context="forkserver")


def sb3_subproc(env_fns: Sequence[EnvFn], stack: ExitStack) -> Contender:
    """Start Stable-Baselines3's SubprocVecEnv."""
    from stable_baselines3.common.vec_env import SubprocVecEnv  # noqa: PLC0415 - optional

    envs = SubprocVecEnv(list(env_fns), start_method="forkserver")
    stack.callback(envs.close)
    envs.reset()
    return _peer("SB3, SubprocVecEnv", env_fns, _step_timer(envs, len(env_fns), 1))


def ray_actors(env_fns: Sequence[EnvFn], stack: ExitStack) -> Contender:
    """Start one Ray actor per environment; each step waits for all of them."""
    import ray  # noqa: PLC0415 - optional, takes seconds to import

    if not ray.is_initialized():
        ray.init(
            include_dashboard=False,
            object_store_memory=100 * 2**20,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        stack.callback(ray.shutdown)
    actor_class: Any = ray.remote(num_cpus=0)(EnvActor)
    actors = [actor_class.remote(env_fn) for env_fn in env_fns]
    ray.get([actor.reset.remote() for actor in actors])

    def step() -> None:
        ray.get([actor.step.remote(0) for actor in actors])

    return _peer("Ray, one actor per environment", env_fns, time_calls(step))


class EnvActor:
    """Environment in a Ray actor."""

    def __init__(self, env_fn: EnvFn) -> None:
        """Create the environment."""
        self._env = env_fn()

    def reset(self) -> object:
        """Begin an episode."""
        return self._env.reset(seed=0)

    def step(self, action: int) -> object:
        """Step the environment."""
        return self._env.step(action)


def random_actions(num_envs: int, action_count: int = _core.ACTION_COUNT) -> Int64s:
    """Random actions, (ACTION_ROWS, num_envs)."""
    return np.random.default_rng(0).integers(0, action_count, (ACTION_ROWS, num_envs))


def _start_workers(
    env_fns: Sequence[EnvFn], workers: int, true_state: TrueStateMode, stack: ExitStack
) -> WorkerVectorEnv:
    envs = stack.enter_context(
        WorkerVectorEnv(env_fns, workers=workers, timeout=None, true_state=true_state)
    )
    envs.reset(seed=0)
    return envs


def _peer(name: str, env_fns: Sequence[EnvFn], timer: Timer) -> Contender:
    count = len(env_fns)
    return Contender(name=name, settings={"environments": count}, steps_per_call=count, timer=timer)


def _step_timer(envs: Any, num_envs: int, action_count: int) -> Timer:
    actions = cycle(random_actions(num_envs, action_count))
    return time_calls(lambda: envs.step(next(actions)))


def _async_timer(envs: WorkerVectorEnv, min_ready: int, actions: Int64s) -> Timer:
    def timer(calls: int, /) -> float:
        """Return the seconds of `calls` steps per environment on average."""
        remaining = calls * envs.num_envs
        row = 0
        envs.send(actions[0])
        start = time.perf_counter()
        while remaining > 0:
            ready = envs.recv(min_ready)
            received = len(ready.ids)
            remaining -= received
            row += 1
            envs.send(actions[row % len(actions), :received], ready.ids)
        elapsed = time.perf_counter() - start
        envs.recv(envs.num_envs)
        return elapsed

    return timer
