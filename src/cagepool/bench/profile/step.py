"""Where the time of a step of many environments goes."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from cagepool.bench.profile.clock import Spot, Stage, StageClock
from cagepool.bench.profile.places import notes_on, watch_envs
from cagepool.bench.profile.result import Profile, Subject, result_of
from cagepool.bench.profile.slices import Slices
from cagepool.bench.profile.traffic import Traffic
from cagepool.envs import NativeVectorEnv, WorkerVectorEnv
from cagepool.envs.env_fns import is_cage2
from cagepool.envs.make import CYBORG, make_training_vec
from cagepool.sim import dtypes, orders
from cagepool.sim.compliance import ComplianceTracker
from cagepool.types import Bools, Int64s

SLICES = 200  # at most
LEAST = 5  # steps of a slice, or what is between slices would weigh too much
ROWS = 64  # of actions, used in turn


@dataclass(frozen=True, kw_only=True)
class StepConfig:
    """What is stepped, and how often."""

    env: str = "cagepool/CAGE2-v0"
    """cagepool/CAGE2-v0, cyborg (the real one), any id that Gymnasium knows, or module:function."""
    backend: str = "auto"
    """Where the environments run: auto, native, workers, sync or pipes."""
    n_envs: int = 100
    """Environments stepped side by side."""
    steps: int = 20_000
    """Steps of all of them."""
    red_agent: str = "B_lineAgent"
    """Red of CAGE-2, as in training."""
    max_steps: int = 100
    """Steps of an episode of CAGE-2."""
    order: str | None = None
    """Workflow order with which compliance is measured, by name or written out."""
    true_state: str = "never"
    """When the true state is taken: every, end, never, or a number of steps."""
    seed: int = 0
    """Decides all luck."""

    def __post_init__(self) -> None:
        """Check what does not need the environments."""
        for name in ("n_envs", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        self.period  # noqa: B018 - refuses what it can't read
        if self.order is not None:
            orders.parse_order(self.order)
            if not self.has_truth:
                raise ValueError(f"an order needs CAGE-2 or cyborg, got {self.env}")
        if self.period is not None and not self.has_truth:
            raise ValueError(f"true_state needs CAGE-2 or cyborg, got {self.env}")

    @property
    def has_truth(self) -> bool:
        """Whether its true state is known to us."""
        return is_cage2(self.env) or self.env == CYBORG

    @property
    def period(self) -> int | None:
        """Steps between two looks at the true state; 0: at ends, none: never."""
        known = {"every": 1, "end": 0, "never": None}
        if self.true_state in known:
            return known[self.true_state]
        if self.true_state.isdecimal() and int(self.true_state) > 0:
            return int(self.true_state)
        raise ValueError(
            "true_state must be every, end, never or a number of steps of at least 1, "
            f"got {self.true_state!r}"
        )


def profile_steps(config: StepConfig, progress: Callable[[int], object]) -> Profile:
    """Step environments with actions drawn beforehand; `progress` is told the steps done.

    Raises:
        ValueError: the environments can't be made or don't do what is asked.
    """
    subject = Subject.now("step", asdict(config))
    clock = StageClock()
    slices = Slices(clock, Spot("Stepping.play", Stage.OTHER))
    with Stepping(config) as stepping:
        traffic = Traffic(stepping.envs, slices.first)
        watch_envs(slices.instruments, clock, stepping.envs)
        slices.instruments.watch(clock, stepping, "look", Stage.TRUTH)
        slices.instruments.watch(clock, stepping, "see", Stage.TRUTH)
        with clock.running(Spot("step", Stage.OTHER)):
            for count in _counts(config.steps):
                slices.run(lambda count=count: stepping.play(count), lambda count=count: count)  # type: ignore[misc]
                progress(stepping.done)
        per_step = traffic.per_step(slices.turns[0].steps)
        return result_of(subject, clock, slices, per_step, notes_on(stepping.envs))


def _counts(steps: int) -> list[int]:
    """Steps of each slice."""
    slices = max(1, min(SLICES, steps // LEAST))
    bounds = np.linspace(0, steps, slices + 1).astype(int)
    return [int(count) for count in np.diff(bounds)]


class Stepping:
    """Environments that are stepped for nothing else."""

    def __init__(self, config: StepConfig) -> None:
        """Make and reset them; use it in a `with`."""
        self.envs = _made(config)
        self.done = 0
        self._period = None if isinstance(self.envs, WorkerVectorEnv) else config.period
        self._judge = None
        if config.order is not None and not isinstance(self.envs, NativeVectorEnv):
            self._judge = ComplianceTracker(
                config.n_envs, config.order, knowledge="true", definition="host", alignment=0.0
            )
        rng = np.random.default_rng(config.seed)
        kinds = self.envs.single_action_space.n
        self._actions: list[Int64s] = list(rng.integers(0, kinds, (ROWS, config.n_envs)))
        self.envs.reset(seed=config.seed)

    def play(self, count: int) -> None:
        """Step all environments so many times."""
        for _ in range(count):
            actions = self._actions[self.done % ROWS]
            if self._judge is not None:
                self.see(actions)
            _, _, terminations, truncations, _ = self.envs.step(actions)
            self.done += 1
            if self._period is not None:
                self.look(terminations, truncations)

    def see(self, actions: Int64s) -> None:
        """Judge actions by the true states that workers carry."""
        assert self._judge is not None
        self._judge.update(self.envs.true_state, actions)

    def look(self, terminations: Bools, truncations: Bools) -> None:
        """Take the true state if it is time."""
        is_due = (
            self.done % self._period == 0 if self._period else np.any(terminations | truncations)
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


def _made(config: StepConfig) -> Any:
    game: dict[str, Any] = {"red": config.red_agent, "max_steps": config.max_steps}
    game |= {"edition": "2.1", "green": False}
    backend = "workers" if config.backend == "auto" and config.env == CYBORG else config.backend
    if is_cage2(config.env) and backend in ("auto", "native"):
        return make_training_vec(config.n_envs, config.env, backend, game | {"order": config.order})
    if config.order is not None and backend != "workers":
        raise ValueError(
            f"an order needs native games, or CAGE-2 or cyborg with backend workers, "
            f"got {config.env} with {config.backend}"
        )
    if backend == "workers" and config.has_truth:
        every_step = config.order is not None or config.period == 1
        game["true_state"] = "every" if every_step else config.period or config.true_state
    return make_training_vec(config.n_envs, config.env, backend, game)
