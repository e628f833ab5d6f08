"""How much common random numbers narrow the intervals of comparisons, in the runs of a study.

Run it as python -m benchmarks.suites.common_random_numbers runs/masks OUT.json, after a study of 10
seeds: --vary features.action_masking=true,false --total-episodes 5000 --out runs/masks.
"""

import json
import sys
from pathlib import Path

import numpy as np

from cagepool import runs
from cagepool.bench import system_load
from cagepool.evaluate.rollout import Trial, episode_totals
from cagepool.runs.study_schema import StudyFile
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.study import Difference, difference, paired_difference
from cagepool.study.config import StudyTraining, list_trainings
from cagepool.study.study import read_study_file
from cagepool.train.config import TrainConfig
from cagepool.train.evaluation import training_policy
from cagepool.types import Float64s

GAMES = (30, 100, 1000)
COMMON_SEED = 153
OWN_SEEDS = 1000  # the first of the evaluation seeds that no two runs share


def game_totals(task: StudyTraining, episodes: int, seed: int) -> Float64s:
    """Sums of the nine cells of the best policy of a run, by game."""
    run = runs.open_run(task.path)
    policy = training_policy(run.checkpoint("best").arrays, TrainConfig.from_dict(run.settings))
    trial = Trial(episodes=episodes, seed=seed)
    by_red = [episode_totals(policy, trial, red) for red in OFFICIAL_REDS]
    totals: Float64s = np.sum(by_red, axis=0).sum(axis=1)
    return totals


def half_width(found: Difference) -> float:
    """Half the width of an interval."""
    return (found.interval.high - found.interval.low) / 2


def compare(
    first: list[StudyTraining], second: list[StudyTraining], episodes: int
) -> dict[str, float]:
    """Half widths of the intervals of a difference, with common and with separate games."""
    common = [
        np.stack([game_totals(task, episodes, COMMON_SEED) for task in tasks])
        for tasks in (first, second)
    ]
    own = [
        np.stack(
            [
                game_totals(task, episodes, OWN_SEEDS + side * len(tasks) + number)
                for number, task in enumerate(tasks)
            ]
        )
        for side, tasks in enumerate((first, second))
    ]
    pairs = [*zip(*common, strict=True)]
    of_games = [half_width(paired_difference(*pair)) for pair in pairs]
    of_separate_games = [half_width(difference(*pair)) for pair in zip(*own, strict=True)]
    return {
        "games_per_red": episodes,
        "between_settings_common": half_width(paired_difference(*(x.mean(axis=1) for x in common))),
        "between_settings_separate": half_width(paired_difference(*(x.mean(axis=1) for x in own))),
        "between_policies_common": float(np.mean(of_games)),
        "between_policies_separate": float(np.mean(of_separate_games)),
        "correlation_of_games": float(np.mean([np.corrcoef(*pair)[0, 1] for pair in pairs])),
    }


def main(folder: Path, out: Path) -> None:
    """Compare each setting of the study with the first one."""
    study: StudyFile = read_study_file(folder)
    tasks = list_trainings(folder, study)
    base, *others = study.settings
    of = {name: [task for task in tasks if task.setting == name] for name in study.settings}
    rows = []
    for other in others:
        for episodes in GAMES:
            row = compare(of[base], of[other], episodes)
            rows.append({"first": base, "second": other, **row})
            print(json.dumps(rows[-1]), flush=True)
    content = {"machine": system_load.describe_machine(), "seeds": len(of[base]), "rows": rows}
    out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
