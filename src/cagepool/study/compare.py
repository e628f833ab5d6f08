"""Comparisons of settings, in numbers and in words."""

from collections.abc import Mapping, Sequence

from cagepool.runs.study_schema import Comparison, Estimate
from cagepool.study.statistics import (
    Difference,
    Interval,
    holm,
    paired_difference,
    pairs_for_power,
    probability_of_improvement,
)

ERROR_RATE = 0.05  # of all comparisons of a study together
MAX_SEEDS = 1000  # that a sentence recommends

Totals = Mapping[str, Mapping[int, float]]  # by setting and seed


def compare(
    totals: Mapping[str, Totals], pairs: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, list[Comparison]]:
    """Compare pairs of settings in each edition, on the seeds that both settings have.

    The seeds of a pair share the evaluation games and the initial weights, so that differences are
    taken by seed.

    Args:
        totals: By edition.
        pairs: By edition.
    """
    shared = {
        (edition, pair): _shared_scores(totals[edition], pair)
        for edition, of_edition in pairs.items()
        for pair in of_edition
    }
    shared = {key: scores for key, scores in shared.items() if len(scores[0]) > 1}
    differences = [paired_difference(*scores) for scores in shared.values()]
    corrected = holm([one.p_value for one in differences]).tolist() if differences else []
    found: dict[str, list[Comparison]] = {edition: [] for edition in pairs}
    for ((edition, pair), scores), difference, p_value in zip(
        shared.items(), differences, corrected, strict=True
    ):
        found[edition].append(_comparison(pair, scores, difference, p_value, len(differences)))
    return found


def _shared_scores(totals: Totals, pair: tuple[str, str]) -> tuple[list[float], list[float]]:
    first, second = (totals[name] for name in pair)
    seeds = [seed for seed in first if seed in second]
    return [first[seed] for seed in seeds], [second[seed] for seed in seeds]


def _comparison(
    pair: tuple[str, str],
    scores: tuple[list[float], list[float]],
    difference: Difference,
    p_value: float,
    comparisons: int,
) -> Comparison:
    is_clear = p_value < ERROR_RATE
    improvement = probability_of_improvement(*scores)
    return Comparison(
        first=pair[0],
        second=pair[1],
        seeds=len(scores[0]),
        difference=Estimate(*difference.interval),
        p_value=p_value,
        improvement=Estimate(*improvement),
        verdict="unclear"
        if not is_clear
        else "better"
        if difference.interval.estimate > 0
        else "worse",
        sentence=comparison_sentence(
            pair,
            difference.interval,
            improvement,
            seeds=len(scores[0]),
            comparisons=comparisons,
            is_clear=is_clear,
        ),
    )


def comparison_sentence(  # noqa: PLR0913 - all parts of a sentence
    pair: tuple[str, str],
    difference: Interval,
    improvement: Interval,
    *,
    seeds: int,
    comparisons: int,
    is_clear: bool,
) -> str:
    """The result of a comparison in words.

    Args:
        pair: Names of two settings.
        difference: Of their totals, first - second.
        improvement: Probability that a run of the first is better.
        seeds: Number of pairs.
        comparisons: Number of comparisons of the study, for which the result is corrected.
        is_clear: Whether the difference is larger than chance explains.
    """
    if difference.estimate < 0:
        pair = pair[::-1]
        difference = _reversed(difference, 0.0)
        improvement = _reversed(improvement, 1.0)
    better, other = pair
    points = (
        f"{difference.estimate:.1f} [{difference.low:.1f}, {difference.high:.1f}] points of total, "
        f"P(improvement) {improvement.estimate:.2f} "
        f"[{improvement.low:.2f}, {improvement.high:.2f}]"
    )
    if is_clear:
        return f"{better} is better than {other}: {points}; {seeds} seeds."
    if difference.excludes(0.0):
        corrected = f"it does not survive the correction for {comparisons} comparisons"
        return f"{seeds} seeds suggest that {better} is better than {other}, {points}; {corrected}."
    advice = _advice(difference, seeds, comparisons)
    return f"{seeds} seeds cannot tell {better} from {other}: {points}.{advice}"


def _advice(difference: Interval, seeds: int, comparisons: int) -> str:
    """How many seeds would tell a difference of the observed size; nothing if there is none."""
    if not difference.estimate or seeds >= MAX_SEEDS:
        return ""
    error_rate = ERROR_RATE / comparisons
    needed = pairs_for_power(difference, seeds, most=MAX_SEEDS, error_rate=error_rate)
    number = f"about {needed} seeds" if needed < MAX_SEEDS else f"{MAX_SEEDS:,} seeds or more"
    return f" A difference of this size would need {number}."


def _reversed(found: Interval, total: float) -> Interval:
    return Interval(total - found.estimate, total - found.high, total - found.low)
