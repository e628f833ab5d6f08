"""Statistics of scores over seeds, on plain arrays; higher scores are better.

Scores have one entry per run, (runs,), or one row per run and one column per task, (runs, tasks).
The definitions are those of Agarwal et al., Deep Reinforcement Learning at the Edge of the
Statistical Precipice, NeurIPS 2021. Its percentile bootstrap is too narrow for few seeds; intervals
here are t intervals with the standard error of the stratified bootstrap (docs/study.md).
"""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from cagepool.types import Float64s, Int64s

Statistic: TypeAlias = Callable[[Float64s], float | Float64s]
"""Reduces the last two axes of scores, (…, runs, tasks)."""

CONFIDENCE = 0.95
RESAMPLES = 2000
POWER = 0.8
TRIMMED_SHARE = 0.25  # at each end, for the interquartile mean
LAST_QUARTER = 0.25  # of a training, in which a converged curve is flat
_TINY = 1e-9  # below the distance of two shares of pairs
_ROUNDING = 1e-12  # relative error of equal differences


class Interval(NamedTuple):
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Whether a value is outside of the interval."""
        return not self.low <= value <= self.high


class Difference(NamedTuple):
    """A difference of two settings, its interval, and the p-value of no difference."""

    interval: Interval
    p_value: float


class Convergence(NamedTuple):
    """Change of curves in the last quarter of training."""

    change: Interval
    state: str  # flat, rising, falling or unclear


def iqm(scores: ArrayLike) -> float:
    """Interquartile mean: mean of all scores without the lowest and the highest quarter."""
    return float(_iqm(_matrix(scores)))


def mean(scores: ArrayLike) -> float:
    """Mean of all scores."""
    return float(_mean(_matrix(scores)))


def median(scores: ArrayLike) -> float:
    """Median over tasks of the mean over runs; with one task, the median over runs."""
    return float(_median(_matrix(scores)))


def optimality_gap(scores: ArrayLike, target: float = 1.0) -> float:
    """Mean amount by which scores fall short of the target; scores above it count as the target."""
    return float(_mean(np.maximum(target - _matrix(scores), 0.0)))


def standard_deviation(scores: ArrayLike) -> float:
    """Standard deviation over runs of their mean over tasks."""
    return float(_runs(scores).std(ddof=1))


def interquartile_range(scores: ArrayLike) -> float:
    """Interquartile range over runs of their mean over tasks."""
    return float(stats.iqr(_runs(scores)))


def cvar(scores: ArrayLike, share: float = 0.05) -> float:
    """Conditional value at risk: mean of the worst `share` of the scores.

    A score that lies partly in the share counts by that part.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, got {share}")
    ascending = np.sort(_matrix(scores).ravel())
    counted = share * len(ascending)
    weights = np.clip(counted - np.arange(len(ascending)), 0.0, 1.0)
    return float(ascending @ weights / counted)


def profile(scores: ArrayLike, thresholds: ArrayLike) -> Float64s:
    """Performance profile: share of scores above each threshold, (thresholds,)."""
    values = _matrix(scores).ravel()
    shares: Float64s = (values > np.asarray(thresholds, np.float64)[:, None]).mean(axis=1)
    return shares


def profile_band(scores: ArrayLike, thresholds: ArrayLike, *, seed: int = 0) -> Float64s:
    """Pointwise 95 % band of a performance profile by the percentile bootstrap, (2, thresholds)."""
    matrix = _matrix(scores)
    limits = np.asarray(thresholds, np.float64)
    above = np.stack([(matrix > limit).mean(axis=1) for limit in limits], axis=1)
    drawn = np.random.default_rng(seed).integers(len(matrix), size=(RESAMPLES, len(matrix)))
    edges = (0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2)
    band: Float64s = np.quantile(above[drawn].mean(axis=1), edges, axis=0)
    return band


def interval(
    scores: ArrayLike,
    statistic: Callable[[ArrayLike], float] = iqm,
    *,
    confidence: float = CONFIDENCE,
    independent_tasks: bool = True,
    seed: int = 0,
) -> Interval:
    """Confidence interval of a statistic over runs.

    The runs of each task are resampled: stratified bootstrap. Of a mean, the standard error of the
    bootstrap is known in closed form, with the correction for few runs that makes it unbiased.

    Args:
        scores: (runs,) or (runs, tasks).
        statistic: `iqm`, `mean`, `median`, or a function of an array of the same shape.
        confidence: Share of studies whose interval holds the truth.
        independent_tasks: Whether the runs of different tasks are different trainings, which are
            resampled separately. If not, a row is one training that played all tasks.
        seed: Of the resampling.
    """
    matrix = _matrix(scores, least_runs=2)
    if not independent_tasks and statistic is mean:
        matrix = matrix.mean(axis=1, keepdims=True)
    estimate = float(statistic(matrix))
    if statistic is mean:
        error, freedom = _error_of_mean(matrix)
    else:
        error = _bootstrap_error(matrix, statistic, seed, independent_tasks=independent_tasks)
        freedom = (matrix.shape[1] if independent_tasks else 1) * (len(matrix) - 1)
    return _t_interval(estimate, error, freedom, confidence)


