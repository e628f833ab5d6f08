"""Profile of training or stepping: exclusive stages whose times sum to the wall time.

The code that is profiled names its stages with `cagepool._stages.stage`; this module records them,
subtracts the cost of the recording, and writes JSON and flame graphs for speedscope.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

import msgspec
import numpy as np
from gymnasium.vector.utils import create_empty_array
from msgspec import Struct

from cagepool._stages import Recording, StageName, StageTimes, record, stage
from cagepool.envs import NativeVectorEnv, WorkerVectorEnv
from cagepool.envs.make import CYBORG, is_cage2, make_training_vec
from cagepool.envs.spaces import map_tree
from cagepool.envs.workers.pool import PoolConfig
from cagepool.sim import compliance, dtypes
from cagepool.sim.compliance import ComplianceTracker
from cagepool.sim.settings import DEFAULT_MAX_STEPS, GameSettings
from cagepool.types import Bools, Int64s

MAIN = "main"
STAGES: tuple[StageName, ...] = get_args(StageName)
MAX_OVERHEAD = 0.01  # of the wall time, while steps are recorded
MAX_BLOCKS = 200  # of steps, each recorded or not
MIN_BLOCK_STEPS = 5
ACTION_ROWS = 64  # drawn before the measurement, used in turn
OUTCOME_BYTES = 8 + 1 + 1  # per environment: reward, terminated, truncated
CALIBRATION_TRIALS, CALIBRATION_CALLS = 50, 50
SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"

Kind: TypeAlias = Literal["train", "step"]


class Traffic(Struct, frozen=True):
    """Data exchanged with other processes, per step of all environments."""

    messages: float | None = None
    """None: not counted, as of Gymnasium's pipes."""
    message_bytes: float | None = None
    array_bytes: int | None = None
    """Written to arrays that both sides see; None: unknown."""


class Overhead(Struct, frozen=True):
    """Cost of the recording; it is the stage "profiler"."""

    entries: int
    """Stages entered while recording."""
    seconds_per_entry: float
    share: float
    """Of the wall time."""
    recorded_share: float
    """Share of the wall time in which stages were recorded; they stand for the rest."""


class Profile(Struct, frozen=True, kw_only=True):
    """Times per stage and thread."""

    kind: Kind
    settings: dict[str, Any]
    machine: dict[str, str | int | float | None]
    load_after: float
    busy_elsewhere: float | None
    """Share of all cores that other processes and tenants used; None: unknown."""
    stolen: float | None
    environments: int
    steps: int
    """Steps of all environments together."""
    wall_seconds: float
    stages: dict[str, float]
    """Seconds of the main thread by stage."""
    threads: dict[str, StageTimes]
    """Call tree of stages per thread; each total is the wall time."""
    overhead: Overhead
    traffic: Traffic

    def thread_stages(self, thread: str = MAIN) -> dict[str, float]:
        """Seconds of a thread by stage, in the order of `StageName`."""
        return ordered_stages(self.threads[thread])


def ordered_stages(times: StageTimes) -> dict[str, float]:
    """Exclusive seconds by stage, in the order of `StageName`."""
    seconds = times.by_stage()
    return {name: seconds[name] for name in STAGES if name in seconds}


def profile_training(config: Any, train: Callable[[], object]) -> Profile:
    """Profile a training.

    Args:
        config: Its configuration, a `TrainConfig`.
        train: Function that trains.
    """
    if config.env.backend == "ray":
        raise ValueError(
            "a profile needs environments of this process or of its workers, got backend ray"
        )
    with _observe() as observed, record() as recording:
        train()
    steps = _calls(recording, "env_step")
    return _to_profile(
        kind="train",
        settings=config.as_dict(),
        observed=observed,
        recording=recording,
        cost=measure_entry_cost(),
        environments=config.env.n_envs,
        steps=steps,
        traffic=_traffic(recording, steps),
    )


