"""Training with Ray actors compared with training without Ray."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from cagepool.bench.measure import Contender, Figures, Pace, Progress, measure_groups
from cagepool.bench.schema import Groups, rates
from cagepool.bench.train import TrainBenchConfig, update_contender
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import Trainer
from cagepool.train.ray import cluster_connection

LOCAL = "no Ray"


@dataclass(frozen=True, kw_only=True)
class RayConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=9, seconds=1.0))
    n_envs: int = 100
    update_steps: int = 100
    actors: tuple[int, ...] = (1, 2, 4)


def measure_ray(config: RayConfig, progress: Progress) -> Figures:
    """Measure rollouts alone, then whole updates; all trainers exist all the time."""
    with cluster_connection(None, 1), ExitStack() as stack:
        progress("starting actors", 0, 1)
        trainers = {
            name: stack.enter_context(Trainer(settings)) for name, settings in _variants(config)
        }
        rollouts = [
            update_contender(name, trainer.config, trainer.collect)
            for name, trainer in trainers.items()
            if not trainer.config.ppo.overlap  # overlap changes when they collect, not how
        ]
        updates = [
            update_contender(name, trainer.config, trainer.updates().__next__)
            for name, trainer in trainers.items()
        ]
        contenders = [("collection", _makers(rollouts)), ("training", _makers(updates))]
        groups = measure_groups(contenders, config.pace, progress)
    return Figures(groups=groups, ratios=ray_ratios(groups))


def ray_ratios(groups: Groups) -> dict[str, float]:
    """Throughput with actors, divided by that without."""
    ratios = {}
    for group, measurements in groups.items():
        rate = rates(measurements)
        for name, value in rate.items():
            if not name.startswith(LOCAL):
                local = LOCAL + name[name.find(", ") :] if ", " in name else LOCAL
                ratios[f"{group}: {name} / {local}"] = round(value / rate[local], 3)
    return ratios


def _makers(contenders: list[Contender]) -> list["_Existing"]:
    return [_Existing(one) for one in contenders]


@dataclass(frozen=True)
class _Existing:
    contender: Contender

    def __call__(self, _: ExitStack) -> Contender:
        return self.contender


def _variants(config: RayConfig) -> Iterator[tuple[str, TrainConfig]]:
    bench = TrainBenchConfig(n_envs=config.n_envs, update_steps=config.update_steps)
    local = bench.train_config()
    with_ray = {
        f"{actors} actor{'' if actors == 1 else 's'}": local.with_settings(
            backend="ray", ray_actors=actors
        )
        for actors in config.actors
    }
    for name, settings in {LOCAL: local, **with_ray}.items():
        yield name, settings
        yield f"{name}, --async", settings.with_settings(overlap=True)
