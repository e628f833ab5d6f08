"""TensorBoard events of a run."""

from pathlib import Path

import pytest

from cagepool import runs
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.logging import TensorBoardWriter
from tests.train.null_listener import NullListener, never

CONFIG = TrainConfig.from_flat(
    n_envs=5, total_episodes=50, max_steps=4, update_steps=4, hidden=(8,), n_eval_episodes=2
)


def scalars(folder: Path, tag: str) -> list[tuple[int, float]]:
    """Steps and values of a tag as TensorBoard shows them."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator(str(folder))
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def test_tensorboard_shows_every_update_of_a_resumed_run(tmp_path: Path) -> None:
    run = runs.create(tmp_path / "run", CONFIG.as_dict(), "0.1.0")
    stops = iter([False, False, False, True])
    assert not runner.train(run, NullListener(), lambda: next(stops))
    assert runner.train(run, NullListener(), never)

    metrics = run.metrics()
    entropy = scalars(run.path, "train/entropy")
    assert [step for step, _ in entropy] == metrics["episodes"] == [*range(5, 51, 5)]
    assert [value for _, value in entropy] == pytest.approx(metrics["entropy"])
    checks = run.checks()
    assert [step for step, _ in scalars(run.path, "check/score")] == checks["episodes"]


def test_steps_that_are_repeated_after_a_kill_are_shown_once(tmp_path: Path) -> None:
    killed = TensorBoardWriter(tmp_path)
    for step in (10, 20, 30):
        killed.add_scalars({"a": step}, step)
    resumed = TensorBoardWriter(tmp_path, first_dropped=21)
    resumed.add_scalars({"a": 33.0}, 30)
    resumed.add_scalars({"a": 40.0}, 40)
    killed.close()
    resumed.close()

    assert scalars(tmp_path, "a") == [(10, 10), (20, 20), (30, 33), (40, 40)]
