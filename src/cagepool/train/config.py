"""Configuration of a training run: five groups of settings and their checks."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, get_type_hints

from cagepool import _core
from cagepool._lookup import is_reference
from cagepool.envs.make import Backend
from cagepool.envs.single import ENVIRONMENT_ID
from cagepool.errors import check_at_least, check_names, check_positive, check_share, check_types
from cagepool.evaluate.rollout import load_scenarios
from cagepool.policy.policy import CAGE_ENVS
from cagepool.scenarios import Scenario
from cagepool.sim import compliance
from cagepool.sim.encoder import FeatureConfig, parse_biases
from cagepool.sim.names import MIX, RED_ALIASES, TRAINABLE_REDS, has_red_weights, red_shares
from cagepool.sim.settings import (
    DEFAULT_EDITION,
    Definition,
    Edition,
    Knowledge,
    SharedSettings,
)

TrainBackend: TypeAlias = Literal[Backend, "ray"]
Settings: TypeAlias = Mapping[str, Mapping[str, Any]]  # values by group and name
NETWORKS = ("mlp", "gru", "entity")
TRACKERS = ("tensorboard", "wandb")
DEFAULT_TRACKERS = ("tensorboard",)

# Flat names, which command-line flags use too, where they differ from the field's name.
_FLAT_NAMES = {("env", "id"): "env", ("order", "n_eval_episodes"): "order_eval_episodes"}
_ALIASES = {"num_envs": "n_envs", "red": "red_agent"}  # names of the same settings in `make_vec`


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """Environments: the game and where it runs."""

    id: str = ENVIRONMENT_ID
    """cagepool/CAGE2-v0, cyborg (the original CybORG), any Gymnasium id, or module:function."""
    backend: TrainBackend = "auto"
    """native: in the core. workers: in worker processes. sync: in a loop. pipes: one process each.
    ray: in Ray actors. auto: native for CAGE-2, else the fastest for these environments."""
    ray_actors: int = 1
    """Ray actors that share the environments. The numbers of a run depend on this count."""
    n_envs: int = 100
    """Number of parallel environments."""
    max_steps: int = SharedSettings.max_steps
    """Steps per CAGE-2 episode. Other environments have their own time limits."""
    lengths: str | None = None
    """Lengths of the score, such as 30,50,100: every reward counts once per length that is still
    running, and the value ends with the longest, max_steps. By default every reward counts once."""
    red_agent: str = "mix"
    """B_lineAgent, RedMeanderAgent, SleepAgent (or b_line, meander, sleep), or mix (all three).
    Several names are joined by +. With several agents, each episode draws one: with equal
    probability, or by weights as in b_line:0.48+meander:0.48+sleep:0.04."""
    scenario: str | None = None
    """Scenarios to play, drawn per episode: a YAML file, a folder of them, or a suite such as
    cage2/users:train; several are joined by commas. By default CAGE-2."""
    edition: Edition = DEFAULT_EDITION
    """2.1: the CybORG release that is installed today.
    leaderboard: the release behind the published scores."""
    green: bool = SharedSettings.green
    """GreenAgent scans hosts. Off: no green agent plays."""
    reward: str | None = None
    """Reward function to learn from, as module:function. Evaluations always use the official
    reward. By default the official reward."""

    def __post_init__(self) -> None:
        """Check the settings that can be wrong on their own."""
        check_types("env", self)
        for name in ("n_envs", "ray_actors"):
            check_at_least(f"env.{name}", getattr(self, name), 1)
        self._check_red_agent()
        lengths = self.score_lengths
        if lengths and lengths[-1] < self.max_steps:
            raise ValueError(
                f"env.max_steps must be at most the longest of env.lengths, {lengths[-1]}, "
                f"got {self.max_steps}"
            )
        if self.ray_actors > 1 and self.backend != "ray":
            raise ValueError(f"env.ray_actors needs env.backend ray, got {self.backend}")
        if self.is_cage and not 1 <= self.max_steps <= _core.MAX_STEPS:
            raise ValueError(
                f"env.max_steps must be from 1 to {_core.MAX_STEPS}, got {self.max_steps}"
            )

    def _check_red_agent(self) -> None:
        known = (*TRAINABLE_REDS, *RED_ALIASES)
        names = {part.partition(":")[0] for part in self.red_agent.split("+")}
        if self.red_agent != MIX and not names <= {*known}:
            raise ValueError(
                f"env.red_agent must be one of {', '.join(known)}, several of them joined by +, "
                f"or mix; got {self.red_agent!r}"
            )
        red_shares(self.red_agent)

    @property
    def score_lengths(self) -> tuple[int, ...]:
        """The lengths of the score, ascending and up to max_steps; none without `lengths`."""
        if self.lengths is None:
            return ()
        parts = self.lengths.split(",")
        if not all(part.strip().isdecimal() and int(part) >= 1 for part in parts):
            raise ValueError(
                f"env.lengths must be whole numbers joined by commas, such as 30,50,100, "
                f"got {self.lengths!r}"
            )
        return tuple(sorted({min(int(part), self.max_steps) for part in parts}))

    @cached_property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios to play; none: CAGE-2."""
        return () if self.scenario is None else load_scenarios(self.scenario)

    @property
    def is_cage(self) -> bool:
        """Whether the game is CAGE-2."""
        return self.id in CAGE_ENVS

    @property
    def is_native(self) -> bool:
        """Whether the core plays the games: only then can a checkpoint hold them."""
        return self.id == ENVIRONMENT_ID and self.backend in ("auto", "native", "ray")

    @property
    def vector_backend(self) -> Backend:
        """Backend of the vector environment in each process that collects rollouts."""
        if self.backend == "ray":
            return "native" if self.is_native else "workers"
        return self.backend


