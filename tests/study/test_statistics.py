"""Statistics against slow independent computations and published figures."""

from collections.abc import Callable
from itertools import product
from statistics import fmean
from statistics import median as middle

import numpy as np
import pytest

from cagepool import study
from cagepool.types import Float64s

SCORES = np.random.default_rng(5).normal(-60, 8, (7, 3))

# Interquartile mean of the example in Wikipedia's article of that name.
WIKIPEDIA_IQM = [5, 8, 4, 38, 8, 6, 9, 7, 7, 3, 1, 6]
# Survival of mice: Efron and Tibshirani, An Introduction to the Bootstrap, tables 2.1 and 2.2.
TREATED_MICE = [94, 197, 16, 38, 99, 141, 23]
CONTROL_MICE = [52, 104, 146, 10, 50, 31, 40, 27, 46]
# Extra hours of sleep by two drugs: Student, Biometrika 1908; intervals by R's t.test.
FIRST_DRUG = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND_DRUG = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
# Permeability of membranes: Hollander and Wolfe 1973, page 69; W = 35 in R's wilcox.test.
AT_TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]


def draw(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64s:
    if kind == "normal":
        return rng.normal(-60, 4, shape)
    if kind == "skewed":  # some seeds fail
        return -rng.gamma(8, 4, shape)
    return -60 + 4 * rng.standard_t(5, shape)  # heavy tails


def test_the_interquartile_mean_is_that_of_the_published_example() -> None:
    assert study.iqm(WIKIPEDIA_IQM) == 6.5


def test_the_interquartile_mean_of_a_matrix_trims_all_scores_together() -> None:
    ascending = sorted(SCORES.ravel().tolist())
    assert study.iqm(SCORES) == pytest.approx(fmean(ascending[5:-5]))


def test_mean_median_and_gap_are_those_of_plain_loops() -> None:
    columns = SCORES.T.tolist()
    assert study.mean(SCORES) == pytest.approx(fmean(fmean(column) for column in columns))
    assert study.median(SCORES) == pytest.approx(middle([fmean(column) for column in columns]))
    assert study.median(SCORES[:, 0]) == pytest.approx(middle(columns[0]))
    short = [max(0.0, -58 - score) for column in columns for score in column]
    assert study.optimality_gap(SCORES, -58) == pytest.approx(fmean(short))


def test_the_spread_over_seeds_is_that_of_their_means() -> None:
    means = SCORES.mean(axis=1)
    deviation = (sum((value - means.mean()) ** 2 for value in means) / 6) ** 0.5
    assert study.standard_deviation(SCORES) == pytest.approx(deviation)
    low, high = np.quantile(means, [0.25, 0.75])
    assert study.interquartile_range(SCORES) == pytest.approx(high - low)


@pytest.mark.parametrize(("count", "share"), [(100, 0.05), (30, 0.05), (7, 0.3)])
def test_cvar_is_the_mean_of_the_worst_share_of_repeated_scores(count: int, share: float) -> None:
    scores = np.random.default_rng(1).normal(size=count)
    repeated = np.repeat(np.sort(scores), 1000)  # makes the share a whole number
    worst = repeated[: round(share * count * 1000)]
    assert study.cvar(scores, share) == pytest.approx(worst.mean())


def test_a_profile_counts_the_scores_above_each_threshold() -> None:
    thresholds = [-70, -60, -50]
    expected = [fmean(score > limit for score in SCORES.ravel()) for limit in thresholds]
    assert study.profile(SCORES, thresholds) == pytest.approx(expected)
    low, high = study.profile_band(SCORES, thresholds)
    assert (low <= expected).all()
    assert (expected <= high).all()


def test_the_error_of_a_mean_is_that_of_the_published_table() -> None:
    treated, control = (study.interval(mice, study.mean) for mice in (TREATED_MICE, CONTROL_MICE))
    quantiles = 2.446912, 2.306004  # Student's t with 6 and 8 degrees of freedom
    errors = [
        (found.high - found.estimate) / quantile
        for found, quantile in zip((treated, control), quantiles, strict=True)
    ]
    assert [treated.estimate, control.estimate] == pytest.approx([86.86, 56.22], abs=0.005)
    assert errors == pytest.approx([25.24, 14.14], abs=0.005)
    both = study.difference(TREATED_MICE, CONTROL_MICE)
    assert both.interval.estimate == pytest.approx(30.63, abs=0.01)
    assert both.p_value > 0.3


def test_the_bootstrap_error_of_a_median_is_that_of_the_published_table() -> None:
    found = study.interval(TREATED_MICE, study.median)
    error = (found.high - found.estimate) / 2.446912
    # 37.83 with infinitely many resamples; 2000 of them have a relative error of about 2 %.
    assert error == pytest.approx(37.83, rel=0.06)


def test_a_paired_difference_is_that_of_the_published_sleep_data() -> None:
    found = study.paired_difference(SECOND_DRUG, FIRST_DRUG)
    assert found.interval == pytest.approx((1.58, 0.7001142, 2.4598858), abs=1e-6)
    assert found.p_value == pytest.approx(0.002833, abs=1e-6)


def test_an_unpaired_difference_is_that_of_the_published_sleep_data() -> None:
    found = study.difference(SECOND_DRUG, FIRST_DRUG)
    assert found.interval == pytest.approx((1.58, -0.2054832, 3.3654832), abs=1e-6)
    assert found.p_value == pytest.approx(0.07939, abs=1e-5)


def test_the_probability_of_improvement_is_that_of_the_published_rank_sum() -> None:
    assert study.probability_of_improvement(AT_TERM, EARLY).estimate == pytest.approx(35 / 50)


def test_the_probability_of_improvement_is_the_share_of_all_pairs() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 6, (9, 2)), rng.integers(0, 6, (7, 2))
    by_task = [
        fmean(float(x > y) + float(x == y) / 2 for x, y in product(a[:, task], b[:, task]))
        for task in range(2)
    ]
    assert study.probability_of_improvement(a, b).estimate == pytest.approx(fmean(by_task))