def difference(a: ArrayLike, b: ArrayLike) -> Difference:
    """Difference of the means of two independent groups of runs, a - b: Welch's interval."""
    groups = _matrix(a, least_runs=2), _matrix(b, least_runs=2)
    if groups[0].shape[1] != groups[1].shape[1]:
        raise ValueError(f"a and b must have the same tasks, got {np.shape(a)} and {np.shape(b)}")
    (error_a, freedom_a), (error_b, freedom_b) = map(_error_of_mean, groups)
    error = float(np.hypot(error_a, error_b))
    freedom = _satterthwaite([error_a, error_b], [freedom_a, freedom_b])
    return _difference(mean(a) - mean(b), error, freedom)


def paired_difference(a: ArrayLike, b: ArrayLike) -> Difference:
    """Mean of the differences a - b of pairs that share random numbers, by Student's t.

    Entry i of both is of the same seed, or of the same game. With tasks, a row is one pair.
    """
    if np.shape(a) != np.shape(b):
        raise ValueError(f"a and b must have the same shape, got {np.shape(a)} and {np.shape(b)}")
    pairs = (_matrix(a, least_runs=2) - _matrix(b, least_runs=2)).mean(axis=1, keepdims=True)
    error, freedom = _error_of_mean(pairs)
    return _difference(float(pairs.mean()), error, freedom)


def probability_of_improvement(a: ArrayLike, b: ArrayLike) -> Interval:
    """Probability that a run of a scores higher than a run of b; equal scores count as half.

    With tasks, the mean over tasks. The interval of one task is Newcombe's (Statistics in Medicine
    25, 2006, method 5), which does not collapse where all runs of a are above all runs of b; that
    of several independent tasks is narrower by the root of their number.
    """
    first, second = _matrix(a), _matrix(b)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"a and b must have the same tasks, got {np.shape(a)} and {np.shape(b)}")
    sizes = len(first), len(second)
    shares = [
        float(stats.mannwhitneyu(x, y).statistic) / (sizes[0] * sizes[1])
        for x, y in zip(first.T, second.T, strict=True)
    ]
    share = float(np.mean(shares))
    low, high = _newcombe_limits(share, sizes)
    shrink = math.sqrt(len(shares))
    return Interval(share, share - (share - low) / shrink, share + (high - share) / shrink)


def convergence(curves: ArrayLike, *, tolerance: float) -> Convergence:
    """Change of curves over the last quarter of their points, with its interval over runs.

    Args:
        curves: (runs, points), at equal distances over a whole training.
        tolerance: Largest change that counts as none.

    Returns:
        The change of the fitted line over the last quarter, and its state: `flat` if the interval
        lies within the tolerance, `rising` or `falling` if it excludes 0 otherwise, or `unclear`.
    """
    values = _matrix(curves, least_runs=2)
    points = int(values.shape[1] * LAST_QUARTER)
    if points < 2:
        raise ValueError(f"curves must have at least 8 points, got {values.shape[1]}")
    places = np.arange(points) / points  # a point is the mean of the part before it
    slopes = np.polyfit(places, values[:, -points:].T, 1)[0]
    change = interval(slopes, mean)
    if max(abs(change.low), abs(change.high)) <= tolerance:
        return Convergence(change, "flat")
    if not change.excludes(0.0):
        return Convergence(change, "unclear")
    return Convergence(change, "rising" if change.estimate > 0 else "falling")


def holm(p_values: ArrayLike) -> Float64s:
    """Holm's correction of p-values for their number, in their order."""
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return adjusted


def pairs_for_power(
    found: Interval, pairs: int, *, most: int, error_rate: float = 1 - CONFIDENCE
) -> int:
    """Pairs with which a difference like this one is found in 80 % of studies, at most `most`.

    Args:
        found: Interval of a paired difference that does not exclude 0.
        pairs: Its number of pairs.
        most: Largest number that is tried.
        error_rate: Of the test.
    """
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2, pairs - 1))
    deviation = (found.high - found.low) / 2 / quantile * math.sqrt(pairs)
    sizes = np.arange(pairs + 1, most)
    quantiles = stats.t.ppf(1 - error_rate / 2, sizes - 1) + stats.t.ppf(POWER, sizes - 1)
    enough = np.abs(found.estimate) * np.sqrt(sizes) >= quantiles * deviation
    return int(sizes[np.argmax(enough)]) if enough.any() else most


