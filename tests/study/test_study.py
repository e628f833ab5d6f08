"""Studies from their first run to their results."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cagepool import runs
from cagepool.evaluate.protocol import score_table
from cagepool.evaluate.rollout import Trial
from cagepool.runs.folder import lock_folder
from cagepool.runs.study_schema import RESULTS, SCORES, STUDY, StudyFile, read_results
from cagepool.study.config import list_trainings, make_study, read_scores
from cagepool.study.study import create_or_open, play_run, run_study
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.evaluation import training_policy
from tests.environment import LIMIT_S
from tests.study.short_study import BASE, Recorder, created, numbers, short_study

PROGRAM = """
import sys
from pathlib import Path
from cagepool.study.study import run_study
run_study(Path(sys.argv[1]), jobs=2)
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, StudyFile]:
    """A study that ran without an interruption."""
    path = tmp_path_factory.mktemp("studies") / "finished"
    study = short_study()
    created(path, study)
    is_complete, _ = run_study(path, Recorder(), jobs=2)
    assert is_complete
    return path, study


def start(path: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)], cwd=Path(__file__).parents[2]
    )


def kill_after(path: Path, seconds: float) -> bool:
    """Run the study, kill it with `kill -9`; returns whether it had ended."""
    process = start(path)
    try:
        return process.wait(timeout=seconds) == 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return False


def kill_at_change(path: Path) -> None:
    """Run the study, kill it with `kill -9` as soon as a training has written a file."""
    before, process = written_files(path), start(path)
    while process.poll() is None and written_files(path) <= before:
        time.sleep(0.002)  # leaves the core to the study
    process.kill()
    process.wait()


def written_files(path: Path) -> set[str]:
    """Files of trainings, other than incomplete ones, which have a hidden name."""
    return {str(file) for file in path.rglob("checkpoints/*/*") if file.parent.name[0] != "."}


def resume(path: Path) -> None:
    is_complete, _ = run_study(path, Recorder(), jobs=2)
    assert is_complete


def test_a_study_plays_exactly_its_budget(finished: tuple[Path, StudyFile]) -> None:
    path, study = finished
    for task in created(path, study):
        assert int(runs.open_run(task.path).metrics()["episodes"][-1]) == 70
    assert read_results(path).episodes == 4 * 70


def test_all_runs_are_scored_on_the_same_games_at_every_milestone(
    finished: tuple[Path, StudyFile],
) -> None:
    path, study = finished
    for task in created(path, study):
        scores = task.scores()
        assert [one.percent for one in scores.milestones] == [50, 100]
        assert [one.episodes for one in scores.milestones] == [35, 70]
        run = runs.open_run(task.path)
        config = TrainConfig.from_dict(run.settings)
        policy = training_policy(run.checkpoint("last").arrays, config)
        table = score_table(policy, Trial(episodes=5, seed=153))
        assert table.total is not None
        assert scores.milestones[-1].total == pytest.approx(table.total.mean)


def test_stages_between_milestones_train_the_same_policy_as_one_training(
    finished: tuple[Path, StudyFile], tmp_path: Path
) -> None:
    path, study = finished
    task = created(path, study)[0]
    staged = runs.open_run(task.path)
    whole = runs.create(tmp_path / "whole", staged.settings, "")
    runner.train(whole, log=())
    first, second = (run.checkpoint("last").arrays for run in (staged, whole))
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_games_of_a_run_sum_to_its_total(finished: tuple[Path, StudyFile]) -> None:
    path, study = finished
    for task in created(path, study):
        final = task.scores().final["2.1"]
        assert np.mean(final.game_totals) == pytest.approx(final.total)
        assert sum(map(sum, final.cells.values())) == pytest.approx(final.total)
        loss = {red: sum(causes.values()) for red, causes in final.loss.items()}
        assert loss == pytest.approx({red: -cells[-1] for red, cells in final.cells.items()})


def test_results_compare_the_settings_in_words(finished: tuple[Path, StudyFile]) -> None:
    results = read_results(finished[0])
    (edition,) = results.editions
    assert [setting.name for setting in edition.settings] == [*finished[1].settings]
    (comparison,) = edition.comparisons
    assert "2 seeds" in comparison.sentence
    assert comparison.sentence.endswith(".")
    assert "exactly 70 episodes" in results.methods
    assert "seeds (0-1)" in results.methods


