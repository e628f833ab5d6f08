"""Trainer compared with the trainer of another build of cagepool."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.suites.subprocess_timer import time_other_training
from cagepool.bench.measure import (
    Contender,
    Figures,
    MakeContender,
    Pace,
    Progress,
    measure_groups,
)
from cagepool.bench.schema import Groups, rates
from cagepool.bench.train import TrainBenchConfig, rollout_contender, trainer_contender
from cagepool.train.config import TrainConfig

WORK = {"collection": rollout_contender, "training": trainer_contender}
THREADS = (1, 2)


@dataclass(frozen=True, kw_only=True)
class TrainPeersConfig:
    """Settings of this bench; without another build there is nothing to measure."""

    other_build: Path | None = None
    """Folder with another build of cagepool."""
    pace: Pace = field(default_factory=lambda: Pace(repetitions=9, seconds=0.5))


def measure_train_peers(config: TrainPeersConfig, progress: Progress) -> Figures:
    """Measure rollouts and updates of both builds, interleaved.

    Raises:
        ValueError: the folder has no build.
    """
    if config.other_build is None:
        return Figures(ratios={})
    groups = [(work, _contenders(config.other_build, work)) for work in WORK]
    measured = measure_groups(groups, config.pace, progress)
    return Figures(groups=measured, ratios=build_ratios(measured))


def build_ratios(groups: Groups) -> dict[str, float]:
    """Rates of this build, divided by those of the other, also each with its best threads."""
    ratios: dict[str, float] = {}
    for work in WORK:
        rate = rates(groups[work])
        own, other = (
            [rate[_name(build, threads)] for threads in THREADS]
            for build in ("this build", "other build")
        )
        for threads, ratio in zip(THREADS, zip(own, other, strict=True), strict=True):
            ratios[f"this build / other build, {work}, {_threads(threads)}"] = ratio[0] / ratio[1]
        ratios[f"this build / other build, {work}, fastest"] = max(own) / max(other)
    return {name: round(ratio, 3) for name, ratio in ratios.items()}


def _contenders(other_build: Path, work: str) -> list[MakeContender]:
    return [
        make
        for threads in THREADS
        for make in (
            partial(_other_contender, other_build, work, threads),
            partial(WORK[work], _name("this build", threads), _train_config(threads)),
        )
    ]


def _other_contender(folder: Path, work: str, threads: int, stack: ExitStack) -> Contender:
    config = _train_config(threads)
    return Contender(
        name=_name("other build", threads),
        settings={"games": config.env.n_envs, "steps": config.ppo.update_steps},
        steps_per_call=config.env.n_envs * config.ppo.update_steps,
        timer=stack.enter_context(time_other_training(folder, work, threads)),
    )


def _train_config(threads: int) -> TrainConfig:
    return TrainBenchConfig().train_config(threads=threads)


def _name(build: str, threads: int) -> str:
    return f"{build}, {_threads(threads)}"


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"
