"""What there is to tell of run folders at a glance, and how they compare."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from cagepool import runs
from cagepool.evaluate import files
from cagepool.evaluate.policy import CAGE_ENVS
from cagepool.evaluate.rollout import Score

SIGNS = {runs.CONFIG, runs.METRICS, runs.CHECKPOINTS}  # any of them makes a folder one of a run
SEARCH = "decisions.csv"  # makes a folder that of a search, with runs below it


@dataclass(frozen=True)
class Overview:
    """One run in short."""

    path: Path
    settings: dict[str, Any]
    game: tuple[str, str, int]  # red agents or environment, edition, steps
    wanted: int  # episodes that were to be played
    episodes: int  # episodes played so far
    check: Score | None  # the best during training
    total: Score | None  # of the nine cells, if it has been evaluated
    replaced: int = 0  # actors of Ray that died while it was trained
    has_outcome: bool = False  # training to its order has ended, perhaps before all episodes

    @property
    def is_finished(self) -> bool:
        """Whether it has come to its end."""
        return self.has_outcome or self.episodes >= self.wanted


@dataclass(frozen=True)
class Damaged:
    """A run that cannot be read."""

    path: Path
    fault: str


def find(folder: Path) -> Iterator[Path]:
    """Run folders, intact or not, at or below a folder, in the order of their names.

    Raises:
        ValueError: there is no such folder.
    """
    if not folder.is_dir():
        raise ValueError(f"runs are looked for in a folder, {folder} is none")
    for path, below, names in os.walk(folder):
        if SIGNS & {*below, *names} and SEARCH not in names:
            yield Path(path)
        below[:] = sorted(name for name in below if name != runs.CHECKPOINTS and name[0] != ".")


def overview(path: Path) -> Overview | Damaged:
    """A run in short, or what is wrong with it."""
    try:
        return _overview(runs.open_run(path))
    except ValueError as error:
        return Damaged(path, str(error))
    except (KeyError, TypeError) as error:
        return Damaged(path, f"{path} is damaged: it has no proper {error}")


def _overview(run: runs.Run) -> Overview:
    settings = run.settings
    env = settings["env"]
    is_cage = env["id"] in CAGE_ENVS
    played = run.metrics().get("episodes", [])
    evaluation = files.read(run.path)
    total = evaluation["total"] if evaluation else None
    return Overview(
        path=run.path,
        settings=settings,
        game=(
            env["red_agent" if is_cage else "id"],
            env["edition"],
            env["max_steps"],
        ),
        wanted=int(settings["run"]["total_episodes"]),
        episodes=int(played[-1]) if played else 0,
        check=_best_check(run.checks(), settings["run"]["n_eval_episodes"]),
        total=Score(**total) if total else None,
        replaced=replaced(run),
        has_outcome=(run.path / files.OUTCOME).is_file(),
    )


def replaced(run: runs.Run) -> int:
    """Actors of Ray that died while a run was trained, and were replaced."""
    counts = run.metrics().get("replaced", [])  # nan in what an older version wrote
    return int(sum(count for count in counts if not isnan(count)))


def _best_check(checks: runs.Columns, episodes: int) -> Score | None:
    pairs = zip(checks.get("score", []), checks.get("standard_error", []), strict=True)
    scores = [pair for pair in pairs if not isnan(pair[0])]
    return Score(*max(scores), episodes) if scores else None


def differing(found: Sequence[Overview]) -> dict[str, dict[str, list[str]]]:
    """Settings that differ: their values as text, and the names of the runs that have each."""
    by_run = {one.path: runs.flat_settings(one.settings) for one in found}
    names = dict.fromkeys(name for settings in by_run.values() for name in settings)
    values: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    for path, settings in by_run.items():
        for name in names:
            value = str(settings.get(name, "(not known)"))
            values[name].setdefault(value, []).append(path.name)
    return {name: by_value for name, by_value in values.items() if len(by_value) > 1}


def best(found: Sequence[Overview]) -> dict[str, Overview]:
    """The run with the best official total, by edition."""
    evaluated = [one for one in found if one.total]
    return {
        one.settings["env"]["edition"]: one
        for one in sorted(evaluated, key=lambda o: _mean(o.total))
    }


def best_check(found: Sequence[Overview]) -> dict[tuple[str, str, int], Overview]:
    """The run with the best check, by game: checks of different games must not be compared."""
    checked = [one for one in found if one.check]
    return {one.game: one for one in sorted(checked, key=lambda o: _mean(o.check))}


def _mean(score: Score | None) -> float:
    assert score is not None
    return score.mean