@dataclass(frozen=True, kw_only=True)
class StepConfig:
    """Settings of a profile of stepping."""

    env: str = "cagepool/CAGE2-v0"
    """cagepool/CAGE2-v0, cyborg (the original), a Gymnasium id, or module:function."""
    backend: str = "auto"
    """Where the environments run: auto, native, workers, sync or pipes."""
    n_envs: int = 100
    """Number of environments."""
    steps: int = 20_000
    """Steps of all environments together."""
    red_agent: str = "B_lineAgent"
    """Red agent of CAGE-2, as in training."""
    max_steps: int = DEFAULT_MAX_STEPS
    """Steps per episode of CAGE-2."""
    order: str | None = None
    """Workflow order with which compliance is measured, by name or written out."""
    true_state: str = "never"
    """When the true state is read: every, end, never, or a number of steps."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        """Check the settings that do not need the environments."""
        for name in ("n_envs", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        self.period  # noqa: B018 - checks true_state
        if self.order is not None:
            compliance.parse_order(self.order)
            if not self.has_true_state:
                raise ValueError(f"an order needs CAGE-2 or cyborg, got {self.env}")
        if self.period is not None and not self.has_true_state:
            raise ValueError(f"true_state needs CAGE-2 or cyborg, got {self.env}")

    @property
    def has_true_state(self) -> bool:
        """Whether the environment is CAGE-2."""
        return is_cage2(self.env) or self.env == CYBORG

    @property
    def period(self) -> int | None:
        """Steps between two reads of the true state; 0: at the end of episodes, None: never."""
        named = {"every": 1, "end": 0, "never": None}
        if self.true_state in named:
            return named[self.true_state]
        if self.true_state.isdecimal() and int(self.true_state) > 0:
            return int(self.true_state)
        raise ValueError(
            "true_state must be every, end, never or a number of steps of at least 1, "
            f"got {self.true_state!r}"
        )


def profile_steps(config: StepConfig, progress: Callable[[int], object]) -> Profile:
    """Profile environments that are stepped with random actions.

    A stage costs about as much as the step of a few native games. Blocks of steps are therefore
    recorded only while the overhead is below `MAX_OVERHEAD`; recorded blocks stand for the others.
    """
    cost = measure_entry_cost()
    with Stepper(config) as stepper:
        with _observe() as observed, record() as recording:
            for count in _block_sizes(config.steps):
                if recording.entries * cost.total <= MAX_OVERHEAD * recording.elapsed:
                    stepper.play(count)
                else:
                    with recording.pause():
                        stepper.play(count)
                progress(stepper.steps)
        traffic = _traffic(recording, _calls(recording, "env_step"), stepper.envs)
    return _to_profile(
        kind="step",
        settings=asdict(config),
        observed=observed,
        recording=recording,
        cost=cost,
        environments=config.n_envs,
        steps=stepper.steps,
        traffic=traffic,
    )


class Stepper:
    """Steps environments with random actions, and reads the true state."""

    def __init__(self, config: StepConfig) -> None:
        """Create and reset the environments."""
        self.envs = _make_envs(config)
        self.steps = 0
        self._period = None if isinstance(self.envs, WorkerVectorEnv) else config.period
        self._tracker = None
        if config.order is not None and not isinstance(self.envs, NativeVectorEnv):
            self._tracker = ComplianceTracker(
                config.n_envs, config.order, knowledge="true", definition="host", alignment=0.0
            )
        rng = np.random.default_rng(config.seed)
        action_count = self.envs.single_action_space.n
        self._actions: list[Int64s] = list(
            rng.integers(0, action_count, (ACTION_ROWS, config.n_envs))
        )
        self.envs.reset(seed=config.seed)

    def play(self, count: int) -> None:
        """Step all environments `count` times."""
        for _ in range(count):
            actions = self._actions[self.steps % ACTION_ROWS]
            if self._tracker is not None:
                with stage("compliance"):
                    self._tracker.update(self.envs.true_state, actions)
            with stage("env_step"):
                _, _, terminations, truncations, _ = self.envs.step(actions)
            self.steps += 1
            if self._period is not None:
                with stage("compliance"):
                    self._read_true_state(terminations, truncations)

    def _read_true_state(self, terminations: Bools, truncations: Bools) -> None:
        """Read the true state if the period has passed."""
        is_due = (
            self.steps % self._period == 0 if self._period else np.any(terminations | truncations)
        )
        if not is_due:
            return
        if isinstance(self.envs, NativeVectorEnv):
            dtypes.as_bytes(self.envs.batch.true_state).copy()
        else:
            self.envs.call("true_state")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.envs.close()


def _make_envs(config: StepConfig) -> Any:
    game = GameSettings(red=config.red_agent, max_steps=config.max_steps)
    backend = "workers" if config.backend == "auto" and config.env == CYBORG else config.backend
    if is_cage2(config.env) and backend in ("auto", "native"):
        game = replace(game, order=config.order)
        return make_training_vec(config.n_envs, config.env, backend, game)
    if config.order is not None and backend != "workers":
        raise ValueError(
            f"an order needs native games, or CAGE-2 or cyborg with backend workers, "
            f"got {config.env} with {config.backend}"
        )
    true_state: Any = PoolConfig.true_state
    if backend == "workers" and config.has_true_state:
        every_step = config.order is not None or config.period == 1
        true_state = "every" if every_step else config.period or config.true_state
    return make_training_vec(config.n_envs, config.env, backend, game, true_state=true_state)


def _block_sizes(steps: int) -> list[int]:
    """Split the steps into blocks."""
    blocks = max(1, min(MAX_BLOCKS, steps // MIN_BLOCK_STEPS))
    bounds = np.linspace(0, steps, blocks + 1).astype(int)
    return [int(size) for size in np.diff(bounds)]


class EntryCost(NamedTuple):
    """Seconds that one recorded stage costs."""

    inside: float
    """Counted as time of the stage."""
    outside: float
    """Counted as time of the stage around it."""

    @property
    def total(self) -> float:
        """Seconds per entry."""
        return self.inside + self.outside


def measure_entry_cost(clock: Callable[[], float] = time.perf_counter) -> EntryCost:
    """Measure the cost of a stage with empty stages: median of some trials."""
    inside, outside = [], []
    for _ in range(CALIBRATION_TRIALS):
        with record(clock) as recording:
            for _ in range(CALIBRATION_CALLS):
                with stage("other"):
                    pass
        times = recording.threads[MAIN]
        (empty,) = times.children
        inside.append(empty.seconds / CALIBRATION_CALLS)
        outside.append(times.seconds / CALIBRATION_CALLS)
    return EntryCost(median(inside), median(outside))


def corrected_times(times: StageTimes, cost: EntryCost) -> StageTimes:
    """Correct the times of a thread; their total stays the same.

    The cost of the recording becomes the stage "profiler". Time that was not recorded is
    distributed to the stages that were, in proportion to their times.
    """
    cleaned = _subtract_cost(times, cost)
    profiler = StageTimes("profiler", times.total - cleaned.total, 0)
    extrapolated = _extrapolate(cleaned)
    return replace(extrapolated, children=(*extrapolated.children, profiler))


def _subtract_cost(times: StageTimes, cost: EntryCost) -> StageTimes:
    own = times.calls - times.counted
    entered = sum(child.calls - child.counted for child in times.children)
    seconds = times.seconds - own * cost.inside - entered * cost.outside
    children = tuple(_subtract_cost(child, cost) for child in times.children)
    return replace(times, seconds=max(0.0, seconds), children=children)


def _extrapolate(times: StageTimes) -> StageTimes:
    recorded = tuple(child for child in times.children if child.name != "unsampled")
    sampled = replace(times, children=recorded)
    return _scale(sampled, times.total / sampled.total) if sampled.total else times


def _scale(times: StageTimes, factor: float) -> StageTimes:
    children = tuple(_scale(child, factor) for child in times.children)
    return replace(
        times,
        seconds=factor * times.seconds,
        calls=round(factor * times.calls),
        counted=round(factor * times.counted),
        children=children,
    )


@dataclass
class _Observed:
    """Machine and load during the recording."""

    machine: dict[str, str | int | float | None]
    load_after: float = 0.0
    busy_elsewhere: float | None = None
    stolen: float | None = None


@contextmanager
def _observe() -> Iterator[_Observed]:
    from cagepool.bench import system_load  # noqa: PLC0415 - needs psutil

    observed = _Observed(system_load.describe_machine())
    monitor = system_load.LoadMonitor()
    yield observed
    observed.load_after = system_load.load_average()
    if (load := monitor.other_load()) is not None:
        observed.busy_elsewhere, observed.stolen = load


def _to_profile(
    *, observed: _Observed, recording: Recording, cost: EntryCost, **about: Any
) -> Profile:
    wall_seconds = recording.threads[MAIN].total
    threads = {name: corrected_times(times, cost) for name, times in recording.threads.items()}
    overhead_seconds = sum(times.by_stage()["profiler"] for times in threads.values())
    unsampled = recording.threads[MAIN].by_stage()["unsampled"]
    overhead = Overhead(
        entries=recording.entries,
        seconds_per_entry=cost.total,
        share=overhead_seconds / wall_seconds,
        recorded_share=1 - unsampled / wall_seconds,
    )
    return Profile(
        **about,
        **vars(observed),
        wall_seconds=wall_seconds,
        stages=ordered_stages(threads[MAIN]),
        threads=threads,
        overhead=overhead,
    )


def _calls(recording: Recording, name: StageName) -> int:
    """Number of times that a stage was recorded in all threads."""
    return sum(times.calls_of(name) for times in recording.threads.values())


def _traffic(recording: Recording, steps: int, envs: Any = None) -> Traffic:
    if not steps:
        return Traffic()
    is_counted = envs is None or not hasattr(envs, "parent_pipes")
    return Traffic(
        messages=recording.messages / steps if is_counted else None,
        message_bytes=recording.message_bytes / steps if is_counted else None,
        array_bytes=None if envs is None else array_bytes(envs),
    )


def array_bytes(envs: Any) -> int:
    """Bytes that a step writes to arrays that both sides see, without true states."""
    if isinstance(envs, NativeVectorEnv):
        batch = envs.batch
        outputs = (batch.observations, batch.rewards, batch.truncations, batch.moves)
        return sum(array.nbytes for array in (*outputs, batch.alignment, batch.counters))
    spaces = [envs.single_observation_space]
    outcome_bytes = 0
    if isinstance(envs, WorkerVectorEnv):
        spaces.append(envs.single_action_space)
        outcome_bytes = OUTCOME_BYTES * envs.num_envs
    elif not hasattr(envs, "parent_pipes"):
        return 0
    sizes: list[int] = []
    for space in spaces:
        map_tree(lambda array: sizes.append(array.nbytes), create_empty_array(space, envs.num_envs))
    return sum(sizes) + outcome_bytes


def write_profile(profile: Profile, path: Path) -> None:
    """Write a profile as JSON."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(profile), indent=1) + b"\n")


