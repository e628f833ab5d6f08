"""A short training run, trained to its end or stopped early."""

from collections.abc import Callable
from pathlib import Path

from cagepool import runs
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from tests.train.null_listener import NullListener, never

SHORT = TrainConfig.from_flat(
    n_envs=7,
    total_episodes=200,
    n_epochs=2,
    max_steps=9,
    update_steps=13,
    hidden=(16,),
    n_evals=4,
    n_eval_episodes=5,
    checkpoint_seconds=0.0,
)


def create_run(path: Path, config: TrainConfig) -> runs.Run:
    return runs.create(path, config.as_dict(), "0.1.0")


def train_run(path: Path, config: TrainConfig) -> Path:
    """Train a run without interruption."""
    assert runner.train(create_run(path, config), NullListener(), never)
    return path


def stop_after(updates: int) -> Callable[[], bool]:
    """`should_stop` that stops a training after this many updates."""
    left = iter(range(updates - 1))
    return lambda: next(left, None) is None
