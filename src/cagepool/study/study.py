"""Run a study: train and score every run, then write the results.

A run is trained in stages between milestones. A run that was stopped or killed at any point goes on
to the same numbers: a milestone is written before training continues, and training resumes exactly
from its last checkpoint.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cagepool import runs
from cagepool.evaluate.behavior import BehaviorRecorder
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.statistics import GameStatistics, ScoreTable, play_and_count
from cagepool.experiments.executor import ProcessExecutor, RayExecutor, TrainingError
from cagepool.experiments.listener import Listener
from cagepool.runs.folder import create_folder, lock_folder
from cagepool.runs.study_schema import (
    SCORES,
    STUDY,
    BehaviorCounts,
    FinalScores,
    MilestoneScores,
    ResultsFile,
    ScoresFile,
    StudyFile,
    StudyProtocol,
)
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.study.config import (
    StudyTraining,
    has_more_seeds,
    is_same,
    list_trainings,
    read_scores,
)
from cagepool.study.results import write_results
from cagepool.study.statistics import cvar
from cagepool.train import runner
from cagepool.train.config import TrainConfig
from cagepool.train.evaluation import training_policy
from cagepool.train.learner import LossCoefficients
from cagepool.train.ppo import Trainer
from cagepool.train.tracking import Callback, NullCallback, Row
from cagepool.types import Arrays, Float64s

CVAR_SHARE = 0.05
PROBE_SEED = 0x6AAD  # of the rollouts that measure gradients, which no training plays


def create_or_open(path: Path, study: StudyFile) -> None:
    """Create the folder of a study; one that holds the same study, or fewer seeds, is resumed.

    Raises:
        ValueError: the folder holds something else, or cannot be written.
    """
    existing = runs.read_if_exists(path / STUDY, StudyFile)
    if existing is None:
        try:
            create_folder(path, STUDY, (runs.to_json(study, indent=None) + "\n").encode())
        except FileExistsError:
            raise ValueError(
                f"a study needs a folder of its own, {path} is in use: choose another with --out"
            ) from None
    elif has_more_seeds(study, existing):
        with lock_folder(path, STUDY):
            runs.write_model(path / STUDY, study, indent=None)
    elif not is_same(study, existing):
        raise ValueError(
            f"a study needs a folder of its own, {path} holds one with other settings: choose "
            f"another with --out, or resume that one with: cagepool study {path}"
        )


def read_study_file(path: Path) -> StudyFile:
    """Settings and protocol of the study in a folder."""
    study = runs.read_if_exists(path / STUDY, StudyFile)
    if study is None:
        raise ValueError(f"a study must be a TOML file or a folder with {STUDY}, {path} is not")
    return study


def run_study(
    path: Path,
    listener: Listener | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    jobs: int | None = None,
    on_ray: bool = False,
) -> tuple[bool, ResultsFile]:
    """Run or resume a study.

    A run that fails is reported to the listener and in the results; the others go on. Runs that are
    complete are not played again.

    Args:
        path: Folder of the study.
        listener: Receives the progress.
        should_stop: Asked several times per second.
        jobs: Trainings at a time, each in a process with one thread; none: one per core.
        on_ray: Whether trainings are tasks of a Ray cluster.

    Returns:
        Whether all runs are complete, and the results of those that are.

    Raises:
        ValueError: the folder is damaged, or another process runs the study.
    """
    listener, study = listener or Listener(), read_study_file(path)
    play = partial(play_run, protocol=study.protocol)
    failures: dict[str, str] = {}
    with lock_folder(path, STUDY):
        trainings = [one for one in list_trainings(path, study) if not is_complete(one)]
        with (RayExecutor if on_ray else ProcessExecutor)(play, listener, jobs) as executor:
            for training in trainings:
                executor.submit(training)
            for training in trainings:
                try:
                    executor.wait(training, should_stop)
                except TrainingError as error:
                    failures[training.name] = str(error)
        all_complete = all(map(is_complete, trainings))
        return all_complete, write_results(path, study, failures)


def is_complete(training: StudyTraining) -> bool:
    """Whether a training has ended and is scored.

    One whose files are damaged is not: its process names the damage, and the others go on.
    """
    try:
        return bool(training.scores().final)
    except runs.RunFileError:
        return False


def play_run(
    run: runs.Run,
    callback: Callback | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    protocol: StudyProtocol,
) -> bool:
    """Train a run to its end and score it, from its start or from where it was stopped.

    Returns whether the run is complete; `should_stop` is asked after each update.
    """
    callback = callback or NullCallback()
    config = TrainConfig.from_dict(run.settings)
    scores = read_scores(run)
    done = [milestone.percent for milestone in scores.milestones]
    for percent in (mark for mark in protocol.milestones if mark not in done):
        episodes = math.ceil(config.run.total_episodes * percent / 100)
        if not _train_until(run, episodes, callback, should_stop):
            return False
        milestone = _score_milestone(run, config, protocol, percent)
        scores = ScoresFile(milestones=[*scores.milestones, milestone])
        runs.write_model(run.path / SCORES, scores, indent=None)
    if not _train_until(run, config.run.total_episodes, callback, should_stop):
        return False
    if not scores.final:
        editions = protocol.editions or [config.env.edition]
        final = {edition: _score_final(run, config, protocol, edition) for edition in editions}
        scores = ScoresFile(milestones=scores.milestones, final=final)
        runs.write_model(run.path / SCORES, scores, indent=None)
    return True


def gradient_moments(config: TrainConfig, arrays: Arrays, rollouts: int) -> dict[str, float]:
    """Variance and signal of the gradient that updates see, from several rollouts of one policy.

    Each rollout has the environments and steps of a training's rollout. The gradient is that of the
    policy loss of all its transitions, without the entropy bonus; those of the critic are left out.

    Returns:
        `gradient_variance`, the trace of the covariance over rollouts, and `gradient_signal`, the
        squared norm of the expected gradient, estimated without bias: it may be negative.
    """
    transitions_per_rollout = config.env.n_envs * config.ppo.update_steps
    probe = config.with_settings(
        seed=PROBE_SEED,
        overlap=False,
        total_episodes=rollouts * transitions_per_rollout + config.env.n_envs,
    )
    with Trainer(probe) as trainer:
        trainer.load_policy(arrays)
        gradients = np.stack([_actor_gradient(trainer) for _ in range(rollouts)])
    expected = gradients.mean(axis=0)
    variance = float(np.square(gradients - expected).sum() / (rollouts - 1))
    signal = float(np.square(expected).sum()) - variance / rollouts
    return {"gradient_variance": variance, "gradient_signal": signal}


def _actor_gradient(trainer: Trainer) -> Float64s:
    rollout = trainer.normalization.apply(trainer.collect().rollout)
    transitions, _ = trainer.ppo.transitions(rollout)
    ppo = trainer.config.ppo
    coefficients = LossCoefficients(ppo.clip_range, ppo.clip_range_vf, ent_coef=0.0)
    rows = np.arange(len(transitions.actions))
    _, by_name = trainer.learner.gradient(transitions, rows, coefficients)
    parts = [array.ravel() for name, array in sorted(by_name.items()) if "critic" not in name]
    return np.concatenate(parts).astype(np.float64)


class _StageCallback:
    """Notes when a training has played the episodes of its stage."""

    def __init__(self, episodes: int, callback: Callback) -> None:
        self._episodes = episodes
        self._callback = callback
        self.is_reached = False

    def on_update(self, row: Row) -> None:
        self._callback.on_update(row)
        self.is_reached = row["episodes"] >= self._episodes

    def on_evaluation(self, scores: Row) -> None:
        self._callback.on_evaluation(scores)


def _train_until(
    run: runs.Run, episodes: int, callback: Callback, should_stop: Callable[[], bool]
) -> bool:
    """Train to `episodes` or to the end of the run; True if reached."""
    if _has_played(run, episodes):
        return True
    stage = _StageCallback(episodes, callback)
    is_finished = runner.train(run, stage, lambda: stage.is_reached or should_stop(), log=())
    return is_finished or stage.is_reached


def _has_played(run: runs.Run, episodes: int) -> bool:
    if not run.checkpoint_updates("last"):
        return False
    state = run.checkpoint("last").state
    is_last = episodes == run.settings["run"]["total_episodes"]
    return bool(state["finished"] or (state["episodes"] >= episodes and not is_last))


def _score_milestone(
    run: runs.Run, config: TrainConfig, protocol: StudyProtocol, percent: int
) -> MilestoneScores:
    checkpoint = run.checkpoint("last")
    state = checkpoint.state
    _, table = _play(checkpoint.arrays, config, protocol, config.env.edition)
    moments: dict[str, float] = {}
    if protocol.gradient_rollouts:
        moments = gradient_moments(config, checkpoint.arrays, protocol.gradient_rollouts)
    return MilestoneScores(
        percent=percent,
        episodes=state["episodes"],
        steps=state["steps"],
        seconds=state["progress"]["seconds"],
        total=table.total.mean,
        cells=_cells(table),
        **moments,
    )


def _score_final(
    run: runs.Run, config: TrainConfig, protocol: StudyProtocol, edition: str
) -> FinalScores:
    checkpoint = run.checkpoint(protocol.policy)
    counts: dict[str, BehaviorCounts] = {}
    games, table = _play(checkpoint.arrays, config, protocol, edition, counts)
    by_game = sum(of_red.totals.sum(axis=2).mean(axis=1) for of_red in games.values())
    return FinalScores(
        update=checkpoint.state["update"],
        total=table.total.mean,
        cells=_cells(table),
        cvar={
            red: cvar(of_red.totals[:, :, -1].ravel(), CVAR_SHARE) for red, of_red in games.items()
        },
        game_totals=np.round(by_game, 1).tolist(),
        loss={red: of_red.mean_loss() for red, of_red in games.items()},
        behavior=counts,
    )


def _play(
    weights: Arrays,
    config: TrainConfig,
    protocol: StudyProtocol,
    edition: str,
    behavior: dict[str, BehaviorCounts] | None = None,
) -> tuple[dict[str, GameStatistics], ScoreTable]:
    """Play the official games; fills in `behavior` by red, if given."""
    green, seed = config.env.green, protocol.evaluation_seed
    trial = Trial(episodes=protocol.episodes, edition=edition, green=green, seed=seed)
    games: dict[str, GameStatistics] = {}
    for red in OFFICIAL_REDS:
        defender: Any = training_policy(weights, config)
        if behavior is not None:
            defender = BehaviorRecorder(defender)
        games[red] = play_and_count(defender, trial, red)
        if behavior is not None:
            behavior[red] = defender.counts()
    totals = {red: of_red.totals for red, of_red in games.items()}
    return games, ScoreTable(trial, totals)


def _cells(table: ScoreTable) -> dict[str, list[float]]:
    return {
        red: [score.mean for score in by_length.values()] for red, by_length in table.scores.items()
    }
