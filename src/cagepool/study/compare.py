"""Comparisons of settings in numbers and in words, and the paragraph about methods for a paper."""

from collections.abc import Mapping, Sequence

from cagepool.runs.study_schema import Comparison, Estimate, StudyFile
from cagepool.sim.names import MIX, OFFICIAL_REDS
from cagepool.study.statistics import (
    Difference,
    Interval,
    holm,
    paired_difference,
    pairs_for_power,
    probability_of_improvement,
)
from cagepool.train.config import TrainConfig

ERROR_RATE = 0.05  # of all comparisons of a study together
MAX_SEEDS = 1000  # that a sentence recommends

Totals = Mapping[str, Mapping[int, float]]  # by setting and seed


def compare(
    totals: Mapping[str, Totals], pairs: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, list[Comparison]]:
    """Compare pairs of settings in each edition, on the seeds that both settings have.

    The seeds of a pair share the evaluation games and the initial weights, so that differences are
    taken by seed.
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
        verdict=("worse", "better")[difference.interval.estimate > 0] if is_clear else "unclear",
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
    """The result of a comparison in words."""
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


def methods_paragraph(study: StudyFile, machine: Mapping[str, str], complete: int) -> str:
    """Describe how the numbers of a study were made, with versions, seeds, edition and budget."""
    protocol = study.protocol
    configs = [TrainConfig.from_dict(settings) for settings in study.settings.values()]
    budgets = sorted({config.run.total_episodes for config in configs})
    editions = protocol.editions or sorted({config.env.edition for config in configs})
    reds = _red_names([config.env.red_agent for config in configs])
    planned = len(study.settings) * len(protocol.seeds)
    uses_torch = any(
        config.ppo.learner == "torch" or config.ppo.network != "mlp" for config in configs
    )
    torch = f", PyTorch {machine['torch']}" if uses_torch and "torch" in machine else ""
    milestones = ", ".join(map(str, protocol.milestones))
    policy = (
        "The policy with the best periodic evaluation, against the red agents of its training and "
        "on other seeds, was scored"
        if protocol.policy == "best"
        else "The last policy was scored"
    )
    comparison = (
        f"with {protocol.baseline}" if protocol.baseline is not None else "of all pairs of settings"
    )
    sentences = (
        (
            f"We compared {len(study.settings)} settings of PPO in CAGE Challenge 2 with cagepool "
            f"{machine['cagepool']} (NumPy {machine['numpy']}, SciPy {machine['scipy']}{torch}, "
            f"Python {machine['python']}), whose games equal those of CybORG."
        ),
        (
            f"Each setting was trained from {len(protocol.seeds)} random seeds "
            f"({_ranges(protocol.seeds)}), against {reds}, for exactly "
            f"{_words([f'{budget:,}' for budget in budgets])} episodes per run."
        ),
        f"Results are those of the {complete} runs of {planned} that are complete."
        if complete < planned
        else "",
        (
            f"{policy} in edition {_words(editions)} by the official protocol: 30, 50 and 100 "
            "steps against B_lineAgent, RedMeanderAgent and SleepAgent, with the official reward "
            f"and {protocol.episodes:,} games per red; the score is the sum of the nine means."
        ),
        (
            f"All runs played the same evaluation games (seed {protocol.evaluation_seed}), none of "
            "which occurs in training."
        ),
        f"The current policy was also scored after {milestones} % of the episodes."
        if milestones
        else "",
        (
            "We report the interquartile mean over seeds with 95 % confidence intervals: t "
            "intervals with the standard error of the bootstrap over seeds, definitions as in "
            "Agarwal et al. (2021)."
        ),
        (
            f"Comparisons {comparison} are mean differences of pairs of runs with the same seed, "
            "by Student's t, corrected for their number by Holm's method, beside the probability "
            "of improvement with Newcombe's interval."
        ),
        f"Trainings ran on {machine['processor']} with one thread per run.",
    )
    return " ".join(sentence for sentence in sentences if sentence)


def _red_names(red_agents: list[str]) -> str:
    """Red agents of the trainings in words."""
    different = [*dict.fromkeys(red_agents)]
    if len(different) > 1:
        return f"red agents that differ by setting ({'; '.join(different)})"
    return _words([*OFFICIAL_REDS]) if different == [MIX] else different[0].replace("+", " and ")


def _words(values: list[str]) -> str:
    return " and ".join([", ".join(values[:-1]), values[-1]]) if len(values) > 1 else values[0]


def _ranges(seeds: list[int]) -> str:
    """Numbers with successive ones joined, such as `0-19`."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
