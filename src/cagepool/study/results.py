"""Results of a study: statistics over seeds, curves, comparisons, and the methods paragraph."""

import math
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np

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
from cagepool.study.compare import Totals, compare
from cagepool.study.folder import Task, list_tasks, task_scores
from cagepool.study.methods import methods_paragraph
from cagepool.study.statistics import Interval, interval
from cagepool.types import Float64s

CURVE_POINTS = 40
PROFILE_POINTS = 100
FLAT_SHARE = 0.05  # of the return in the last quarter of training, which counts as no change


def write_results(path: Path, study: StudyFile, failures: Mapping[str, str]) -> ResultsFile:
    """Compute the results of the runs that are complete, and write `results.json`.

    Args:
        path: Folder of the study.
        study: Its settings.
        failures: Messages by name of the runs that failed.
    """
    scored = [(task, task_scores(task)) for task in list_tasks(path, study)]
    complete = [(task, scores) for task, scores in scored if scores.final]
    results = _results(study, complete, failures)
    runs.write_model(path / RESULTS, results)
    return results


Scored = Sequence[tuple[Task, ScoresFile]]


def _results(study: StudyFile, complete: Scored, failures: Mapping[str, str]) -> ResultsFile:
    by_setting = {
        name: [(task, scores) for task, scores in complete if task.setting == name]
        for name in study.settings
    }
    known = {name: scored for name, scored in by_setting.items() if len(scored) > 1}
    editions = _edition_results(study, known)
    metrics = {
        name: [runs.open_run(task.path).metrics() for task, _ in scored]
        for name, scored in known.items()
    }
    returns = [_return_curve(name, columns) for name, columns in metrics.items()]
    seconds = [runs.open_run(task.path).metrics()["seconds"][-1] for task, _ in complete]
    machine = _machine()
    return ResultsFile(
        study=study,
        machine=machine,
        seconds=float(sum(seconds)),
        episodes=sum(task.episodes for task, _ in complete),
        complete=len(complete),
        failures=dict(failures),
        editions=editions,
        returns=[curve for curve, _ in returns],
        milestones=_milestone_curves(known, lambda one: one.total),
        gradient_variance=_milestone_curves(known, lambda one: one.gradient_variance),
        gradient_signal=_milestone_curves(known, lambda one: one.gradient_signal),
        convergence=[_convergence(curve.setting, points) for curve, points in returns],
        methods=methods_paragraph(study, machine, len(complete)),
    )


def _editions(known: Mapping[str, Scored]) -> list[str]:
    return [
        *dict.fromkeys(edition for of in known.values() for _, one in of for edition in one.final)
    ]


def _edition_results(study: StudyFile, known: Mapping[str, Scored]) -> list[EditionResults]:
    finals = {edition: _finals(edition, known) for edition in _editions(known)}
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
            task.seed: scores.final[edition] for task, scores in scored if edition in scores.final
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
        by_red={
            red: _estimate(interval(np.sum(of_red, axis=1), statistics.mean))
            for red, of_red in cells.items()
        },
        statistics={
            "iqm": _estimate(interval(totals, statistics.iqm)),
            "mean": _estimate(interval(totals, statistics.mean)),
            "median": _estimate(interval(totals, statistics.median)),
            "optimality_gap": _estimate(
                interval(np.maximum(target - totals, 0.0), statistics.mean)
            ),
            "cvar": _estimate(interval(tails, statistics.mean)),
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
            found = interval(known, statistics.mean)
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


def _return_curve(name: str, columns: Sequence[Columns]) -> tuple[Curve, Float64s]:
    """Return of training episodes along the trainings, and the curve of each run."""
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
        rows = [scores.milestones for _, scores in scored]
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
    bands = [interval(column, statistics.mean) for column in values.T]
    return Curve(
        setting=name,
        episodes=episodes.tolist(),
        steps=steps.tolist(),
        seconds=np.round(seconds, 3).tolist(),
        mean=[band.estimate for band in bands],
        low=[band.low for band in bands],
        high=[band.high for band in bands],
    )


def _convergence(name: str, curves: Float64s) -> ConvergenceResult:
    level = abs(float(curves[:, -CURVE_POINTS // 4 :].mean()))
    found = statistics.convergence(curves, tolerance=FLAT_SHARE * level)
    change = _estimate(found.change)
    words = {
        "flat": "has converged",
        "rising": "is still learning",
        "falling": "is getting worse",
        "unclear": "may still change",
    }[found.state]
    return ConvergenceResult(
        setting=name,
        change=change,
        state=found.state,
        sentence=(
            f"{name} {words}: in the last quarter of training, its return changes by "
            f"{change.estimate:+.2f} [{change.low:.2f}, {change.high:.2f}] points, "
            f"{100 * abs(change.estimate) / level if level else 0:.1f} % of it."
        ),
    )


def _estimate(found: Interval) -> Estimate:
    return Estimate(*found)


def _machine() -> dict[str, str]:
    libraries = ("cagepool", "numpy", "scipy", "msgspec", "torch")
    return {
        "processor": processor_model(),
        "cores": f"{usable_cores():g}",
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "compiler": f"g++ {_core.COMPILER}",
        **{name: version(name) for name in libraries if find_spec(name)},
    }
