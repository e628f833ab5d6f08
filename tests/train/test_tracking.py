"""Trackers and callbacks of a run: TensorBoard events, W&B offline, names of the fields."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cagepool import runs
from cagepool.cli.main import run as run_command
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.tracking import Row, TensorBoardTracker, evaluation_fields, update_fields
from tests.cli.command import python
from tests.test_optional import COMMAND, WITHOUT
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
    entropy = scalars(run.path, "losses/entropy")
    assert [step for step, _ in entropy] == metrics["steps"] == [*range(20, 201, 20)]
    assert [value for _, value in entropy] == pytest.approx(metrics["entropy"])
    checks = run.evaluations()
    assert [step for step, _ in scalars(run.path, "eval/score")] == checks["steps"]


def test_steps_that_are_repeated_after_a_kill_are_shown_once(tmp_path: Path) -> None:
    killed = TensorBoardTracker(tmp_path)
    for step in (10, 20, 30):
        killed.add_scalars({"a": step}, step)
    resumed = TensorBoardTracker(tmp_path, first_dropped=21)
    resumed.add_scalars({"a": 33.0}, 30)
    resumed.add_scalars({"a": 40.0}, 40)
    killed.close()
    resumed.close()

    assert scalars(tmp_path, "a") == [(10, 10), (20, 20), (30, 33), (40, 40)]


SB3_AND_CLEANRL = {
    *("rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "train/approx_kl"),
    *("train/clip_fraction", "train/entropy_loss", "train/explained_variance"),
    *("train/learning_rate", "train/policy_gradient_loss", "train/value_loss"),
    *("charts/episodic_return", "charts/episodic_length", "charts/SPS", "charts/learning_rate"),
    *("losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/approx_kl"),
    *("losses/clipfrac", "losses/explained_variance"),
}


class Recorder:
    """Callback that keeps what it receives."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.scores: list[Row] = []

    def on_update(self, row: Row) -> None:
        self.rows.append(row)

    def on_evaluation(self, scores: Row) -> None:
        self.scores.append(scores)


def test_a_callback_receives_the_rows_of_the_tables(tmp_path: Path) -> None:
    run = runs.create(tmp_path / "run", CONFIG.as_dict(), "0.1.0")
    recorder = Recorder()

    assert runner.train(run, recorder, log=())

    for table, rows in ((run.metrics(), recorder.rows), (run.evaluations(), recorder.scores)):
        for column in ("update", "steps", "return_mean"):
            assert table[column] == [row[column] for row in rows]
    assert [row["best"] for row in recorder.scores] == run.evaluations()["best"]
    assert not [*run.path.glob("events*")]


def test_fields_have_the_names_of_stable_baselines3_and_cleanrl(tmp_path: Path) -> None:
    run = runs.create(tmp_path / "run", CONFIG.as_dict(), "0.1.0")
    recorder = Recorder()
    runner.train(run, recorder, log=())
    row, scores = recorder.rows[-1], recorder.scores[-1]

    fields = update_fields(row)

    assert fields.keys() >= SB3_AND_CLEANRL
    assert fields["rollout/ep_rew_mean"] == fields["charts/episodic_return"] == row["return_mean"]
    assert fields["train/entropy_loss"] == -row["entropy"]
    assert fields["time/fps"] == pytest.approx(row["steps"] / row["seconds"])
    assert fields["train/gradient_norm"] == row["gradient_norm"]
    assert "train/compliance" not in fields  # undefined without an order
    assert evaluation_fields(scores)["eval/mean_reward"] == scores["return_mean"]


def wandb_records(folder: Path) -> Iterator[Any]:
    """Records of all W&B files in a folder: a log in the format of LevelDB, of protobufs."""
    from wandb.proto import wandb_internal_pb2  # noqa: PLC0415 - takes seconds

    records: Any = vars(wandb_internal_pb2)["Record"]
    for file in sorted(folder.rglob("*.wandb")):
        content, place, record = file.read_bytes(), 7, b""
        while place < len(content):
            if 2**15 - place % 2**15 < 7:  # the rest of a block is empty
                place += 2**15 - place % 2**15
                continue
            size, kind = struct.unpack("<HB", content[place + 4 : place + 7])
            record += content[place + 7 : place + 7 + size]
            place += 7 + size
            if kind in (1, 4):  # full, or last
                yield records.FromString(record)
                record = b""


def wandb_history(folder: Path) -> list[dict[str, float]]:
    return [
        {
            item.key or item.nested_key[0]: json.loads(item.value_json)
            for item in record.history.item
        }
        for record in wandb_records(folder)
        if record.HasField("history")
    ]


@pytest.mark.soak
def test_wandb_offline_has_every_update_of_a_resumed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = runs.create(tmp_path / "run", CONFIG.as_dict(), "0.1.0")
    stops = iter([False, False, False, True])

    assert not runner.train(run, None, lambda: next(stops), log=("wandb",))
    assert runner.train(run, log=("wandb",))

    metrics, checks = run.metrics(), run.evaluations()
    history = wandb_history(run.path)
    returns = {row["global_step"]: row["charts/episodic_return"] for row in history}
    assert returns == dict(zip(metrics["steps"], metrics["return_mean"], strict=True))
    scores = {row["global_step"]: row["eval/score"] for row in history if "eval/score" in row}
    assert scores == dict(zip(checks["steps"], checks["score"], strict=True))
    folders = [path.name for path in (run.path / "wandb").glob("offline-run-*")]
    assert len(folders) == 2
    assert len({name.rpartition("-")[2] for name in folders}) == 1  # one W&B run
    assert not [*run.path.glob("events*")]


def test_an_unknown_tracker_is_refused_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"

    assert run_command(["train", "--log", "tensorboard,wandbb", "--out", str(out)]) == 2

    assert capsys.readouterr().err == (
        "cagepool: --log must be none, or one or more of tensorboard, wandb joined by a comma; "
        "got 'wandbb', did you mean wandb?\n"
    )
    assert not out.exists()


def test_a_missing_wandb_is_named_with_its_extra(tmp_path: Path) -> None:
    program = WITHOUT.format(library="wandb") + COMMAND

    done = python("-c", program, "train", "--log", "wandb", "--out", str(tmp_path / "run"))

    remedy = "pip install wandb, or install cagepool with its extra `wandb`"
    assert (done.returncode, done.stderr) == (
        2,
        f"cagepool: the tracker wandb needs wandb: {remedy}\n",
    )
    assert not (tmp_path / "run").exists()