def test_scores_by_red_sum_to_the_mean_total(finished: tuple[Path, StudyFile]) -> None:
    for setting in read_results(finished[0]).editions[0].settings:
        by_red = sum(found.estimate for found in setting.by_red.values())
        assert by_red == pytest.approx(setting.statistics["mean"].estimate)


def test_a_study_that_is_complete_plays_nothing_again(finished: tuple[Path, StudyFile]) -> None:
    path, _ = finished
    recorder = Recorder()
    assert run_study(path, recorder)[0]
    assert recorder.events == []


def test_a_study_that_is_killed_twice_resumes_to_the_same_numbers(
    finished: tuple[Path, StudyFile], tmp_path: Path
) -> None:
    path, study = tmp_path / "killed", finished[1]
    create_or_open(path, study)
    for _ in range(2):
        kill_at_change(path)
    resume(path)
    assert numbers(path, study) == numbers(*finished)


@pytest.mark.soak
def test_a_study_that_is_killed_at_twenty_points_resumes_to_the_same_numbers(
    tmp_path: Path,
) -> None:
    study = make_study(
        {**BASE, "run": {**BASE["run"], "total_episodes": 1400, "checkpoint_seconds": 0.1}},
        short_study().protocol,
        vary={"features.scan_memory": [True, False]},
    )
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    create_or_open(whole, study)
    create_or_open(killed, study)
    resume(whole)
    rng = random.Random(20)
    kills = 0
    while kills < 20:
        kills += not kill_after(killed, rng.uniform(0.8, 3.0))
        if (killed / RESULTS).exists():  # begin again, until there were twenty kills
            resume(killed)
            assert numbers(killed, study) == numbers(whole, study)
            killed = tmp_path / f"killed-{kills}"
            create_or_open(killed, study)
    resume(killed)
    assert numbers(killed, study) == numbers(whole, study)


