"""How fast whole training is, updates included, beside Stable-Baselines3 on the same games."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from cagepool.bench import machine
from cagepool.bench.measure import Clock, Contender, Measurement, Pace, compare, timed
from cagepool.bench.result import Result
from cagepool.sim.features import FeatureConfig
from cagepool.train.config import TrainConfig
from cagepool.train.learner import use_threads
from cagepool.train.ppo import Trainer

UNORDERED, ORDERED = "all inputs, 2 threads", "all inputs, 2 threads, with an order"
ENDLESS = 10**12  # episodes: no training ends while it is measured
# What every library can do: the 52 values of the observation, 145 actions, no masks.
PLAIN = FeatureConfig(
    scan_memory=False,
    decoys_placed=False,
    last_action=False,
    time_left=False,
    action_masking=False,
    actions="all",
)


@dataclass(frozen=True, kw_only=True)
class BenchTrainConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=9, seconds=1.0))
    games: int = 100
    steps: int = 100
    sb3_minibatches: tuple[int, ...] = (500, 2500, 10_000)
    """Minibatch sizes with which Stable-Baselines3 is tried; the best counts."""


@dataclass(frozen=True, kw_only=True)
class BenchTrainResult(Result):
    """Collection and whole training, ours beside Stable-Baselines3."""

    def rates(self, group: str) -> dict[str, float]:
        """Median steps a second."""
        return {one.name: one.steps_per_second for one in self.groups[group]}

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that claims are made of, each from one group."""
        rates = self.rates("training")
        ours = max(rate for name, rate in rates.items() if name.startswith("52 inputs"))
        peers = [rate for name, rate in rates.items() if name.startswith("SB3")]
        found = {"with an order against without": round(rates[ORDERED] / rates[UNORDERED], 3)}
        if peers:
            found["our best / SB3 at its best minibatch size"] = round(ours / max(peers), 2)
        return found


def measure_training(
    config: BenchTrainConfig, progress: Callable[[str, int, int], object]
) -> BenchTrainResult:
    """Measure collection alone, then whole training.

    `progress` is told the group under way, the turns done in it and the turns in it.
    """
    before = machine.describe()
    groups = {
        "collection": measured_group("collection", _collections(config), config.pace, progress),
        "training": measured_group("training", _trainings(config), config.pace, progress),
    }
    return BenchTrainResult(machine=before, load_after=machine.load(), groups=groups)


def measured_group(
    group: str,
    contenders: Iterator[tuple[Contender, Callable[[], None]]],
    pace: Pace,
    progress: Callable[[str, int, int], object],
) -> list[Measurement]:
    """Let contenders take turns, and close them."""
    with ExitStack() as stack:
        made = []
        for contender, close in contenders:
            stack.callback(close)
            made.append(contender)
        turns = len(made) * pace.repetitions
        done = iter(range(1, turns + 1))
        progress(group, 0, turns)
        return compare(made, pace, lambda: progress(group, next(done), turns))


def _variants(config: BenchTrainConfig) -> Iterator[tuple[str, TrainConfig]]:
    usual = TrainConfig.from_flat(
        n_envs=config.games,
        update_steps=config.steps,
        red_agent="B_lineAgent",
        total_episodes=ENDLESS,
    )
    for name, base in (("52 inputs", replace(usual, features=PLAIN)), ("all inputs", usual)):
        yield f"{name}, 1 thread", base.with_settings(threads=1)
        yield f"{name}, 2 threads", base
        yield f"{name}, --async", base.with_settings(threads=1, overlap=True)
    yield ORDERED, usual.with_settings(order="critical_first", early_stopping=False)


def _collections(config: BenchTrainConfig) -> Iterator[tuple[Contender, Callable[[], None]]]:
    for name, settings in _variants(config):
        if settings.ppo.threads > 1 or settings.ppo.overlap:
            continue  # they change how it learns, not how it collects
        trainer = Trainer(settings)
        yield training_contender(name, settings, trainer.collect_only), trainer.close


def _trainings(config: BenchTrainConfig) -> Iterator[tuple[Contender, Callable[[], None]]]:
    for name, settings in _variants(config):
        trainer = Trainer(settings)
        updates = trainer.updates()
        yield training_contender(name, settings, updates.__next__), trainer.close
    if find_spec("stable_baselines3") is None:
        return
    from cagepool.bench.sb3 import sb3_ppo  # noqa: PLC0415 - needs Stable-Baselines3

    usual = TrainConfig.from_flat(
        n_envs=config.games,
        update_steps=config.steps,
        red_agent="B_lineAgent",
        total_episodes=ENDLESS,
    )
    settings = replace(usual, features=PLAIN)
    for size in config.sb3_minibatches:
        for threads in (1, 2):
            model = sb3_ppo(settings, size)
            learn = _one_update(model, config.games * config.steps)
            one = training_contender(
                f"SB3, minibatch {size}, {threads} threads", settings, learn, threads
            )
            yield one, model.env.close


def _one_update(model: Any, steps: int) -> Callable[[], object]:
    return lambda: model.learn(steps, reset_num_timesteps=False)


def training_contender(
    name: str, settings: TrainConfig, call: Callable[[], object], threads: int = 1
) -> Contender:
    """Something that plays, or learns from, one rollout with these settings at every call."""
    hidden = "x".join(map(str, settings.ppo.hidden))
    return Contender(
        name=name,
        settings={
            "games": settings.env.n_envs,
            "steps": settings.ppo.update_steps,
            "epochs": settings.ppo.n_epochs,
            "hidden": hidden,
        },
        steps=settings.env.n_envs * settings.ppo.update_steps,
        clock=_with_threads(timed(call), threads),
    )


def _with_threads(clock: Clock, threads: int) -> Clock:
    """With so many threads of PyTorch itself."""

    def run(calls: int, /) -> float:
        use_threads(threads)
        try:
            return clock(calls)
        finally:
            use_threads(1)

    return run
