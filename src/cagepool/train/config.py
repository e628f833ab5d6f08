"""The settings of a training run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar, get_args, get_type_hints

from cagepool import _core
from cagepool.envs.make import Backend
from cagepool.envs.registration import ENVIRONMENT_ID
from cagepool.evaluate.policy import ACTIVATIONS, CAGE_ENVS
from cagepool.sim import orders
from cagepool.sim.features import InputConfig, action_set
from cagepool.sim.names import MIX, RED_ALIASES, TRAINABLE_REDS, edition_code
from cagepool.train.early_stopping import GateConfig

BACKENDS = (*get_args(Backend), "ray")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What is played, how much of it, and how the run is looked after."""

    env: str = ENVIRONMENT_ID
    """cagepool/CAGE2-v0, cyborg (the real one), any id that Gymnasium knows, or module:function."""
    backend: str = "auto"
    """Where the environments run: auto, native, workers, sync, pipes, or ray, in its actors."""
    ray_actors: int = 1
    """Actors of Ray that share the environments; the numbers of a run depend on it."""
    n_envs: int = 100
    """Environments played side by side."""
    total_episodes: int = 100_000
    """Episodes played in all, exactly."""
    update_steps: int = 100
    """Steps played in each environment between two updates."""
    max_steps: int = 100
    """Steps of an episode of CAGE-2; other environments have limits of their own."""
    red_agent: str = "mix"
    """B_lineAgent, RedMeanderAgent, SleepAgent (or b_line, meander, sleep), mix: one of the three
    drawn for each episode, or several of them joined by +."""
    edition: str = "2.1"
    """2.1, the game that people install today, or leaderboard, the one of the published scores."""
    green: bool = False
    """Let GreenAgent scan hosts."""
    order: str | None = None
    """Workflow order with which compliance is measured, by name or written out."""
    alignment_lambda: float = 30.0
    """Weight of the alignment reward, if there is an order."""
    knowledge: str = "true"
    """A host is threatened by what red holds (true), or by what blue's table says (observed)."""
    definition: str = "host"
    """Compliance as specified (host), or by the older definition (seed)."""
    universal: bool = False
    """Draw an order for each episode and environment; the policy must see it (order_input)."""
    start_from: str | None = None
    """Run folder from whose last policy, optimiser included, this one starts."""
    seed: int = 0
    """Decides all luck."""
    overlap: bool = False
    """Collect with the policy of one update ago while the present one is being updated."""
    checks: int = 20
    """How often, spread over the run, the greedy policy is scored on other seeds; less often in
    short runs, where it would take longer than the training."""
    check_episodes: int = 500
    """Games of a check against each red."""
    checkpoint_seconds: float = 30.0
    """Time between two checkpoints."""


@dataclass(frozen=True, kw_only=True)
class PpoConfig:
    """How PPO learns from what was collected."""

    learning_rate: float = 2e-3
    """Step size of Adam at the start."""
    learning_rate_end: float = 0.0
    """Step size at the end; it falls linearly with the episodes played."""
    gamma: float = 0.99
    """Discount of a step."""
    gae_lambda: float = 0.95
    """Decay of generalised advantage estimates."""
    clip: float = 0.2
    """How far the ratio of new to old probability may move from 1 before its gradient ends."""
    value_clip: float = 0.0
    """How far a value may move in an update before its gradient ends; 0: as far as it likes."""
    entropy: float = 0.01
    """Weight of the entropy bonus at the start."""
    entropy_end: float = 0.0
    """Weight of the entropy bonus at the end; it falls linearly."""
    epochs: int = 4
    """Passes over what was collected, in each update."""
    minibatches: int = 4
    """Parts into which each pass is cut."""
    max_gradient_norm: float = 0.5
    """Limit of the gradient's norm, of actor and critic each."""
    target_kl: float = 0.0
    """End the passes of an update when the policy has moved this far; 0: never."""
    normalise_advantages: bool = True
    """Give the advantages of an update mean 0 and deviation 1."""
    bootstrap: bool = True
    """Count what would have come after the time limit, by the critic's estimate."""
    reward_scale: float = 0.1
    """Rewards are multiplied by this before learning."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers, of actor and critic each."""
    activation: str = "tanh"
    """What follows a hidden layer: tanh or relu."""
    threads: int = 2
    """Threads of an update; it decides how sums are rounded, so a run goes on with what it has."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig(InputConfig, PpoConfig, GateConfig, RunConfig):
    """Everything that decides a training run."""

    def __post_init__(self) -> None:
        """Check everything that can be wrong by itself."""
        _check_game(self)
        _check_counts(self)
        _check_ppo(self)

    @property
    def is_cage(self) -> bool:
        """Whether it is CAGE-2 that is played."""
        return self.env in CAGE_ENVS

    @property
    def is_native(self) -> bool:
        """Whether the games can be saved, so that a resumed run goes on to the bit."""
        return self.env == ENVIRONMENT_ID and self.backend in ("auto", "native", "ray")

    @property
    def pool(self) -> str:
        """The backend of the environments themselves, in whichever process."""
        if self.backend == "ray":
            return "native" if self.is_native else "workers"
        return self.backend

    @property
    def check_interval(self) -> int:
        """Episodes between two checks."""
        if not self.checks:
            return self.total_episodes
        return max(self.total_episodes // self.checks, 4 * self.check_episodes)

    @property
    def is_judged_outside(self) -> bool:
        """Whether compliance can be judged from true states that workers carry."""
        return self.is_cage and self.pool == "workers"

    @property
    def is_gated(self) -> bool:
        """Whether training ends when the order is kept; without a lambda it is only measured."""
        return self.gate and self.order is not None and self.alignment_lambda > 0

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain values."""
        return {**asdict(self), "hidden": list(self.hidden)}


