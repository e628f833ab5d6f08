"""Results of a study: statistics over seeds, curves, comparisons, and the methods paragraph."""

import math
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cagepool import _core, runs
from cagepool._machine import processor_model, usable_cores
from cagepool.runs import Columns
from cagepool.runs.study_schema import (
    BEHAVIOR,
    RESULTS,
    BehaviorCounts,
    ConvergenceResult,
    Curve,
    EditionResults,
    Estimate,
    FinalScores,
    MilestoneScores,
    ResultsFile,
    ScoresFile,
    SettingResults,
    StudyFile,
)
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.study import statistics
from cagepool.study.compare import Totals, compare, methods_paragraph
from cagepool.study.config import StudyTraining, list_trainings
from cagepool.types import Float64s

CURVE_POINTS = 40
PROFILE_POINTS = 100
MIN_UPDATES = 8  # of a training whose last quarter may be flat
FLAT_SHARE = 0.05  # of the return in the last quarter of training, which counts as no change


def write_results(path: Path, study: StudyFile, failures: Mapping[str, str]) -> ResultsFile:
    """Compute the results of the runs that are complete, and write `results.json`."""
    complete = []
    failures = dict(failures)
    for training in list_trainings(path, study):
        try:
            if (scores := training.scores()).final:
                complete.append(ScoredRun(training, scores, _read_metrics(training.path)))
        except runs.RunFileError as error:
            failures.setdefault(training.name, str(error))
    results = _results(study, complete, failures)
    runs.write_model(path / RESULTS, results, indent=None)
    return results


class ScoredRun(NamedTuple):
    """A run that is complete."""

    training: StudyTraining
    scores: ScoresFile
    metrics: Columns


Scored = Sequence[ScoredRun]


def _read_metrics(path: Path) -> Columns:
    metrics = runs.open_run(path).metrics()
    for column in ("episodes", "steps", "seconds", "return_mean"):
        if not len(metrics.get(column, ())):
            raise runs.RunFileError(f"{path / runs.METRICS} is damaged: {column} has no values")
    return metrics


def _results(study: StudyFile, complete: Scored, failures: dict[str, str]) -> ResultsFile:
    by_setting = {
        name: [run for run in complete if run.training.setting == name] for name in study.settings
    }
    known = {name: scored for name, scored in by_setting.items() if len(scored) > 1}
    returns = {name: _return_curve(name, scored) for name, scored in known.items()}
    machine = _machine()
    return ResultsFile(
        study=study,
        machine=machine,
        seconds=float(sum(run.metrics["seconds"][-1] for run in complete)),
        episodes=sum(run.training.episodes for run in complete),
        complete=len(complete),
        failures=failures,
        editions=_edition_results(study, known),
        returns=[curve for curve, _ in returns.values()],
        milestones=_milestone_curves(known, lambda one: one.total),
        gradient_variance=_milestone_curves(known, lambda one: one.gradient_variance),
        gradient_signal=_milestone_curves(known, lambda one: one.gradient_signal),
        convergence=[
            _convergence(name, known[name], curves) for name, (_, curves) in returns.items()
        ],
        methods=methods_paragraph(study, machine, len(complete)),
    )


def _edition_results(study: StudyFile, known: Mapping[str, Scored]) -> list[EditionResults]:
    played = (edition for of in known.values() for run in of for edition in run.scores.final)
    finals = {edition: _finals(edition, known) for edition in dict.fromkeys(played)}
    totals = {
        edition: {
            name: {seed: final.total for seed, final in by_seed.items()}
            for name, by_seed in of_edition.items()
        }
        for edition, of_edition in finals.items()
    }
    protocol = study.protocol
    pairs = {edition: _pairs([*named], protocol.baseline) for edition, named in totals.items()}
    comparisons = compare(totals, pairs)
    thresholds = {edition: _thresholds(named) for edition, named in totals.items()}
    return [
        EditionResults(
            edition=edition,
            settings=[
                _setting_results(name, by_seed, protocol.target, thresholds[edition])
                for name, by_seed in of_edition.items()
            ],
            comparisons=comparisons[edition],
            thresholds=thresholds[edition].tolist(),
        )
        for edition, of_edition in finals.items()
    ]