@dataclass(frozen=True, kw_only=True)
class PpoConfig:
    """PPO hyper-parameters, under the names of Stable-Baselines3, and the networks."""

    update_steps: int = 100
    """Steps per environment between two updates."""
    learning_rate: float = 2e-3
    """Learning rate of Adam at the start."""
    learning_rate_end: float = 0.0
    """Learning rate at the end of the schedule."""
    learning_rate_schedule: Literal["linear", "cosine", "constant"] = "linear"
    """Course of the learning rate over the episodes of the run, from its start to its end.
    constant: it stays at its start."""
    gamma: float = 0.99
    """Discount factor per step."""
    gae_lambda: float = 0.95
    """Lambda of generalized advantage estimation (GAE)."""
    clip_range: float = 0.2
    """Clip range of the probability ratio in the surrogate loss."""
    clip_range_vf: float = 0.0
    """Clip range of the value function. 0: no value clipping."""
    ent_coef: float = 0.01
    """Entropy coefficient at the start."""
    ent_coef_end: float = 0.0
    """Entropy coefficient at the end. It falls linearly with the episodes played."""
    n_epochs: int = 4
    """Epochs per update."""
    n_minibatches: int = 4
    """Minibatches per epoch."""
    max_grad_norm: float = 0.5
    """Maximum gradient norm, for actor and critic separately."""
    target_kl: float = 0.0
    """Maximum mean KL divergence: the first epoch above it ends the update. 0: no limit."""
    normalize_advantage: bool = True
    """Normalize the advantages of each update to mean 0 and deviation 1.
    Off: they keep the scale of the rewards."""
    bootstrap: bool = True
    """At a time limit, add the critic's value of the last state.
    Off: the value ends with the episode, as the score does."""
    reward_scale: float = 0.1
    """Factor on every reward before learning."""
    normalize_observations: bool = False
    """Normalize policy inputs by their running mean and deviation, also when the policy plays.
    Off: inputs are as the environment gives them."""
    normalize_returns: bool = False
    """Divide rewards by the running deviation of the discounted returns.
    Off: rewards have the scale of the environment."""
    network: str = "mlp"
    """mlp: actor and critic are separate MLPs. gru: recurrent, the policy has a memory.
    entity: weights shared by all hosts, plays scenarios of any size (docs/training.md).
    module:Class: your own PyTorch network (docs/own-networks.md)."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers. gru: the last one is the width of the memory.
    entity: the last one is the width of the heads, the others are those of the host encoder."""
    critic_hidden: tuple[int, ...] = ()
    """Widths of the critic's hidden layers. By default those of hidden."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation after each hidden layer."""
    learner: Literal["auto", "native", "torch"] = "auto"
    """native: MLPs on the CPU, in C++. torch: any network and device, by autograd.
    auto: native if network and device allow it."""
    device: str = "auto"
    """cpu, cuda, mps, or another device that PyTorch knows, such as cuda:1.
    auto: cpu for the native learner, else a GPU if there is one."""
    start_bias: str | None = None
    """Logits of kinds of actions at the start, such as Restore=-2 or Restore=-2,Decoy=1: biases
    of the actor's last layer, which training then changes. By default 0."""
    threads: int = 2
    """Threads per update. With learner torch the count decides the rounding of sums, so a resumed
    run keeps it."""
    overlap: bool = False
    """Collect the next rollout during the update, with the policy before that update.
    Off: collect and update in turn."""

    def __post_init__(self) -> None:
        """Check the settings that can be wrong on their own."""
        check_types("ppo", self)
        for name in ("update_steps", "n_epochs", "n_minibatches", "threads"):
            check_at_least(f"ppo.{name}", getattr(self, name), 1)
        for name in ("gamma", "gae_lambda"):
            check_share(f"ppo.{name}", getattr(self, name))
        for name in ("learning_rate", "clip_range", "max_grad_norm", "reward_scale"):
            check_positive(f"ppo.{name}", getattr(self, name))
        for name in ("learning_rate_end", "clip_range_vf", "ent_coef", "ent_coef_end", "target_kl"):
            check_at_least(f"ppo.{name}", getattr(self, name), 0)
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"ppo.hidden must be widths of at least 1, got {self.hidden}")
        if min(self.critic_hidden, default=1) < 1:
            raise ValueError(
                f"ppo.critic_hidden must be widths of at least 1, got {self.critic_hidden}"
            )
        if self.start_bias is not None:
            parse_biases(self.start_bias)
        self._check_network()

    def _check_network(self) -> None:
        if self.network not in NETWORKS and not is_reference(self.network):
            raise ValueError(
                f"ppo.network must be {', '.join(NETWORKS)} or module:Class, got {self.network!r}"
            )
        if self.learner == "native" and self.network != "mlp":
            raise ValueError(f"ppo.learner native needs ppo.network mlp, got {self.network}")
        if self.learner == "native" and self.device not in ("auto", "cpu"):
            raise ValueError(f"ppo.learner native needs ppo.device cpu, got {self.device}")


