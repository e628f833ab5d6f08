"""What actors of Ray cost and gain: training with some of them beside training without."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from cagepool.bench import machine
from cagepool.bench.measure import Contender, Pace
from cagepool.bench.result import Result
from cagepool.bench.train import ENDLESS, measured_group, training_contender
from cagepool.train.config import TrainConfig
from cagepool.train.ppo import Trainer
from cagepool.train.ray import connected

LOCAL = "no Ray"

Contenders = Iterator[tuple[Contender, Callable[[], None]]]


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """What to measure."""

    pace: Pace = field(default_factory=lambda: Pace(repetitions=9, seconds=1.0))
    games: int = 100
    steps: int = 100
    actors: tuple[int, ...] = (1, 2, 4)


@dataclass(frozen=True, kw_only=True)
class ClusterResult(Result):
    """Collection and whole training, by number of actors."""

    @property
    def ratios(self) -> dict[str, float]:
        """Rates with actors against those without, each within one group."""
        ratios = {}
        for group, members in self.groups.items():
            rates = {one.name: one.steps_per_second for one in members}
            for name, rate in rates.items():
                if not name.startswith(LOCAL):
                    local = LOCAL + name[name.find(", ") :] if ", " in name else LOCAL
                    ratios[f"{group}: {name} / {local}"] = round(rate / rates[local], 3)
        return ratios


def measure_cluster(
    config: ClusterConfig, progress: Callable[[str, int, int], object]
) -> ClusterResult:
    """Measure collection alone, then whole training, all on this machine.

    `progress` is told the group under way, the turns done in it and the turns in it.
    """
    before = machine.describe()
    with connected(None, 1), ExitStack() as stack:
        progress("starting actors", 0, 1)
        trainers = {}
        for name, settings in _variants(config):
            trainers[name] = stack.enter_context(Trainer(settings))
        groups = {
            "collection": measured_group(
                "collection", _collections(trainers), config.pace, progress
            ),
            "training": measured_group("training", _trainings(trainers), config.pace, progress),
        }
    return ClusterResult(machine=before, load_after=machine.load(), groups=groups)


def _variants(config: ClusterConfig) -> Iterator[tuple[str, TrainConfig]]:
    usual = TrainConfig.from_flat(
        n_envs=config.games,
        update_steps=config.steps,
        red_agent="B_lineAgent",
        total_episodes=ENDLESS,
    )
    by_ray = {_named(actors): usual.with_settings(backend="ray", ray_actors=actors)
              for actors in config.actors}  # fmt: skip
    for name, settings in {LOCAL: usual, **by_ray}.items():
        yield name, settings
        yield f"{name}, --async", settings.with_settings(overlap=True)


def _named(actors: int) -> str:
    return f"{actors} {'actor' if actors == 1 else 'actors'}"


def _collections(trainers: dict[str, Trainer]) -> Contenders:
    for name, trainer in trainers.items():
        if not trainer.config.ppo.overlap:  # it changes when they collect, not how
            yield training_contender(name, trainer.config, trainer.collect_only), _nothing


def _trainings(trainers: dict[str, Trainer]) -> Contenders:
    for name, trainer in trainers.items():
        updates = trainer.updates()
        yield training_contender(name, trainer.config, updates.__next__), _nothing


def _nothing() -> None:
    """The trainers are closed together."""