def test_the_probability_of_improvement_of_separate_groups_is_not_certain() -> None:
    found = study.probability_of_improvement([3, 4, 5], [0, 1, 2])
    assert found.estimate == found.high == 1
    assert 0.4 < found.low < 0.95


def test_the_stratified_bootstrap_is_that_of_a_plain_loop() -> None:
    rng = np.random.default_rng(8)
    resampled = [
        fmean(sorted(score for column in SCORES.T for score in rng.choice(column, 7))[5:-5])
        for _ in range(3000)
    ]
    found = study.interval(SCORES, study.iqm)
    quantile = 2.100922  # Student's t with 18 degrees of freedom
    # Two bootstraps of 2000 and 3000 resamples differ by about 2 %.
    assert (found.high - found.low) / 2 / quantile == pytest.approx(np.std(resampled), rel=0.08)


def test_a_row_that_played_all_tasks_is_resampled_as_a_whole() -> None:
    column = SCORES[:, :1]
    same = np.repeat(column, 3, axis=1)
    whole = study.interval(same, study.mean, independent_tasks=False)
    assert whole == pytest.approx(study.interval(column, study.mean))
    separate = study.interval(same, study.mean)
    assert separate.high - separate.low < whole.high - whole.low


def test_a_statistic_of_the_user_has_an_interval() -> None:
    found = study.interval(SCORES[:, 0], lambda scores: float(np.max(np.asarray(scores))))
    assert found.low < found.estimate == SCORES[:, 0].max()


@pytest.mark.parametrize(("slope", "state"), [(0.0, "flat"), (20.0, "rising"), (-20.0, "falling")])
def test_convergence_tells_flat_curves_from_others(slope: float, state: str) -> None:
    rng = np.random.default_rng(2)
    curves = slope * np.linspace(0, 1, 40) + rng.normal(0, 0.1, (8, 40))
    found = study.convergence(curves, tolerance=1.0)
    assert found.state == state
    assert found.change.estimate == pytest.approx(slope / 4 * 40 / 41, abs=0.5)


def test_convergence_says_when_the_data_cannot_tell() -> None:
    curves = np.random.default_rng(2).normal(0, 30, (3, 40))
    assert study.convergence(curves, tolerance=1.0).state == "unclear"


def test_holm_multiplies_the_smallest_p_value_by_the_number_of_comparisons() -> None:
    # The example of Holm's method with 0.01, 0.04, 0.03 and 0.005 at the level 0.05.
    assert study.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: study.interval([1.0]), "at least 2 runs"),
        (lambda: study.iqm([]), "at least 1 run"),
        (lambda: study.iqm([1.0, np.nan]), "finite"),
        (lambda: study.paired_difference([1, 2], [1, 2, 3]), "same shape"),
        (lambda: study.probability_of_improvement([[1, 2]], [1]), "same tasks"),
        (lambda: study.cvar([1, 2], 0), "share must be above 0"),
        (lambda: study.convergence([[1, 2, 3]] * 2, tolerance=1), "at least 8 points"),
    ],
)
def test_wrong_scores_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.soak
@pytest.mark.parametrize("seeds", [5, 10, 25])
@pytest.mark.parametrize("kind", ["normal", "skewed", "heavy"])
def test_intervals_cover_the_truth_in_95_percent_of_studies(kind: str, seeds: int) -> None:
    rng = np.random.default_rng(1234)
    population = draw(kind, rng, (1_000_000,))
    studies = draw(kind, rng, (2000, seeds))
    for statistic in (study.iqm, study.mean):
        truth = statistic(population)
        misses = sum(study.interval(scores, statistic).excludes(truth) for scores in studies)
        assert 0.93 <= 1 - misses / 2000 <= 0.97, statistic.__name__


@pytest.mark.soak
@pytest.mark.parametrize("seeds", [5, 10, 25])
def test_intervals_of_comparisons_cover_the_truth_in_95_percent_of_studies(seeds: int) -> None:
    rng = np.random.default_rng(99)
    a, b = rng.normal(1, 1, (2000, seeds)), rng.normal(0, 1, (2000, seeds))
    paired = sum(
        study.paired_difference(*pair).interval.excludes(1.0) for pair in zip(a, b, strict=True)
    )
    improvement = sum(
        study.probability_of_improvement(*pair).excludes(0.7602499)  # normal, at 1 / sqrt(2)
        for pair in zip(a, b, strict=True)
    )
    assert 0.93 <= 1 - paired / 2000 <= 0.97
    assert 0.93 <= 1 - improvement / 2000 <= 0.97