@dataclass(frozen=True, kw_only=True)
class OrderConfig:
    """Workflow order: alignment reward, compliance and early stopping."""

    order: str | None = None
    """Workflow order that the policy is rewarded for.
    A name such as critical_first, or the five host types, most urgent first, joined by commas."""
    alignment_lambda: float = 30.0
    """Weight of the alignment reward."""
    knowledge: Knowledge = SharedSettings.knowledge
    """Threatened hosts. true: those with a session of red. observed: those in blue's table."""
    definition: Definition = SharedSettings.definition
    """Definition of compliance (docs/workflow.md). host: by host. fix-type: older, by host type."""
    universal: bool = False
    """Draw an order per episode; the policy must see the order (order_input).
    Off: all episodes follow `order`."""
    early_stopping: bool = True
    """Stop when compliance passes the threshold or no longer rises. Off: play all episodes."""
    compliance_threshold: float = 0.95
    """Compliance at which the order counts as learned."""
    min_decisions: float = 1.0
    """Compliance counts only with more decisions per episode than this."""
    patience: int = 12
    """Updates without a rise of compliance by 0.01 before training stops."""
    n_eval_episodes: int = 200
    """Greedy episodes per red agent in the final evaluation of the order."""

    def __post_init__(self) -> None:
        """Check the settings that can be wrong on their own."""
        check_types("order", self)
        if self.order is not None:
            compliance.parse_order(self.order)
        check_share("order.compliance_threshold", self.compliance_threshold)
        for name in ("min_decisions", "alignment_lambda"):
            check_at_least(f"order.{name}", getattr(self, name), 0)
        check_at_least("order.patience", self.patience, 1)
        check_at_least("order.n_eval_episodes", self.n_eval_episodes, 2)
        if self.universal and self.order is not None:
            raise ValueError(
                f"order.universal draws the orders, order.order must be none, got {self.order!r}"
            )

    @property
    def has_orders(self) -> bool:
        """Whether episodes follow an order, fixed or drawn."""
        return self.order is not None or self.universal

    @property
    def stops_early(self) -> bool:
        """Whether compliance can stop training; with lambda 0 it is only measured."""
        return self.early_stopping and self.order is not None and self.alignment_lambda > 0


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Run: length, seed, evaluations and checkpoints."""

    total_episodes: int = 100_000
    """Episodes in total. Exactly this many are played."""
    seed: int = 0
    """Random seed of the run."""
    start_from: str | None = None
    """Run folder whose last policy and optimizer state this run starts from."""
    n_evals: int = 20
    """Evaluations of the greedy policy on other seeds, spread over the run.
    Short runs have fewer, so that evaluation does not take longer than training."""
    n_eval_episodes: int = 500
    """Episodes per red agent in each evaluation."""
    target_score: float | None = None
    """Stop when an evaluation reaches this score. By default all episodes are played."""
    eval_patience: int = 0
    """Stop after this many evaluations in a row without a new best score. 0: never."""
    checkpoint_seconds: float = 30.0
    """Seconds between two checkpoints."""

    def __post_init__(self) -> None:
        """Check the settings that can be wrong on their own."""
        check_types("run", self)
        for name in ("total_episodes", "n_eval_episodes"):
            check_at_least(f"run.{name}", getattr(self, name), 1)
        for name in ("seed", "n_evals", "eval_patience", "checkpoint_seconds"):
            check_at_least(f"run.{name}", getattr(self, name), 0)

    @property
    def eval_interval(self) -> int:
        """Episodes between two evaluations."""
        if not self.n_evals:
            return self.total_episodes
        return max(self.total_episodes // self.n_evals, 4 * self.n_eval_episodes)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """All settings of a training run, by group."""

    env: EnvConfig = field(default_factory=EnvConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    order: OrderConfig = field(default_factory=OrderConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        """Check settings of different groups against each other."""
        check_types("features", self.features)
        for setting, is_given, needs, has, got in _requirements(self):
            if is_given and not has:
                raise ValueError(f"{setting} needs {needs}, got {got}")

    @property
    def game(self) -> SharedSettings:
        """Settings of the games."""
        env, order = self.env, self.order
        has_orders = order.has_orders  # drawn ones replace the first
        return SharedSettings(
            red=env.red_agent,
            edition=env.edition,
            max_steps=env.max_steps,
            green=env.green,
            scenario=env.scenarios or None,
            scenario_per="episode",
            order=(order.order or compliance.ALL_ORDERS[0]) if has_orders else None,
            alignment=order.alignment_lambda if has_orders else 0.0,
            knowledge=order.knowledge,
            definition=order.definition,
        )

    @classmethod
    def from_dict(cls, settings: Settings) -> Self:
        """Build a configuration from settings by group and name; missing ones take their defaults.

        Raises:
            ValueError: a setting is unknown, has the wrong type or a value that is not allowed.
        """
        groups = get_type_hints(cls)
        check_names("groups of settings", settings, groups)
        defaults = cls()
        return cls(
            **{
                group: replace(getattr(defaults, group), **_typed_settings(group, values, groups))
                for group, values in settings.items()
            }
        )

    @classmethod
    def from_flat(cls, **settings: Any) -> Self:
        """Build a configuration from settings by flat name; missing ones take their defaults."""
        return cls().with_settings(**settings)

    @classmethod
    def flat_names(cls) -> dict[str, tuple[str, str]]:
        """Group and field by the flat name of each setting; flags are flat names with dashes."""
        return {
            _FLAT_NAMES.get((group, setting.name), setting.name): (group, setting.name)
            for group, config in get_type_hints(cls).items()
            for setting in fields(config)
        }

    def with_settings(self, **changes: Any) -> Self:
        """Copy of this configuration with other values for some settings, given by flat name."""
        places = self.flat_names()
        changes = _rename(changes)
        check_names("settings", changes, places)
        by_group: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            group, setting = places[name]
            by_group.setdefault(group, {})[setting] = value
        return replace(
            self,
            **{group: replace(getattr(self, group), **new) for group, new in by_group.items()},
        )

    @property
    def sees_hosts(self) -> bool:
        """Whether the policy's inputs are made host by host, for scenarios of any size."""
        return self.env.scenario is not None or self.ppo.network == "entity"

    @property
    def has_true_states(self) -> bool:
        """Whether worker processes send true states, from which Python computes compliance."""
        return self.env.is_cage and self.env.vector_backend == "workers"

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Settings by group and name, as JSON values."""
        settings = asdict(self)
        for name in ("hidden", "critic_hidden"):
            settings["ppo"][name] = list(settings["ppo"][name])
        return settings


def merge_settings(base: Settings, changes: Settings) -> dict[str, dict[str, Any]]:
    """Settings of `base`, replaced by those of `changes` where both have one."""
    groups = dict.fromkeys((*base, *changes))
    return {group: {**base.get(group, {}), **changes.get(group, {})} for group in groups}


def _typed_settings(group: str, values: Any, groups: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a group from JSON values: lists become tuples."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{group} must be a table of settings, got {values!r}")
    hints = get_type_hints(groups[group])
    given = _rename(values)
    check_names(f"settings of {group}", given, hints)
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }


def _rename(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings under our names."""
    for other, name in _ALIASES.items():
        if other in settings and name in settings:
            raise ValueError(f"{name} must be given once, got {name} and {other}")
    return {_ALIASES.get(name, name): value for name, value in settings.items()}


