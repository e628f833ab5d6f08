"""Run folders as a training and an evaluation leave them behind, made without either."""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from cagepool import Scenario, runs
from cagepool.evaluate.game_log import record_games, record_turns, recorded_scenario
from cagepool.evaluate.protocol import evaluate
from cagepool.evaluate.rollout import Trial
from cagepool.policy.load import load
from cagepool.runs.schema import (
    EVALUATIONS_COLUMNS,
    PROGRESS_COLUMNS,
    GamesFile,
    RecordedGame,
)
from cagepool.sim import Batch, BatchConfig
from cagepool.train.config import TrainConfig

UPDATES = 240
METRICS = (
    *("update", "episodes", "steps", "seconds", "return_mean", "return_std", "length_mean"),
    *("policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "explained_variance"),
    *("gradient_norm", "learning_rate", "staleness"),
    *("collect_seconds", "wait_seconds", "update_seconds", "other_seconds"),
    *("compliance", "coverage", "wasted_fixes_per_episode"),
)
CONFIG = TrainConfig.from_flat(total_episodes=100 * UPDATES, learning_rate=0.0003, seed=7)


def trained(path: Path, *, compliance: bool = False, **settings: Any) -> Path:
    """A run that has ended but not been evaluated."""
    changed = CONFIG.as_dict()
    for name, value in settings.items():
        group, setting = TrainConfig.flat_names()[name]
        changed[group][setting] = value
    run = runs.create(path, changed, "0.1.0")
    noise = np.random.default_rng(int(run.settings["run"]["seed"]))
    pace = 20 + noise.random() * 30
    metrics = runs.TableWriter(path / runs.METRICS, METRICS)
    evaluations = runs.TableWriter(path / runs.EVALUATIONS, EVALUATIONS_COLUMNS)
    for update in range(1, UPDATES + 1):
        row = _update(update, noise, pace)
        metrics.append(row if compliance else {**row, **dict.fromkeys(METRICS[-3:])})
        if update % 20 == 0:
            evaluations.append(_evaluation_row(row, noise))
    metrics.close()
    evaluations.close()
    return path


def evaluated(path: Path, *, blue: str = "restore-rotation", **settings: Any) -> Path:
    """The same with the evaluation and the games of a scripted defender."""
    trained(path, **settings)
    evaluation, games = _evaluation(blue, str(settings.get("edition", "2.1")))
    (path / "evaluation.json").write_text(evaluation)
    (path / "games.json").write_text(games)
    return path


def with_scenarios(path: Path, *scenarios: Scenario, steps: int = 30) -> Path:
    """An evaluated run whose games are of these scenarios, against B_lineAgent."""
    evaluated(path)
    games = [_recorded(scenario, steps) for scenario in scenarios]
    (path / "games.json").write_text(runs.to_json(GamesFile(games=games)))
    return path


def _recorded(scenario: Scenario, steps: int) -> RecordedGame:
    batch = Batch(1, BatchConfig(scenario=scenario, red="B_lineAgent", green=True))
    batch.reset(np.zeros(1, np.uint64))
    actions = np.random.default_rng(0).integers(0, len(scenario.actions), steps)
    turns = record_turns(batch, actions)
    title, total = f"game on {scenario.name}", sum(turn.reward for turn in turns)
    drawn = recorded_scenario(scenario)
    return RecordedGame(title=title, total=total, scenario=drawn, turns=turns)


@functools.cache
def _evaluation(blue: str, edition: str) -> tuple[str, str]:
    trial = Trial(episodes=20, edition=edition)
    result = evaluate(load(blue), trial)
    return runs.to_json(result.to_file()), runs.to_json(record_games(trial, result.statistics))


def _update(update: int, noise: np.random.Generator, pace: float) -> dict[str, float]:
    left = np.exp(-update / pace)
    return {
        "update": update,
        "episodes": 100 * update,
        "steps": 10_000 * update,
        "seconds": 0.1 * update,
        "return_mean": -8 - pace / 3 - 700 * left + noise.normal() * (1 + 30 * left),
        "return_std": 8 + 200 * left,
        "length_mean": 100,
        "policy_loss": -0.01 + 0.002 * noise.normal(),
        "value_loss": 0.1 + 5 * left,
        "entropy": 0.5 + 4.4 * left,
        "kl": abs(0.01 + 0.002 * noise.normal()),
        "clip_fraction": 0.1 + 0.02 * noise.normal(),
        "explained_variance": 0.95 - left,
        "gradient_norm": 0.4,
        "learning_rate": 0.0003 * (1 - update / UPDATES),
        "staleness": 0,
        "collect_seconds": 0.05,
        "wait_seconds": 0.03,
        "update_seconds": 0.06,
        "other_seconds": 0.01,
        "compliance": 0.95 - 0.6 * left,
        "coverage": 0.5 + 0.2 * left,
        "wasted_fixes_per_episode": 3 + 20 * left,
    }


def _evaluation_row(row: dict[str, float], noise: np.random.Generator) -> dict[str, float]:
    place = {name: row[name] for name in PROGRESS_COLUMNS}
    greedy = row["return_mean"] + 3 + 0.3 * noise.normal()
    returns = {"return_mean": greedy, "return_error": 0.4}
    return {**place, "score": 0.6 * greedy, "standard_error": 0.3, "best": 1, **returns}