Config = TypeVar("Config", bound=TrainConfig)


def from_dict(settings: Mapping[str, Any]) -> TrainConfig:
    """The configuration of a training with these settings; see `parsed`."""
    return parsed(settings, TrainConfig)


def parsed(settings: Mapping[str, Any], kind: type[Config]) -> Config:
    """The configuration with these settings; those that are missing are as usual.

    Raises:
        ValueError: one is unknown or not of its type.
    """
    known = {field.name for field in fields(kind)}
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(
            f"settings must be among {', '.join(sorted(known))}; got {', '.join(unknown)}"
        )
    hints = get_type_hints(kind)
    return kind(**{name: _typed(name, value, hints[name]) for name, value in settings.items()})


def _typed(name: str, value: Any, hint: Any) -> Any:
    """A value from JSON as the type that the field has."""
    if name == "hidden":
        if not isinstance(value, list | tuple) or not all(type(width) is int for width in value):
            raise ValueError(f"hidden must be a list of whole numbers, got {value!r}")
        return tuple(value)
    if hint is float and type(value) is int:
        return float(value)
    allowed = get_args(hint) or (hint,)
    if type(value) not in allowed:
        kinds = " or ".join("null" if kind is type(None) else kind.__name__ for kind in allowed)
        raise ValueError(f"{name} must be of type {kinds}, got {value!r}")
    return value


def _check_game(config: TrainConfig) -> None:
    known = (*TRAINABLE_REDS, *RED_ALIASES)
    if config.red_agent != MIX and not {*config.red_agent.split("+")} <= {*known}:
        raise ValueError(
            f"red_agent must be one of {', '.join(known)}, several of them joined by +, or mix; "
            f"got {config.red_agent!r}"
        )
    edition_code(config.edition)
    action_set(config.actions)
    if config.order is not None:
        orders.parse(config.order)
    _one_of("backend", config.backend, BACKENDS)
    _one_of("knowledge", config.knowledge, ("true", "observed"))
    _one_of("definition", config.definition, ("host", "seed"))
    _one_of("activation", config.activation, tuple(ACTIVATIONS))
    if config.order_input and config.order is None and not config.universal:
        raise ValueError("order_input needs an order, got none")
    if config.universal and (config.order is not None or not config.order_input):
        raise ValueError("universal needs order_input and no order of its own")
    if config.universal and not config.is_native:
        raise ValueError(
            f"universal needs {ENVIRONMENT_ID} with backend auto or native, "
            f"got {config.env} with {config.backend}"
        )
    if config.order is not None and not (config.is_native or config.is_judged_outside):
        raise ValueError(
            f"an order needs {ENVIRONMENT_ID}, or cyborg with backend workers, "
            f"got {config.env} with {config.backend}"
        )


def _check_counts(config: TrainConfig) -> None:
    for name in (
        "n_envs", "total_episodes", "update_steps", "epochs", "minibatches", "check_episodes",
        "threads", "patience", "ray_actors",
    ):  # fmt: skip
        _at_least(name, getattr(config, name), 1)
    if config.ray_actors > 1 and config.backend != "ray":
        raise ValueError(f"ray_actors needs backend ray, got {config.backend}")
    _at_least("appraisal_episodes", config.appraisal_episodes, 2)
    for name in ("seed", "checks", "checkpoint_seconds"):
        _at_least(name, getattr(config, name), 0)
    if config.is_cage and not 1 <= config.max_steps <= _core.MAX_STEPS:
        raise ValueError(f"max_steps must be from 1 to {_core.MAX_STEPS}, got {config.max_steps}")
    if not config.hidden or min(config.hidden) < 1:
        raise ValueError(f"hidden must be widths of at least 1, got {config.hidden}")


def _check_ppo(config: TrainConfig) -> None:
    for name in ("gamma", "gae_lambda", "compliance_threshold"):
        value = getattr(config, name)
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be from 0 to 1, got {value}")
    for name in ("learning_rate", "clip", "max_gradient_norm", "reward_scale"):
        value = getattr(config, name)
        if not 0 < value < float("inf"):
            raise ValueError(f"{name} must be above 0, got {value}")
    for name in (
        "learning_rate_end", "value_clip", "entropy", "entropy_end", "target_kl", "min_decisions",
        "alignment_lambda",
    ):  # fmt: skip
        _at_least(name, getattr(config, name), 0)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")


def _at_least(name: str, value: float, least: int) -> None:
    if not least <= value < float("inf"):
        raise ValueError(f"{name} must be at least {least}, got {value}")