def _matrix(scores: ArrayLike, *, least_runs: int = 1) -> Float64s:
    """Scores as (runs, tasks)."""
    array = np.asarray(scores, np.float64)
    matrix = array[:, None] if array.ndim == 1 else array
    if matrix.ndim != 2 or matrix.shape[1] < 1 or len(matrix) < least_runs:
        runs = f"at least {least_runs} {'run' if least_runs == 1 else 'runs'}"
        raise ValueError(f"scores must be (runs,) or (runs, tasks) with {runs}, got {array.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("scores must be finite numbers, got others")
    return matrix


def _runs(scores: ArrayLike) -> Float64s:
    means: Float64s = _matrix(scores, least_runs=2).mean(axis=1)
    return means


def _iqm(scores: Float64s) -> float | Float64s:
    flat = scores.reshape(*scores.shape[:-2], -1)
    trimmed: Float64s = np.asarray(stats.trim_mean(flat, TRIMMED_SHARE, axis=-1))
    return trimmed


def _mean(scores: Float64s) -> float | Float64s:
    value: Float64s = np.asarray(scores.mean(axis=(-2, -1)))
    return value


def _median(scores: Float64s) -> float | Float64s:
    of_tasks = scores[..., 0] if scores.shape[-1] == 1 else scores.mean(axis=-2)
    value: Float64s = np.asarray(np.median(of_tasks, axis=-1))
    return value


_VECTORIZED: dict[Callable[[ArrayLike], float], Statistic] = {iqm: _iqm, median: _median}


def _bootstrap_error(
    matrix: Float64s,
    statistic: Callable[[ArrayLike], float],
    seed: int,
    *,
    independent_tasks: bool,
) -> float:
    """Standard deviation of the statistic over resamples of the runs, per task."""
    runs, tasks = matrix.shape
    rng = np.random.default_rng(seed)
    columns = tasks if independent_tasks else 1
    drawn: Int64s = rng.integers(runs, size=(RESAMPLES, runs, columns))
    resampled = matrix[drawn, np.arange(tasks)]
    if statistic in _VECTORIZED:
        values = _VECTORIZED[statistic](resampled)
    else:
        values = np.array([statistic(scores) for scores in resampled])
    return float(np.std(values, ddof=1))


def _error_of_mean(matrix: Float64s) -> tuple[float, float]:
    """Standard error of the mean over runs and tasks, and its degrees of freedom."""
    runs, tasks = matrix.shape
    errors = matrix.std(axis=0, ddof=1) / (np.sqrt(runs) * tasks)
    freedom = _satterthwaite(errors.tolist(), [runs - 1] * tasks)
    return float(np.sqrt((errors**2).sum())), freedom


def _satterthwaite(errors: list[float], freedoms: list[float] | list[int]) -> float:
    """Degrees of freedom of the root of a sum of squared errors."""
    variances = np.square(errors)
    total = variances.sum()
    if not total:
        return float(min(freedoms))
    return float(total**2 / (variances**2 / np.asarray(freedoms, np.float64)).sum())


def _t_interval(estimate: float, error: float, freedom: float, confidence: float) -> Interval:
    margin = float(stats.t.ppf(0.5 + confidence / 2, freedom)) * error
    return Interval(estimate, estimate - margin, estimate + margin)


def _difference(estimate: float, error: float, freedom: float) -> Difference:
    if error > _ROUNDING * abs(estimate):
        p_value = 2 * float(stats.t.sf(abs(estimate) / error, freedom))
    else:  # equal differences: a sign test
        p_value = 2.0**-freedom if estimate else 1.0
    return Difference(_t_interval(estimate, error, freedom, CONFIDENCE), p_value)


def _newcombe_limits(share: float, sizes: tuple[int, int]) -> tuple[float, float]:
    """Shares whose score test does not reject the observed share."""
    z = float(stats.norm.ppf(0.5 + CONFIDENCE / 2))
    extra = sum(sizes) / 2 - 1

    def distance(other: float) -> float:
        spread = 1 + extra * ((1 - other) / (2 - other) + other / (1 + other))
        variance = other * (1 - other) * spread / (sizes[0] * sizes[1])
        return abs(share - other) - z * float(np.sqrt(variance))

    low = 0.0 if share <= 0 else float(optimize.brentq(distance, 0.0, share - _TINY))
    high = 1.0 if share >= 1 else float(optimize.brentq(distance, share + _TINY, 1.0))
    return low, high
