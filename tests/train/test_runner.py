"""Runs that are stopped, killed and resumed give the results of uninterrupted runs."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import runs
from cagepool.train import runner
from cagepool.train.collectors import LocalCollector
from cagepool.train.config import TrainConfig, merge_settings
from cagepool.train.ppo import Trainer
from tests.environment import LIMIT_S, environ_without_coverage
from tests.train.null_listener import NullListener, never
from tests.train.run_results import run_results, table_without_times
from tests.train.short_runs import SHORT, create_run, stop_after, train_run

OVERLAP = pytest.mark.parametrize("overlap", [False, True], ids=["in turn", "async"])
COUNTING = SHORT.with_settings(env="tests.train.toy_envs:Counting", backend="sync", n_envs=4)


@OVERLAP
@pytest.mark.parametrize(
    "settings",
    [{}, {"learner": "torch", "threads": 1}, {"network": "gru", "threads": 1}],
    ids=["native", "torch", "gru"],
)
def test_a_run_that_is_stopped_repeatedly_gives_the_same_results(
    tmp_path: Path, settings: dict[str, Any], overlap: bool
) -> None:
    config = SHORT.with_settings(overlap=overlap, order="reverse", order_input=True, **settings)
    whole = train_run(tmp_path / "whole", config)
    run = create_run(tmp_path / "stopped", config)
    stops = 0
    while not runner.train(runs.open_run(run.path), NullListener(), stop_after(1 + stops * 3)):
        stops += 1

    assert stops > 2
    assert run_results(run.path) == run_results(whole)


@OVERLAP
def test_a_finished_run_is_not_trained_further(tmp_path: Path, overlap: bool) -> None:
    config = SHORT.with_settings(overlap=overlap, total_episodes=30)
    path = train_run(tmp_path / "run", config)
    before = run_results(path)

    assert runner.train(runs.open_run(path), NullListener(), never)

    assert run_results(path) == before


def test_a_run_killed_before_its_first_checkpoint_starts_over(tmp_path: Path) -> None:
    config = SHORT.with_settings(total_episodes=60, checkpoint_seconds=1e6)
    whole = train_run(tmp_path / "whole", config)
    run = create_run(tmp_path / "killed", config)
    (run.path / runs.METRICS).write_text("update,episodes\n1,7\n2,1")

    assert runner.train(run, NullListener(), never)

    assert run_results(run.path) == run_results(whole)


@pytest.mark.parametrize("kills", [3, pytest.param(12, marks=pytest.mark.soak)])
def test_runs_killed_at_random_moments_give_the_same_results(tmp_path: Path, kills: int) -> None:
    in_turn = SHORT.with_settings(total_episodes=250)
    configs = {
        "in turn": in_turn,
        "async": in_turn.with_settings(
            overlap=True, belief=True, critic_inputs="true", lengths="3,5,9"
        ),
        "torch": in_turn.with_settings(learner="torch", threads=1, total_episodes=100),
        "gru, async": in_turn.with_settings(
            network="gru", belief=True, overlap=True, threads=1, total_episodes=100
        ),
    }
    killed = {
        name: create_run(tmp_path / f"killed {name}", config).path
        for name, config in configs.items()
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.kill_training", str(kills), *map(str, killed.values())],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    )

    assert int(done.stdout) > 3
    for name, path in killed.items():
        assert runs.open_run(path).checkpoint_updates("last")
        assert runner.train(runs.open_run(path), NullListener(), never)
        assert run_results(path) == run_results(train_run(tmp_path / name, configs[name]))


@OVERLAP
@pytest.mark.parametrize(
    ("share", "pairs"), [("0.06", "2"), pytest.param("1", "60", marks=pytest.mark.soak)]
)
def test_runs_that_end_at_a_file_operation_resume_to_the_same_results(
    tmp_path: Path, overlap: bool, share: str, pairs: str
) -> None:
    way = "async" if overlap else "in turn"
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.crash_points", str(tmp_path), way, share, pairs],
        capture_output=True,
        text=True,
        check=False,
        env=environ_without_coverage(),
    )

    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["kills"] >= found["operations"] * float(share) > 5
    assert found["differences"] == found["leftovers"] == []


@OVERLAP
def test_environments_that_cannot_be_saved_resume_with_an_exact_episode_count(
    tmp_path: Path, overlap: bool
) -> None:
    config = COUNTING.with_settings(overlap=overlap, total_episodes=101, update_steps=5)
    run = create_run(tmp_path / "run", config)
    stops = 0
    while not runner.train(run, NullListener(), stop_after(4)):
        stops += 1

    assert stops > 3
    rows = table_without_times(run.path / runs.METRICS)
    assert [int(row["update"]) for row in rows] == [*range(1, len(rows) + 1)]
    assert int(rows[-1]["episodes"]) == 101
    lengths = [float(row["length_mean"] or 0) for row in rows]
    episodes = np.diff([0, *(int(row["episodes"]) for row in rows)])
    assert np.dot(lengths, episodes) == pytest.approx(int(rows[-1]["steps"]))


def test_environments_that_cannot_be_saved_resume_with_other_seeds(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", COUNTING)
    runner.train(run, NullListener(), stop_after(2))
    checkpoint = run.checkpoint("last")

    with closing(LocalCollector(COUNTING)) as fresh, closing(LocalCollector(COUNTING)) as resumed:
        resumed.restore(checkpoint.arrays, checkpoint.state)
        numbers = [
            collector.worker.buffers[0].features[0, :, 0].tolist() for collector in (fresh, resumed)
        ]

    assert numbers[0] != numbers[1]


def test_a_trainer_can_be_saved_before_its_first_update() -> None:
    with Trainer(SHORT) as trainer, Trainer(SHORT.with_settings(seed=5)) as other:
        other.restore(*trainer.state())
        expected, restored = next(trainer.updates()), next(other.updates())

    assert restored.stats == expected.stats
    assert restored.finished.returns == expected.finished.returns


@pytest.mark.parametrize("missing", ["progress", "choice_rng", "update"])
def test_an_incomplete_checkpoint_is_refused(tmp_path: Path, missing: str) -> None:
    path = train_run(tmp_path / "run", SHORT.with_settings(total_episodes=10))
    run = runs.open_run(path)
    last = run.checkpoint("last")
    state = {name: value for name, value in last.state.items() if name != missing}
    run.save_checkpoint("last", last.arrays, {"update": 1, **state})
    if missing == "update":
        state_path = run.checkpoint("last").path / runs.STATE
        state_path.write_text(state_path.read_text().replace('"update"', '"renamed"'))

    with pytest.raises(ValueError, match=f"(does not fit its run|is damaged): .*{missing}"):
        runner.train(run, NullListener(), never)


def test_weights_of_other_networks_are_refused(tmp_path: Path) -> None:
    path = train_run(tmp_path / "run", SHORT.with_settings(total_episodes=10))
    settings = merge_settings(runs.open_run(path).settings, {"ppo": {"hidden": [8]}})

    with pytest.raises(ValueError, match="does not fit its run: the weights actor"):
        runner.train(runs.Run(path, settings), NullListener(), never)


def test_a_run_whose_losses_are_not_finite_stops_and_keeps_its_checkpoint(tmp_path: Path) -> None:
    config = SHORT.with_settings(learning_rate=1e30, max_grad_norm=1e30)
    run = create_run(tmp_path / "run", config)

    with pytest.raises(ValueError, match=r"losses of update .* must be finite.*learning_rate"):
        runner.train(run, NullListener(), never)

    if run.checkpoint_updates("last"):
        weights = run.checkpoint("last").arrays["actor.0.weight"]
        assert np.isfinite(weights).all()
    assert TrainConfig.from_dict(run.settings) == config
