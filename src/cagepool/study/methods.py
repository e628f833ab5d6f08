"""The paragraph that describes the protocol of a study for a paper."""

from collections.abc import Mapping

from cagepool.runs.study_schema import StudyFile
from cagepool.sim.names import MIX, OFFICIAL_REDS
from cagepool.train.config import TrainConfig


def methods_paragraph(study: StudyFile, machine: Mapping[str, str], complete: int) -> str:
    """Describe how the numbers of a study were made, with versions, seeds, edition and budget.

    Args:
        study: Settings and protocol.
        machine: Processor and versions.
        complete: Number of runs that the results are made of.
    """
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
