"""List runs, searches and studies below a folder: state, scores, and the settings that differ."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from msgspec import Struct, ValidationError, convert

from cagepool.errors import RunFileError
from cagepool.runs.file_access import Columns, damage_error, read_rows
from cagepool.runs.folder import Run, open_run, read_if_exists
from cagepool.runs.schema import (
    CHECKPOINTS,
    CONFIG,
    DECISIONS,
    METRICS,
    ORDERS,
    WORKFLOW,
    DecisionRow,
    Score,
    Settings,
    flat_settings,
)
from cagepool.runs.study_schema import SCORES, STUDY, ScoresFile, StudyFile

RUN_ENTRIES = {CONFIG, METRICS, CHECKPOINTS}  # a folder with any of them is a run folder


@dataclass(frozen=True)
class RunSummary:
    """State and scores of a run."""

    path: Path
    settings: Settings
    env: str
    red_agent: str  # red, edition and steps mean nothing in environments other than CAGE-2
    edition: str
    max_steps: int
    total_episodes: int  # to be played
    episodes: int  # played so far
    best_evaluation: Score | None  # of those during training
    total: Score | None  # of all cells; none: not evaluated yet
    scenario: str  # that the total is of
    replaced: int = 0  # Ray actors that died during training and were replaced
    has_ended: bool = False  # training to an order has ended, perhaps before `total_episodes`

    @property
    def is_finished(self) -> bool:
        """Whether training is complete."""
        return self.has_ended or self.episodes >= self.total_episodes

    @property
    def game(self) -> tuple[str, str, str, int]:
        """Environment, red, edition and steps: evaluations are compared within one game."""
        return self.env, self.red_agent, self.edition, self.max_steps


@dataclass(frozen=True)
class SearchSummary:
    """State and result of a search."""

    path: Path
    method: str
    red_agent: str
    edition: str
    trainings: int  # that have ended
    episodes: int  # of these
    total_episodes: int
    best_order: str | None  # that passes; none: not known
    best_reward: float | None
    is_finished: bool


@dataclass(frozen=True)
class StudySummary:
    """State of a study."""

    path: Path
    settings: int
    runs: int  # of all settings and seeds
    complete: int  # of these

    @property
    def is_finished(self) -> bool:
        """Whether all runs are complete."""
        return self.complete == self.runs


@dataclass(frozen=True)
class DamagedRun:
    """A folder of a run or of a search that cannot be read."""

    path: Path
    fault: str


def find_runs(folder: Path) -> Iterator[Path]:
    """Folders of runs, searches and studies at or below a folder, in the order of their names.

    Trainings of a search or study are found only if `folder` is the folder of that search or study.

    Raises:
        ValueError: there is no such folder.
    """
    if not folder.is_dir():
        raise ValueError(f"runs must be listed from a folder, {folder} is not one")
    for path, subfolders, names in os.walk(folder):
        if RUN_ENTRIES & {*subfolders, *names} or STUDY in names:
            yield Path(path)
        if Path(path) != folder and (STUDY in names or is_search(Path(path))):
            subfolders.clear()
        subfolders[:] = sorted(
            name for name in subfolders if name != CHECKPOINTS and not name.startswith(".")
        )


def is_search(path: Path) -> bool:
    """Whether a folder is that of a search, perhaps one that was killed at its start."""
    if os.path.lexists(path / DECISIONS):
        return True
    try:
        return "search" in open_run(path).settings
    except ValueError:
        return False


def summarize(path: Path) -> RunSummary | SearchSummary | StudySummary | DamagedRun:
    """Summarize the folder of a run, search or study; never raises, whatever its files hold."""
    try:
        if os.path.lexists(path / STUDY):
            return _study_summary(path)
        return _search_summary(open_run(path)) if is_search(path) else _summary(open_run(path))
    except (ValueError, OSError) as error:
        return DamagedRun(path, str(error))


def allowance(settings: Settings, reserved: int) -> int:
    """Episodes of the next training of a search, or 0 if the budget is too small for one.

    Earlier trainings have played, or may play, the `reserved` episodes.
    """
    per_order = settings["search"]["max_episodes_per_order"]
    left = min(per_order, settings["run"]["total_episodes"] - reserved)
    return int(left) if left >= min(settings["env"]["n_envs"], per_order) else 0


def replaced_actors(run: Run) -> int:
    """Number of Ray actors that died during training and were replaced."""
    return int(sum(run.metrics().get("replaced", [])))


def differing_settings(summaries: Sequence[RunSummary]) -> dict[str, dict[str, list[str]]]:
    """Settings that differ: for each value as text, the names of the runs that have it."""
    by_run = {summary.path: flat_settings(summary.settings) for summary in summaries}
    names = dict.fromkeys(name for settings in by_run.values() for name in settings)
    values: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    for path, settings in by_run.items():
        for name in names:
            value = str(settings.get(name, "(not known)"))
            values[name].setdefault(value, []).append(path.name)
    return {name: by_value for name, by_value in values.items() if len(by_value) > 1}


def best_totals(summaries: Sequence[RunSummary]) -> dict[str, RunSummary]:
    """The run with the best total, by edition and scenario."""
    scored = [(summary.total.mean, summary) for summary in summaries if summary.total]
    return {
        summary.edition + (f", {summary.scenario}" if summary.scenario else ""): summary
        for _, summary in sorted(scored, key=lambda pair: pair[0])
    }


def best_evaluations(
    summaries: Sequence[RunSummary],
) -> dict[tuple[str, str, str, int], RunSummary]:
    """The run with the best evaluation during training, by game."""
    scored = [
        (summary.best_evaluation.mean, summary) for summary in summaries if summary.best_evaluation
    ]
    return {summary.game: summary for _, summary in sorted(scored, key=lambda pair: pair[0])}


class _EnvSettings(Struct):
    id: str
    n_envs: int
    red_agent: str
    edition: str
    max_steps: int


class _RunSettings(Struct):
    total_episodes: int
    n_eval_episodes: int


class _StrategySettings(Struct):
    method: str
    max_episodes_per_order: int


class _ListedSettings(Struct):
    """The settings that a list shows."""

    env: _EnvSettings
    run: _RunSettings
    search: _StrategySettings | None = None


def _listed_settings(run: Run) -> _ListedSettings:
    try:
        return convert(run.settings, _ListedSettings)
    except ValidationError as error:
        raise damage_error(run.path / CONFIG, error) from None


def _summary(run: Run) -> RunSummary:
    settings = _listed_settings(run)
    episodes = run.metrics().get("episodes", [])
    evaluation = run.evaluation()
    return RunSummary(
        path=run.path,
        settings=run.settings,
        env=settings.env.id,
        red_agent=settings.env.red_agent,
        edition=settings.env.edition,
        max_steps=settings.env.max_steps,
        total_episodes=settings.run.total_episodes,
        episodes=int(episodes[-1]) if episodes else 0,
        best_evaluation=_best_evaluation(run.evaluations(), settings.run.n_eval_episodes),
        total=evaluation.total if evaluation else None,
        scenario="" if evaluation is None or evaluation.official else evaluation.scenario,
        replaced=replaced_actors(run),
        has_ended=os.path.lexists(run.path / WORKFLOW),
    )


def _search_summary(run: Run) -> SearchSummary:
    settings = _listed_settings(run)
    if settings.search is None:
        raise RunFileError(f"{run.path / CONFIG} is damaged: it has no settings of a search")
    rows = read_rows(run.path / DECISIONS, DecisionRow) if _exists(run, DECISIONS) else []
    ended = [row for row in rows if row.outcome]
    if settings.search.method == "universal":
        is_finished = _exists(run, ORDERS)
    else:
        reserved = sum(row.allowance if row.episodes is None else row.episodes for row in rows)
        is_finished = len(ended) == len(rows) and not allowance(run.settings, reserved)
    passing = [(row.reward, row.order) for row in ended if row.passes and row.reward is not None]
    best_reward, best_order = max(passing, default=(None, None))
    return SearchSummary(
        path=run.path,
        method=settings.search.method,
        red_agent=settings.env.red_agent,
        edition=settings.env.edition,
        trainings=len(ended),
        episodes=sum(row.episodes or 0 for row in ended),
        total_episodes=settings.run.total_episodes,
        best_order=best_order,
        best_reward=best_reward,
        is_finished=is_finished,
    )


def _study_summary(path: Path) -> StudySummary:
    study = read_if_exists(path / STUDY, StudyFile)
    assert study, "the file exists"
    scores = (read_if_exists(one, ScoresFile) for one in sorted(path.glob(f"*/seed-*/{SCORES}")))
    settings = len(study.settings)
    return StudySummary(
        path=path,
        settings=settings,
        runs=settings * len(study.protocol.seeds),
        complete=sum(bool(one and one.final) for one in scores),
    )


def _exists(run: Run, name: str) -> bool:
    return os.path.lexists(run.path / name)


def _best_evaluation(evaluations: Columns, episodes: int) -> Score | None:
    pairs = zip(evaluations.get("score", []), evaluations.get("standard_error", []), strict=True)
    scores = [pair for pair in pairs if not any(map(isnan, pair))]
    return Score(*max(scores), episodes) if scores else None
