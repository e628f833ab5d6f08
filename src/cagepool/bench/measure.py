"""Contenders, dummy environments for them, and interleaved timing: drift affects all alike."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count, cycle
from multiprocessing import get_context
from typing import Any, Protocol, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, VectorEnv

from cagepool import _core
from cagepool.bench.schema import Groups, Measurement, Repetitions, Setting, Settings, significant
from cagepool.envs import WorkerVectorEnv, make_vec
from cagepool.envs.vector_args import EnvFn
from cagepool.envs.workers.true_state import TrueStateMode
from cagepool.types import Float32s, Infos, Int64s

MAX_REFERENCE_SECONDS = 0.2  # per repetition
Progress: TypeAlias = Callable[[str, int, int], object]
"""Callback with the present group, its finished repetitions and their total."""


class Timer(Protocol):
    """Runs a contender and measures the time."""

    def __call__(self, calls: int, /) -> float:
        """Return the seconds of `calls` calls."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """Something to measure."""

    name: str
    settings: Settings
    steps_per_call: int
    """Environment steps per call."""
    timer: Timer


MakeContender: TypeAlias = Callable[[ExitStack], Contender]
"""Creates a contender; the stack closes it after its group."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Duration of a measurement."""

    repetitions: int = 15
    """Per contender."""
    seconds: float = 0.2
    """Approximate duration of one repetition."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.repetitions < 2:  # quartiles need two
            raise ValueError(f"repetitions must be at least 2, got {self.repetitions}")
        if self.seconds <= 0:
            raise ValueError(f"seconds must be more than 0, got {self.seconds}")


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Output of one bench: a `BenchResult` without its machine."""

    groups: Groups = field(default_factory=dict)
    ratios: dict[str, float]
    facts: dict[str, Any] = field(default_factory=dict)


def time_calls(call: Callable[[], object]) -> Timer:
    """Return a timer of a function of this process."""

    def timer(calls: int, /) -> float:
        repeat = range(calls)
        start = time.perf_counter()
        for _ in repeat:
            call()
        return time.perf_counter() - start

    return timer


def measure_groups(
    groups: Iterable[tuple[str, Sequence[MakeContender]]],
    pace: Pace,
    progress: Progress,
    preload: Sequence[str] = (),
) -> Groups:
    """Measure group after group; contenders exist only while their group is measured.

    Args:
        groups: Names, and functions that create the contenders.
        pace: Duration per contender.
        progress: Called after each repetition.
        preload: Modules that forked processes of other libraries find imported.
    """
    _preload(preload)
    results: Groups = {}
    for name, makers in groups:
        with ExitStack() as stack:
            contenders = [make(stack) for make in makers]
            total = pace.repetitions * len(contenders)
            finished = (progress(name, number, total) for number in count(1))
            progress(name, 0, total)
            results[name] = measure_interleaved(contenders, pace, finished.__next__)
    return results


def measure_interleaved(
    contenders: Iterable[Contender], pace: Pace, on_repetition: Callable[[], object]
) -> list[Measurement]:
    """Measure contenders in turn, after a warm-up.

    The reference workload runs in every round: `compare` divides by its time to remove changes of
    the machine's speed.
    """
    runs = [_Run(contender, pace.seconds) for contender in contenders]
    reference = _Run(reference_workload(), min(pace.seconds, MAX_REFERENCE_SECONDS))
    for _ in range(pace.repetitions):
        reference.repeat()
        for run in runs:
            run.repeat()
            on_repetition()
    reference_seconds = [significant(seconds / reference.calls) for seconds in reference.seconds]
    return [run.measurement(reference_seconds) for run in runs]


def reference_workload() -> Contender:
    """Fixed work that does not use this package: half Python, half NumPy."""
    values = np.random.default_rng(0).random(2000)

    def work() -> None:
        total = 0
        for number in range(2000):
            total += number * number
        for _ in range(4):
            np.sort(values)

    return Contender(name="reference", settings={}, steps_per_call=1, timer=time_calls(work))


class _Run:
    """Repetitions of one contender."""

    def __init__(self, contender: Contender, seconds: float) -> None:
        """Warm up: find the number of calls that take about `seconds`."""
        self.contender = contender
        self.seconds: list[float] = []
        self.warm_up_seconds = 0.0
        calls = 1
        while (elapsed := self._warm_up(calls)) < seconds / 2:
            calls = max(2 * calls, round(calls * seconds / max(elapsed, 1e-9) / 2))
        self.calls = max(1, round(calls * seconds / elapsed))

    def _warm_up(self, calls: int) -> float:
        elapsed = self.contender.timer(calls)
        self.warm_up_seconds += elapsed
        return elapsed

    def repeat(self) -> None:
        self.seconds.append(self.contender.timer(self.calls))

    def measurement(self, reference_seconds: list[float]) -> Measurement:
        repetitions = Repetitions(
            calls=self.calls,
            steps_per_call=self.contender.steps_per_call,
            warm_up_seconds=significant(self.warm_up_seconds),
            seconds=[significant(seconds) for seconds in self.seconds],
            reference_seconds=reference_seconds,
        )
        return Measurement.of(self.contender.name, self.contender.settings, repetitions)


def _preload(modules: Sequence[str]) -> None:
    """Import modules once in the fork server, which saves most of the start-up time."""
    wanted = ("cagepool.bench.measure", "stable_baselines3.common.vec_env", *modules)
    installed = [name for name in wanted if find_spec(name.partition(".")[0])]
    get_context("forkserver").set_forkserver_preload(installed)


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
