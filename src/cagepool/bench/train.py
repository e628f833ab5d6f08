"""Throughput of training: rollouts alone and whole updates, with each learner and with SB3."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.bench.measure import (
    Contender,
    Figures,
    MakeContender,
    Pace,
    Progress,
    Timer,
    measure_groups,
    time_calls,
)
from cagepool.bench.schema import Groups, rates
from cagepool.envs.native import NativeVectorEnv
from cagepool.sim.encoder import FeatureConfig, FeatureEncoder
from cagepool.train.collectors import make_actor
from cagepool.train.config import TrainConfig
from cagepool.train.learner import LossCoefficients
from cagepool.train.ppo import Trainer
from cagepool.train.torch_learner import use_threads

NATIVE = "all features, 2 threads"
WITH_ORDER = "all features, 2 threads, with an order"
WITH_BELIEF = "all features, 2 threads, --belief"
TORCH = "all features, torch learner"
PLAIN_TORCH = "52 features, torch learner"
UNLIMITED = 10**12  # episodes: no training ends while it is measured
# Features that all libraries can do: the 52 values of the observation, 145 actions, no masks.
PLAIN_FEATURES = FeatureConfig(
    scan_memory=False,
    decoys_placed=False,
    last_action=False,
    time_left=False,
    action_masking=False,
    actions="all",
)


@dataclass(frozen=True, kw_only=True)
class TrainBenchConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=7, seconds=0.5))
    n_envs: int = 100
    update_steps: int = 100
    sb3_minibatches: tuple[int, ...] = (500, 2500, 10_000)
    """Minibatch sizes of Stable-Baselines3; the fastest counts."""

    def train_config(self, **settings: Any) -> TrainConfig:
        """Return the configuration of a training."""
        return TrainConfig.from_flat(
            n_envs=self.n_envs,
            update_steps=self.update_steps,
            red_agent="B_lineAgent",
            total_episodes=UNLIMITED,
            **settings,
        )


def measure_training(config: TrainBenchConfig, progress: Progress) -> Figures:
    """Measure rollouts alone, whole updates, and the parts of both."""
    contenders = [
        ("collection", list(_rollouts(config))),
        ("training", list(_updates(config))),
        ("parts", list(_parts(config))),
    ]
    groups = measure_groups(contenders, config.pace, progress)
    return Figures(groups=groups, ratios=training_ratios(groups))


def training_ratios(groups: Groups) -> dict[str, float]:
    """Ratios that documents cite."""
    rate = rates(groups["training"])
    plain = max(value for name, value in rate.items() if name.startswith("52 features"))
    ratios = {
        "with an order / without": rate[WITH_ORDER] / rate[NATIVE],
        "with --belief / without": rate[WITH_BELIEF] / rate[NATIVE],
        "native learner / torch learner": rate[NATIVE] / rate[TORCH],
    }
    peers = [value for name, value in rate.items() if name.startswith("SB3")]
    if peers:
        ratios |= {
            "all features, 2 threads / fastest SB3": rate[NATIVE] / max(peers),
            "fastest cagepool / fastest SB3": plain / max(peers),
            "torch learner / fastest SB3": rate[PLAIN_TORCH] / max(peers),
        }
    return {name: round(ratio, 3) for name, ratio in ratios.items()}


def rollout_contender(name: str, config: TrainConfig, stack: ExitStack) -> Contender:
    """Create a trainer that collects one rollout per call and does not learn."""
    trainer = stack.enter_context(Trainer(config))
    return update_contender(name, config, trainer.collect)


def trainer_contender(name: str, config: TrainConfig, stack: ExitStack) -> Contender:
    """Create a trainer that does one update per call."""
    trainer = stack.enter_context(Trainer(config))
    return update_contender(name, config, trainer.updates().__next__)


def update_contender(
    name: str, config: TrainConfig, call: Callable[[], object], torch_threads: int = 1
) -> Contender:
    """Create a contender whose call plays one rollout of this configuration."""
    return Contender(
        name=name,
        settings={
            "games": config.env.n_envs,
            "steps": config.ppo.update_steps,
            "epochs": config.ppo.n_epochs,
            "hidden": "x".join(map(str, config.ppo.hidden)),
        },
        steps_per_call=config.env.n_envs * config.ppo.update_steps,
        timer=_with_torch_threads(time_calls(call), torch_threads),
    )


def _variants(config: TrainBenchConfig) -> Iterator[tuple[str, TrainConfig]]:
    default = config.train_config()
    plain = replace(default, features=PLAIN_FEATURES)
    for name, base in (("52 features", plain), ("all features", default)):
        yield f"{name}, 1 thread", base.with_settings(threads=1)
        yield f"{name}, 2 threads", base
        yield f"{name}, --async", base.with_settings(threads=1, overlap=True)
        yield f"{name}, torch learner", base.with_settings(learner="torch")
    yield WITH_BELIEF, config.train_config(belief=True)
    yield WITH_ORDER, config.train_config(order="critical_first", early_stopping=False)


def _rollouts(config: TrainBenchConfig) -> Iterator[MakeContender]:
    for name, settings in _variants(config):
        if not settings.ppo.overlap:  # it differs in learning only
            yield partial(rollout_contender, name, settings)


def _updates(config: TrainBenchConfig) -> Iterator[MakeContender]:
    for name, settings in _variants(config):
        yield partial(trainer_contender, name, settings)
    if find_spec("stable_baselines3") is None:
        return
    settings = replace(config.train_config(), features=PLAIN_FEATURES)
    for size in config.sb3_minibatches:
        for threads in (1, 2):
            yield partial(_sb3_contender, settings, size, threads)


def _parts(config: TrainBenchConfig) -> Iterator[MakeContender]:
    for threads in (1, 2):
        yield partial(_step_contender, config.train_config(threads=threads))
    for part in (_values_contender, _sampling_contender, _features_contender, _env_contender):
        yield partial(part, config.train_config(threads=1))


def _step_contender(config: TrainConfig, stack: ExitStack) -> Contender:
    """One gradient step on a minibatch of a rollout; the learning rate 0 keeps the weights."""
    trainer = stack.enter_context(Trainer(config))
    transitions, _ = trainer.ppo.transitions(trainer.collect().rollout)
    count = len(transitions.actions)
    rows = np.random.default_rng(0).permutation(count)[: max(1, count // config.ppo.n_minibatches)]
    coefficients = LossCoefficients(config.ppo.clip_range, config.ppo.clip_range_vf, 0.01)
    step = partial(trainer.learner.step, transitions, rows, coefficients, 0.0)
    return _part("gradient step, per row", len(rows), step, config.ppo.threads)


def _values_contender(config: TrainConfig, stack: ExitStack) -> Contender:
    trainer = stack.enter_context(Trainer(config))
    rollout = trainer.collect().rollout
    return _part("values", rollout.rewards.size, partial(trainer.learner.values, rollout))


def _sampling_contender(config: TrainConfig, stack: ExitStack) -> Contender:
    rollout = stack.enter_context(Trainer(config)).collect().rollout
    actor = make_actor(config.ppo, rollout.shape)
    masks = None if rollout.action_masks is None else rollout.action_masks[0]
    uniforms = np.random.default_rng(0).random(rollout.shape.n_envs, np.float32)
    outputs = rollout.actions[0], rollout.log_probs[0]
    sample = partial(actor.sample, rollout.features[0], masks, uniforms, *outputs)
    return _part("forward pass and sampling", rollout.shape.n_envs, sample)


def _features_contender(config: TrainConfig, _: ExitStack) -> Contender:
    n_envs = config.env.n_envs
    encoder = FeatureEncoder(config.features, n_envs, horizon=config.env.max_steps)
    observations = np.zeros((n_envs, _core.OBSERVATION_SIZE), np.float32)
    features = np.zeros((n_envs, encoder.size), np.float32)
    masks = np.ones((n_envs, encoder.n_choices), np.uint8)
    return _part("features", n_envs, partial(encoder.encode, observations, features, masks))


def _env_contender(config: TrainConfig, stack: ExitStack) -> Contender:
    n_envs = config.env.n_envs
    envs = stack.enter_context(NativeVectorEnv(n_envs, red=config.env.red_agent))
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(_core.ACTION_COUNT, size=n_envs)
    return _part("environment step", n_envs, partial(envs.step, actions))


def _part(name: str, steps: int, call: Callable[[], object], threads: int = 1) -> Contender:
    return Contender(
        name=f"{name}, {threads} thread{'s' if threads > 1 else ''}",
        settings={"threads": threads},
        steps_per_call=steps,
        timer=time_calls(call),
    )


def _sb3_contender(
    settings: TrainConfig, minibatch: int, threads: int, stack: ExitStack
) -> Contender:
    model = _sb3_ppo(settings, minibatch)
    stack.callback(model.env.close)
    steps = settings.env.n_envs * settings.ppo.update_steps
    learn = partial(model.learn, steps, reset_num_timesteps=False)
    name = f"SB3, minibatch {minibatch}, {threads} thread{'s' if threads > 1 else ''}"
    return update_contender(name, settings, learn, threads)


def _sb3_ppo(settings: TrainConfig, minibatch: int) -> Any:
    """Create PPO of Stable-Baselines3 with the same hyper-parameters; its default is 64x64 tanh."""
    from stable_baselines3 import PPO  # noqa: PLC0415 - optional

    from cagepool.integrations import sb3  # noqa: PLC0415

    return PPO(
        "MlpPolicy",
        sb3.make(settings.env.n_envs, red=settings.env.red_agent),
        n_steps=settings.ppo.update_steps,
        batch_size=minibatch,
        n_epochs=settings.ppo.n_epochs,
        gamma=settings.ppo.gamma,
        gae_lambda=settings.ppo.gae_lambda,
        ent_coef=settings.ppo.ent_coef,
        learning_rate=settings.ppo.learning_rate,
        device="cpu",
    )


def _with_torch_threads(timer: Timer, threads: int) -> Timer:
    """Return a timer that sets the number of PyTorch's threads."""

    def run(calls: int, /) -> float:
        use_threads(threads)
        try:
            return timer(calls)
        finally:
            use_threads(1)

    return run
