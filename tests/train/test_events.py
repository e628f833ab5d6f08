"""What TensorBoard reads of a run."""

from pathlib import Path

import pytest

from cagepool import runs
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.events import Events
from tests.train.listening import Silent, never

CONFIG = TrainConfig.from_flat(
    n_envs=5, total_episodes=50, max_steps=4, update_steps=4, hidden=(8,), n_eval_episodes=2
)


def scalars(folder: Path, tag: str) -> list[tuple[int, float]]:
    """Steps and values as TensorBoard shows them."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator(str(folder))
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def test_tensorboard_shows_every_update_of_a_run_that_was_resumed(tmp_path: Path) -> None:
    run = runs.create(tmp_path / "run", CONFIG.as_dict(), "0.1.0")
    stops = iter([False, False, False, True])
    assert not runner.train(run, Silent(), lambda: next(stops))
    assert runner.train(run, Silent(), never)

    metrics = run.metrics()
    shown = scalars(run.path, "train/entropy")
    assert [step for step, _ in shown] == metrics["episodes"] == [*range(5, 51, 5)]
    assert [value for _, value in shown] == pytest.approx(metrics["entropy"])
    checks = run.checks()
    assert [step for step, _ in scalars(run.path, "check/score")] == checks["episodes"]


def test_steps_that_are_played_again_are_shown_once(tmp_path: Path) -> None:
    killed = Events(tmp_path)
    for step in (10, 20, 30):
        killed.add({"a": step}, step)
    resumed = Events(tmp_path, dropped_from=21)
    resumed.add({"a": 33.0}, 30)
    resumed.add({"a": 40.0}, 40)
    killed.close()
    resumed.close()

    assert scalars(tmp_path, "a") == [(10, 10), (20, 20), (30, 33), (40, 40)]