def write_speedscope(profile: Profile, path: Path) -> None:
    """Write the call trees as a flame graph for https://www.speedscope.app."""
    path.write_bytes(msgspec.json.encode(to_speedscope(profile)))


def to_speedscope(profile: Profile) -> dict[str, Any]:
    """Convert to speedscope's file format: one sampled profile per thread, weighted by seconds."""
    profiles = []
    for thread, times in profile.threads.items():
        stacks = list(_stacks(times, []))
        profiles.append(
            {
                "type": "sampled",
                "name": thread,
                "unit": "seconds",
                "startValue": 0,
                "endValue": sum(seconds for _, seconds in stacks),
                "samples": [[STAGES.index(name) for name in stack] for stack, _ in stacks],
                "weights": [seconds for _, seconds in stacks],
            }
        )
    return {
        "$schema": SPEEDSCOPE_SCHEMA,
        "exporter": "cagepool",
        "name": f"cagepool profile -- {profile.kind}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in STAGES]},
        "profiles": profiles,
    }


def _stacks(times: StageTimes, parents: list[StageName]) -> Iterator[tuple[list[StageName], float]]:
    """Every stage with the stages around it, outermost first, and its exclusive seconds."""
    stack = [*parents, times.name]
    if times.seconds > 0:
        yield stack, times.seconds
    for child in times.children:
        yield from _stacks(child, stack)