def _finals(edition: str, known: Mapping[str, Scored]) -> dict[str, dict[int, FinalScores]]:
    """Final scores in an edition by setting and seed, of settings with two runs or more."""
    finals = {
        name: {
            run.training.seed: run.scores.final[edition]
            for run in scored
            if edition in run.scores.final
        }
        for name, scored in known.items()
    }
    return {name: by_seed for name, by_seed in finals.items() if len(by_seed) > 1}


def _thresholds(totals: Totals) -> Float64s:
    """Thresholds of the profiles, from below the worst total; dense where runs are."""
    every = [total for by_seed in totals.values() for total in by_seed.values()]
    quantiles = np.quantile(every, np.linspace(0, 1, PROFILE_POINTS))
    distinct: Float64s = np.unique([quantiles[0] - 0.01 * np.ptp(quantiles), *quantiles])
    return distinct


def _pairs(names: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return [*combinations(names, 2)]
    return [(name, baseline) for name in names if name != baseline and baseline in names]


def _setting_results(
    name: str, by_seed: Mapping[int, FinalScores], target: float, thresholds: Float64s
) -> SettingResults:
    finals = [*by_seed.values()]
    totals = np.array([final.total for final in finals])
    cells = {red: [final.cells[red] for final in finals] for red in OFFICIAL_REDS}
    tails = np.array([sum(final.cvar.values()) for final in finals])
    return SettingResults(
        name=name,
        seeds=[*by_seed],
        totals=totals.tolist(),
        cells=cells,
        by_red={red: _estimate(np.sum(of_red, axis=1)) for red, of_red in cells.items()},
        statistics={
            "iqm": _estimate(totals, statistics.iqm),
            "mean": _estimate(totals),
            "median": _estimate(totals, statistics.median),
            "optimality_gap": _estimate(np.maximum(target - totals, 0.0)),
            "cvar": _estimate(tails),
        },
        standard_deviation=statistics.standard_deviation(totals),
        interquartile_range=statistics.interquartile_range(totals),
        profile=statistics.profile(totals, thresholds).tolist(),
        profile_band=statistics.profile_band(totals, thresholds).tolist(),
        behavior=_behavior(finals),
        loss=_mean_loss(finals),
    )


def _behavior(finals: Sequence[FinalScores]) -> dict[str, Estimate]:
    """Shares and ratios over the games of all reds, with intervals over seeds.

    A ratio that some seeds lack, such as the precision of an action that they never use, is that of
    the others.
    """
    estimates = {}
    for name, (_, part, whole) in BEHAVIOR.items():
        ratios = [_ratio([*final.behavior.values()], part, whole) for final in finals]
        known = [ratio for ratio in ratios if ratio is not None]
        if len(known) > 1:
            found = _estimate(known)
            most = math.inf if name == "time_to_fix" else 1.0
            estimates[name] = Estimate(found.estimate, max(found.low, 0.0), min(found.high, most))
    return estimates


def _ratio(counts: Sequence[BehaviorCounts], part: str, whole: str) -> float | None:
    total = sum(getattr(one, whole) for one in counts)
    return sum(getattr(one, part) for one in counts) / total if total else None


def _mean_loss(finals: Sequence[FinalScores]) -> dict[str, dict[str, float]]:
    return {
        red: {
            cause: float(np.mean([final.loss[red][cause] for final in finals])) for cause in causes
        }
        for red, causes in finals[0].loss.items()
    }


def _return_curve(name: str, scored: Scored) -> tuple[Curve, Float64s]:
    """Return of training episodes along the trainings, and the curve of each run."""
    columns = [run.metrics for run in scored]
    episodes = columns[0]["episodes"][-1]
    places = np.linspace(episodes / CURVE_POINTS, episodes, CURVE_POINTS)
    curves = np.stack([_binned_returns(one, places) for one in columns])
    along = [
        np.mean([np.interp(places, one["episodes"], one[axis]) for one in columns], axis=0)
        for axis in ("steps", "seconds")
    ]
    return _curve(name, (places, *along), curves), curves


def _binned_returns(columns: Columns, places: Float64s) -> Float64s:
    """Mean return of the updates up to each place; interpolated where no episode ended."""
    episodes, returns = np.array(columns["episodes"]), np.array(columns["return_mean"])
    is_known = np.isfinite(returns)
    episodes, returns = episodes[is_known], returns[is_known]
    bins = np.minimum(np.searchsorted(places, episodes), len(places) - 1)
    counts = np.bincount(bins, minlength=len(places))
    sums = np.bincount(bins, returns, minlength=len(places))
    filled = counts > 0
    means: Float64s = np.interp(places, places[filled], sums[filled] / counts[filled])
    return means


def _milestone_curves(
    known: Mapping[str, Scored], value_of: Callable[[MilestoneScores], float | None]
) -> list[Curve]:
    curves = []
    for name, scored in known.items():
        rows = [run.scores.milestones for run in scored]
        values = np.array([[value_of(milestone) for milestone in row] for row in rows], np.float64)
        if not values.size or not np.isfinite(values).all():
            continue
        episodes, steps, seconds = (
            np.mean([[getattr(one, axis) for one in row] for row in rows], axis=0)
            for axis in ("episodes", "steps", "seconds")
        )
        curves.append(_curve(name, (episodes, steps, seconds), values))
    return curves


def _curve(name: str, places: Sequence[Float64s], values: Float64s) -> Curve:
    """Mean and interval of values, (runs, points), at these episodes, steps and seconds."""
    episodes, steps, seconds = places
    bands = [_estimate(column) for column in values.T]
    return Curve(
        setting=name,
        episodes=episodes.tolist(),
        steps=steps.tolist(),
        seconds=np.round(seconds, 3).tolist(),
        mean=[band.estimate for band in bands],
        low=[band.low for band in bands],
        high=[band.high for band in bands],
    )


def _convergence(name: str, scored: Scored, curves: Float64s) -> ConvergenceResult:
    level = abs(float(curves[:, -CURVE_POINTS // 4 :].mean()))
    found = statistics.convergence(curves, tolerance=FLAT_SHARE * level)
    change = Estimate(*found.change)
    if min(len(run.metrics["update"]) for run in scored) < MIN_UPDATES:
        sentence = f"{name} has too few updates to tell whether it has converged."
        return ConvergenceResult(setting=name, change=change, state="unclear", sentence=sentence)
    words = {
        "flat": "has converged",
        "rising": "is still learning",
        "falling": "is getting worse",
        "unclear": "may still change",
    }[found.state]
    sentence = (
        f"{name} {words}: in the last quarter of training, its return changes by "
        f"{change.estimate:+.2f} [{change.low:.2f}, {change.high:.2f}] points, "
        f"{100 * abs(change.estimate) / level if level else 0:.1f} % of it."
    )
    return ConvergenceResult(setting=name, change=change, state=found.state, sentence=sentence)


def _estimate(
    values: ArrayLike, statistic: Callable[[ArrayLike], float] = statistics.mean
) -> Estimate:
    return Estimate(*statistics.interval(values, statistic))


def _machine() -> dict[str, str]:
    libraries = ("cagepool", "numpy", "scipy", "msgspec", "torch")
    return {
        "processor": processor_model(),
        "cores": str(usable_cores()),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "compiler": f"g++ {_core.COMPILER}",
        **{name: version(name) for name in libraries if find_spec(name)},
    }