@pytest.mark.soak
def test_the_runs_of_a_killed_study_end(tmp_path: Path) -> None:
    study = make_study(
        {**BASE, "run": {**BASE["run"], "total_episodes": 10_000_000}}, short_study().protocol
    )
    path = tmp_path / "study"
    create_or_open(path, study)
    process = start(path)
    deadline = time.monotonic() + LIMIT_S
    while not _children(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    children = _children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


@pytest.mark.soak
def test_a_stop_writes_checkpoints_and_the_study_resumes(
    finished: tuple[Path, StudyFile], tmp_path: Path
) -> None:
    path, study = tmp_path / "stopped", finished[1]
    create_or_open(path, study)
    recorder = Recorder()
    is_complete, results = run_study(path, recorder, lambda: bool(recorder.events), jobs=1)
    assert not is_complete
    assert not results.failures
    resume(path)
    assert numbers(path, study) == numbers(*finished)


def test_a_failing_run_is_named_the_others_go_on_and_the_study_can_be_resumed(
    finished: tuple[Path, StudyFile], tmp_path: Path
) -> None:
    path, study = tmp_path / "failing", finished[1]
    bad, *others = created(path, study)
    damaged = bad.open_or_create().path / SCORES
    damaged.write_text("{")
    recorder = Recorder()
    is_complete, results = run_study(path, recorder, jobs=2)
    assert not is_complete
    assert [*results.failures] == [bad.name]
    assert "damaged" in results.failures[bad.name]
    assert {name for kind, name in recorder.events if kind == "end"} == {
        task.name for task in others
    }
    damaged.unlink()
    resume(path)
    assert numbers(path, study) == numbers(*finished)


@pytest.mark.parametrize("rows", ["", "1\n"])
def test_a_run_with_damaged_metrics_is_named_and_the_others_count(
    finished: tuple[Path, StudyFile], tmp_path: Path, rows: str
) -> None:
    path = shutil.copytree(finished[0], tmp_path / "damaged")
    bad = created(path, finished[1])[0]
    metrics = bad.path / runs.METRICS
    metrics.write_text(metrics.read_text().partition("\n")[0] + "\n" + rows)
    _, results = run_study(path)
    assert [*results.failures] == [bad.name]
    assert "metrics.csv is damaged" in results.failures[bad.name]
    assert results.complete == 3
    assert [one.name for one in results.editions[0].settings] == [[*finished[1].settings][1]]


def test_a_study_of_one_update_does_not_say_that_it_has_converged(
    finished: tuple[Path, StudyFile], tmp_path: Path
) -> None:
    path = shutil.copytree(finished[0], tmp_path / "short")
    for training in created(path, finished[1]):
        metrics = training.path / runs.METRICS
        header, first = metrics.read_text().splitlines()[:2]
        metrics.write_text(f"{header}\n{first}\n")
    _, results = run_study(path)
    assert {one.state for one in results.convergence} == {"unclear"}
    assert all("too few updates to tell" in one.sentence for one in results.convergence)


def test_files_of_a_study_have_one_line(finished: tuple[Path, StudyFile]) -> None:
    path, study = finished
    for file in (path / STUDY, path / RESULTS, created(path, study)[0].path / SCORES):
        assert file.read_text().count("\n") == 1


def test_a_study_gets_more_seeds_and_keeps_its_runs(
    finished: tuple[Path, StudyFile], tmp_path: Path
) -> None:
    path = shutil.copytree(finished[0], tmp_path / "more")
    study = short_study(seeds=[0, 1, 2])
    create_or_open(path, study)
    recorder = Recorder()
    is_complete, results = run_study(path, recorder, jobs=2)
    assert is_complete
    assert {name for kind, name in recorder.events if kind == "start"} == {
        f"{setting}, seed 2" for setting in study.settings
    }
    assert all(one.seeds == [0, 1, 2] for one in results.editions[0].settings)
    with pytest.raises(ValueError, match="other settings"):
        create_or_open(path, finished[1])


@pytest.mark.slow
def test_a_reward_that_prints_does_not_disturb_its_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "printing.py").write_text(
        "def reward(step):\n    print(7)\n    return step.reward\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    settings = {**BASE, "env": {**BASE["env"], "reward": "printing:reward"}}
    study = make_study(settings, short_study().protocol)
    path = tmp_path / "study"
    created(path, study)
    is_complete, results = run_study(path, Recorder(), jobs=2)
    assert is_complete, results.failures


def test_a_process_that_is_killed_is_a_failing_run(tmp_path: Path) -> None:
    study = make_study(
        {**BASE, "run": {**BASE["run"], "total_episodes": 10_000_000}}, short_study().protocol
    )
    path = tmp_path / "study"
    create_or_open(path, study)
    recorder = Recorder()
    killed: list[int] = []

    def kill_once() -> bool:
        for child in _children(os.getpid()) if not killed else ():
            if "experiments import worker" in _command(child):
                os.kill(child, signal.SIGKILL)
                killed.append(child)
        return bool(recorder.messages)

    run_study(path, recorder, kill_once, jobs=1)
    assert [*recorder.messages.values()] == ["its process was killed by signal 9"]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_two_studies_in_one_folder_are_refused(finished: tuple[Path, StudyFile]) -> None:
    path, _ = finished
    with pytest.raises(ValueError, match=r"needs a folder of its own, .* other settings"):
        create_or_open(path, short_study(episodes=6))


def test_two_processes_cannot_run_one_study(finished: tuple[Path, StudyFile]) -> None:
    path, _ = finished
    with lock_folder(path, STUDY), pytest.raises(ValueError, match="is being trained"):
        run_study(path, Recorder())


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is in use"):
        create_or_open(tmp_path, short_study())


def test_gradient_variance_is_measured_at_milestones(tmp_path: Path) -> None:
    study = short_study(gradient_rollouts=3, milestones=[100])
    run = list_trainings(tmp_path, study)[0].open_or_create()
    assert play_run(run, protocol=study.protocol)
    (milestone,) = read_scores(run).milestones
    assert milestone.gradient_variance is not None
    assert milestone.gradient_variance > 0


def test_both_editions_are_scored_if_asked(tmp_path: Path) -> None:
    study = short_study(editions=["2.1", "leaderboard"], milestones=[])
    run = list_trainings(tmp_path, study)[0].open_or_create()
    assert play_run(run, protocol=study.protocol)
    assert [*read_scores(run).final] == ["2.1", "leaderboard"]
