"""List the runs below a folder: their state, their scores, and the settings that differ."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from msgspec import Struct, ValidationError, convert

from cagepool.runs.folder import Columns, Run, damage_error, open_run
from cagepool.runs.schema import (
    CHECKPOINTS,
    CONFIG,
    DECISIONS,
    METRICS,
    WORKFLOW,
    Score,
    Settings,
    flat_settings,
)

RUN_ENTRIES = {CONFIG, METRICS, CHECKPOINTS}  # a folder with any of them is a run folder


@dataclass(frozen=True)
class RunSummary:
    """State and scores of a run."""

    path: Path
    settings: Settings
    env: str
    red_agent: str
    edition: str
    max_steps: int
    total_episodes: int  # to be played
    episodes: int  # played so far
    check: Score | None  # the best one during training
    total: Score | None  # of the nine official cells; none: not evaluated yet
    replaced: int = 0  # Ray actors that died during training and were replaced
    has_ended: bool = False  # training to an order has ended, perhaps before `total_episodes`

    @property
    def is_finished(self) -> bool:
        """Whether training is complete."""
        return self.has_ended or self.episodes >= self.total_episodes

    @property
    def game(self) -> tuple[str, str, str, int]:
        """Environment, red, edition and steps: only checks of the same game may be compared."""
        return self.env, self.red_agent, self.edition, self.max_steps


@dataclass(frozen=True)
class DamagedRun:
    """A run folder that cannot be read."""

    path: Path
    fault: str


def find_runs(folder: Path) -> Iterator[Path]:
    """Run folders, intact or damaged, at or below a folder, in the order of their names.

    Raises:
        ValueError: there is no such folder.
    """
    if not folder.is_dir():
        raise ValueError(f"runs must be listed from a folder, {folder} is not one")
    for path, subfolders, names in os.walk(folder):
        if RUN_ENTRIES & {*subfolders, *names} and DECISIONS not in names:
            yield Path(path)
        subfolders[:] = sorted(
            name for name in subfolders if name != CHECKPOINTS and not name.startswith(".")
        )


def summarize(path: Path) -> RunSummary | DamagedRun:
    """Summarize a run folder."""
    try:
        return _summary(open_run(path))
    except ValueError as error:
        return DamagedRun(path, str(error))


def replaced_actors(run: Run) -> int:
    """Number of Ray actors that died during training and were replaced."""
    counts = run.metrics().get("replaced", [])  # nan in folders of older versions
    return int(sum(count for count in counts if not isnan(count)))


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
    """The run with the best official total, by edition."""
    scored = [(summary.total.mean, summary) for summary in summaries if summary.total]
    return {summary.edition: summary for _, summary in sorted(scored, key=lambda pair: pair[0])}


def best_checks(summaries: Sequence[RunSummary]) -> dict[tuple[str, str, str, int], RunSummary]:
    """The run with the best check during training, by game."""
    scored = [(summary.check.mean, summary) for summary in summaries if summary.check]
    return {summary.game: summary for _, summary in sorted(scored, key=lambda pair: pair[0])}


class _EnvSettings(Struct):
    id: str
    red_agent: str
    edition: str
    max_steps: int


class _RunSettings(Struct):
    total_episodes: int
    n_eval_episodes: int


class _ListedSettings(Struct):
    """The settings that a list shows; they are in folders of every version."""

    env: _EnvSettings
    run: _RunSettings


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
        check=_best_check(run.checks(), settings.run.n_eval_episodes),
        total=evaluation.total if evaluation else None,
        replaced=replaced_actors(run),
        has_ended=(run.path / WORKFLOW).is_file(),
    )


def _best_check(checks: Columns, episodes: int) -> Score | None:
    pairs = zip(checks.get("score", []), checks.get("standard_error", []), strict=True)
    scores = [pair for pair in pairs if not isnan(pair[0])]
    return Score(*max(scores), episodes) if scores else None
