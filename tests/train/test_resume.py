"""Runs that are stopped or killed, and go on as if nothing had happened."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from cagepool import runs
from cagepool.train import runner
from cagepool.train.collectors import LocalCrew
from cagepool.train.config import TrainConfig, merge_settings
from cagepool.train.ppo import Trainer
from tests.train.kept import outcome, table
from tests.train.listening import Silent, never

SMALL = TrainConfig.from_flat(
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
OVERLAP = pytest.mark.parametrize("overlap", [False, True], ids=["in turn", "async"])


def trained(path: Path, config: TrainConfig) -> Path:
    """A run that was never disturbed."""
    run = runs.create(path, config.as_dict(), "0.1.0")
    assert runner.train(run, Silent(), never)
    return path


def after(updates: int) -> Callable[[], bool]:
    """Asks to stop after this many updates."""
    left = iter(range(updates - 1))
    return lambda: next(left, None) is None


@OVERLAP
def test_a_run_that_is_stopped_again_and_again_ends_with_the_same_numbers(
    tmp_path: Path, overlap: bool
) -> None:
    config = SMALL.with_settings(overlap=overlap, order="reverse", order_input=True)
    whole = trained(tmp_path / "whole", config)
    run = runs.create(tmp_path / "stopped", config.as_dict(), "0.1.0")
    stops = 0
    while not runner.train(runs.open_run(run.path), Silent(), after(1 + stops * 3)):
        stops += 1

    assert stops > 2
    assert outcome(run.path) == outcome(whole)


@OVERLAP
def test_a_finished_run_is_not_trained_any_further(tmp_path: Path, overlap: bool) -> None:
    path = trained(tmp_path / "run", SMALL.with_settings(overlap=overlap, total_episodes=30))
    before = outcome(path)

    assert runner.train(runs.open_run(path), Silent(), never)

    assert outcome(path) == before


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_over(tmp_path: Path) -> None:
    config = SMALL.with_settings(total_episodes=60, checkpoint_seconds=1e6)
    whole = trained(tmp_path / "whole", config)
    run = runs.create(tmp_path / "killed", config.as_dict(), "0.1.0")
    (run.path / runs.METRICS).write_text("update,episodes\n1,7\n2,1")

    assert runner.train(run, Silent(), never)

    assert outcome(run.path) == outcome(whole)


def test_runs_that_are_killed_at_random_moments_end_with_the_same_numbers(tmp_path: Path) -> None:
    long = SMALL.with_settings(total_episodes=250)
    configs = {"in turn": long, "async": long.with_settings(overlap=True)}
    killed = {
        name: runs.create(tmp_path / f"killed {name}", config.as_dict(), "0.1.0").path
        for name, config in configs.items()
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.killing", "3", *map(str, killed.values())],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert int(done.stdout) > 3
    for name, path in killed.items():
        assert runs.open_run(path).checkpoint_updates("last")
        assert runner.train(runs.open_run(path), Silent(), never)
        assert outcome(path) == outcome(trained(tmp_path / name, configs[name]))


@OVERLAP
def test_environments_that_cannot_be_saved_resume_with_an_exact_budget(
    tmp_path: Path, overlap: bool
) -> None:
    config = SMALL.with_settings(
        env="tests.train.scripted:Counting", backend="sync", overlap=overlap, n_envs=4,
        total_episodes=101, update_steps=5,
    )  # fmt: skip
    run = runs.create(tmp_path / "run", config.as_dict(), "0.1.0")
    stops = 0
    while not runner.train(run, Silent(), after(4)):
        stops += 1

    assert stops > 3
    rows = table(run.path / runs.METRICS)
    assert [int(row["update"]) for row in rows] == [*range(1, len(rows) + 1)]
    assert int(rows[-1]["episodes"]) == 101
    lengths = [float(row["length_mean"] or 0) for row in rows]
    episodes = np.diff([0, *(int(row["episodes"]) for row in rows)])
    assert np.dot(lengths, episodes) == pytest.approx(int(rows[-1]["steps"]))


def test_environments_that_cannot_be_saved_go_on_with_other_luck(tmp_path: Path) -> None:
    config = SMALL.with_settings(env="tests.train.scripted:Counting", backend="sync", n_envs=4)
    run = runs.create(tmp_path / "run", config.as_dict(), "0.1.0")
    runner.train(run, Silent(), after(2))
    checkpoint = run.checkpoint("last")

    with closing(LocalCrew(config)) as fresh, closing(LocalCrew(config)) as resumed:
        resumed.restore(checkpoint.arrays, checkpoint.state)
        numbers = [crew.station.rollouts[0].inputs[0, :, 0].tolist() for crew in (fresh, resumed)]

    assert numbers[0] != numbers[1]


def test_a_trainer_can_be_saved_before_its_first_update() -> None:
    with Trainer(SMALL) as trainer, Trainer(SMALL.with_settings(seed=5)) as other:
        other.restore(*trainer.state())
        ours, theirs = next(trainer.updates()), next(other.updates())

    assert ours.learned == theirs.learned
    assert ours.finished.returns == theirs.finished.returns


@pytest.mark.parametrize("missing", ["progress", "choice_rng", "update"])
def test_a_state_without_what_is_needed_is_refused(tmp_path: Path, missing: str) -> None:
    path = trained(tmp_path / "run", SMALL.with_settings(total_episodes=10))
    run = runs.open_run(path)
    last = run.checkpoint("last")
    state = {name: value for name, value in last.state.items() if name != missing}
    run.save_checkpoint("last", last.arrays, {"update": 1, **state})
    if missing == "update":
        state_path = run.checkpoint("last").path / runs.STATE
        state_path.write_text(state_path.read_text().replace('"update"', '"renamed"'))

    with pytest.raises(ValueError, match=f"(does not fit its run|is damaged): .*{missing}"):
        runner.train(run, Silent(), never)


def test_weights_of_other_networks_are_refused(tmp_path: Path) -> None:
    path = trained(tmp_path / "run", SMALL.with_settings(total_episodes=10))
    settings = merge_settings(runs.open_run(path).settings, {"ppo": {"hidden": [8]}})

    with pytest.raises(ValueError, match="does not fit its run: the weights actor"):
        runner.train(runs.Run(path, settings), Silent(), never)


def test_a_run_whose_losses_are_lost_stops_and_keeps_what_it_had(tmp_path: Path) -> None:
    config = SMALL.with_settings(learning_rate=1e30, max_grad_norm=1e30)
    run = runs.create(tmp_path / "run", config.as_dict(), "0.1.0")

    with pytest.raises(ValueError, match=r"losses of update .* must be finite.*learning_rate"):
        runner.train(run, Silent(), never)

    if run.checkpoint_updates("last"):
        weights = run.checkpoint("last").arrays["actor.0.weight"]
        assert np.isfinite(weights).all()
    assert TrainConfig.from_dict(run.settings) == config