def _requirements(config: TrainConfig) -> tuple[tuple[str, object, str, bool, str], ...]:
    """What is not supported yet: setting, whether it is given, what it needs, has and gets."""
    env, ppo, features, order = config.env, config.ppo, config.features, config.order
    game = f"{env.id} with {env.backend}"
    native = f"{ENVIRONMENT_ID} with env.backend auto, native or ray"
    with_orders = f"{ENVIRONMENT_ID}, or cyborg with env.backend workers"
    local = f"{ENVIRONMENT_ID} with env.backend auto or native"
    is_ours, sees_hosts = env.id == ENVIRONMENT_ID, config.sees_hosts
    hosts = "env.scenario" if env.scenario is not None else "ppo.network entity"
    flat = "the inputs of CAGE-2", not sees_hosts, hosts
    weights = has_red_weights(env.red_agent)
    true_critic = features.critic_inputs == "true"
    return (
        ("env.lengths", env.score_lengths, "CAGE-2", env.is_cage, game),
        ("env.reward", env.reward, ENVIRONMENT_ID, is_ours, env.id),
        ("env.red_agent with weights", weights, ENVIRONMENT_ID, is_ours, env.id),
        ("ppo.start_bias", ppo.start_bias, "CAGE-2", env.is_cage, game),
        ("features.belief", features.belief, "CAGE-2", env.is_cage, game),
        ("features.critic_inputs true", true_critic, native, env.is_native, game),
        ("features.order_input", features.order_input, "an order", order.has_orders, "none"),
        ("order.universal", order.universal, "features.order_input", features.order_input, "none"),
        ("order.universal", order.universal, native, env.is_native, game),
        ("an order", order.order, with_orders, env.is_native or config.has_true_states, game),
        (hosts, sees_hosts, local, is_ours and env.backend in ("auto", "native"), game),
        ("features.belief", features.belief, *flat),
        ("features.critic_inputs true", true_critic, *flat),
        ("features.action_masking off", not features.action_masking, *flat),
        ("an order", order.has_orders, *flat),
        ("ppo.normalize_observations", ppo.normalize_observations, *flat),
    )
