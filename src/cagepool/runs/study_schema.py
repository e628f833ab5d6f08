"""Files of a study: their names, and one model per file for all writers and readers.

| file | model | content |
|---|---|---|
| `study.json` | `StudyFile` | settings and protocol |
| `<setting>/seed-<n>/scores.json` | `ScoresFile` | scores of one training, in its run folder |
| `results.json` | `ResultsFile` | scores and statistics of all runs; all that a report shows |
"""

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct, field

from cagepool.runs.folder import read_if_exists
from cagepool.runs.schema import Count, Settings

STUDY = "study.json"
SCORES = "scores.json"
RESULTS = "results.json"

STATISTICS = {
    "iqm": "IQM",
    "mean": "Mean",
    "median": "Median",
    "optimality_gap": "Optimality gap",
    "cvar": "CVaR 5 %",
}
"""Statistics of a setting over seeds: the first four of totals; the last one is the mean of the
worst 5 % of the games of 100 steps, summed over reds."""

BEHAVIOR = {
    "clean": ("Clean host-steps", "clean_host_steps", "host_steps"),
    "time_to_fix": ("Steps to the fix of fixed intrusions", "steps_to_fix", "fixed_intrusions"),
    "fixed": ("Intrusions fixed", "fixed_intrusions", "intrusions"),
    "restore_precision": ("Restore: precision", "useful_restores", "restores"),
    "restore_recall": ("Restore: recall", "restored_intrusions", "privileged_intrusions"),
    "remove_precision": ("Remove: precision", "useful_removes", "removes"),
    "remove_recall": ("Remove: recall", "removed_intrusions", "removable_intrusions"),
    "decoy_hits": ("Exploits that hit a decoy", "decoy_hits", "exploits"),
    "no_effect": ("Actions without effect", "actions_without_effect", "steps"),
    "idle": ("Sleep and Monitor", "idle_steps", "steps"),
}
"""Behavior by name: title, and the two fields of `BehaviorCounts` whose ratio it is."""

MILESTONES = (10, 25, 50, 75, 100)
MAX_SEEDS = 10_000
Cells: TypeAlias = dict[str, list[float]]  # mean total rewards by red, one per length


class StudyProtocol(Struct, frozen=True, kw_only=True):
    """What a study does with each of its settings."""

    seeds: list[int]
    """Seeds of the trainings, the same for all settings."""
    episodes: int = 1000
    """Games per red of each evaluation."""
    evaluation_seed: int = 153
    """Random seed of the evaluation games, which are the same for all runs."""
    milestones: list[int] = field(default_factory=lambda: [*MILESTONES])
    """Percentages of the training episodes after which the current policy is evaluated."""
    policy: Literal["best", "last"] = "best"
    """Policy that is scored at the end: the best of the periodic evaluations, or the last."""
    editions: list[str] = field(default_factory=list)
    """Editions of the final evaluation. Empty: that of the training."""
    baseline: str | None = None
    """Setting that the others are compared with. None: all pairs are compared."""
    target: float = 0.0
    """Total from which the optimality gap is measured; 0 is a game without any loss."""
    gradient_rollouts: int = 0
    """Rollouts at each milestone from which the variance of the gradient is estimated; 0: none."""

    def __post_init__(self) -> None:
        """Check the settings."""
        seeds, marks = self.seeds, self.milestones
        if len(seeds) < 2 or len({*seeds}) < len(seeds) or min(seeds) < 0:
            raise ValueError(f"seeds must be two or more different numbers from 0 on, got {seeds}")
        if marks != sorted({*marks}) or not all(0 < mark <= 100 for mark in marks):
            raise ValueError(f"milestones must be ascending percentages up to 100, got {marks}")
        if self.episodes < 2:
            raise ValueError(f"episodes must be at least 2, got {self.episodes}")
        if self.gradient_rollouts == 1 or self.gradient_rollouts < 0:
            raise ValueError(
                f"gradient_rollouts must be 0 or more than 1, got {self.gradient_rollouts}"
            )


class StudyFile(Struct, frozen=True, kw_only=True):
    """`study.json`: everything that decides the numbers of a study."""

    cagepool: str  # version that created the folder
    protocol: StudyProtocol
    settings: dict[str, Settings]  # of a training without its seed, by name


class BehaviorCounts(Struct, frozen=True, kw_only=True):
    """Counts over the games of an evaluation; see `evaluate.behavior`."""

    games: Count
    steps: Count
    host_steps: Count  # of all hosts but User0
    clean_host_steps: Count  # without a session of red
    intrusions: Count
    fixed_intrusions: Count
    steps_to_fix: Count  # sum over fixed intrusions
    privileged_intrusions: Count  # red became privileged before they ended
    restored_intrusions: Count  # of these, ended by Restore
    removable_intrusions: Count  # with a session that Remove ends
    removed_intrusions: Count  # of these, ended by Remove
    restores: Count
    useful_restores: Count  # of a host with a session of red
    removes: Count
    useful_removes: Count  # that ended a session
    decoys: Count  # placed or tried
    exploits: Count  # by red
    decoy_hits: Count  # exploits of a decoy
    idle_steps: Count  # Sleep or Monitor
    actions_without_effect: Count


class MilestoneScores(Struct, frozen=True, kw_only=True):
    """Scores of the current policy of a training at a milestone."""

    percent: int
    episodes: Count
    steps: Count
    seconds: float
    total: float
    cells: Cells
    gradient_variance: float | None = None  # trace of the covariance over rollouts
    gradient_signal: float | None = None  # squared norm of the expected gradient, unbiased


class FinalScores(Struct, frozen=True, kw_only=True):
    """Scores of a trained policy in one edition."""

    update: Count  # of the checkpoint
    total: float
    cells: Cells
    cvar: dict[str, float]  # mean of the worst 5 % of the games of 100 steps, by red
    game_totals: list[float]  # sum of the nine cells by number of the game
    loss: dict[str, dict[str, float]]  # mean per game by red and cause
    behavior: dict[str, BehaviorCounts]  # by red


class ScoresFile(Struct, frozen=True, kw_only=True):
    """`scores.json` of a run of a study."""

    milestones: list[MilestoneScores] = field(default_factory=list)
    final: dict[str, FinalScores] = field(default_factory=dict)  # by edition; empty: in training


class Estimate(Struct, frozen=True):
    """An estimate over seeds with its 95 % interval."""

    estimate: float
    low: float
    high: float


class SettingResults(Struct, frozen=True, kw_only=True):
    """Results of one setting in one edition; lists have one entry per seed."""

    name: str
    seeds: list[int]  # of the runs that are complete
    totals: list[float]
    cells: dict[str, list[list[float]]]  # by red: seeds x lengths
    by_red: dict[str, Estimate]  # sum over the lengths
    statistics: dict[str, Estimate]  # see `STATISTICS`
    standard_deviation: float | None
    interquartile_range: float | None
    profile: list[float]  # share of runs above each of `EditionResults.thresholds`
    profile_band: list[list[float]]
    behavior: dict[str, Estimate]  # see `BEHAVIOR`
    loss: dict[str, dict[str, float]]  # mean per game by red and cause


class Comparison(Struct, frozen=True, kw_only=True):
    """Two settings in one edition, compared on the seeds that both have."""

    first: str
    second: str
    seeds: int
    difference: Estimate  # of totals, first - second
    p_value: float  # corrected by Holm for the number of comparisons
    improvement: Estimate  # probability that a run of the first is better
    verdict: Literal["better", "worse", "unclear"]  # the first
    sentence: str


class EditionResults(Struct, frozen=True, kw_only=True):
    """Results in one edition of the game."""

    edition: str
    settings: list[SettingResults]
    comparisons: list[Comparison]
    thresholds: list[float]  # of the performance profiles


class Curve(Struct, frozen=True, kw_only=True):
    """A quantity along the trainings of a setting: mean over seeds and its 95 % interval."""

    setting: str
    episodes: list[float]
    steps: list[float]
    seconds: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


class ConvergenceResult(Struct, frozen=True, kw_only=True):
    """Change of the return in the last quarter of the trainings of a setting."""

    setting: str
    change: Estimate
    state: str
    sentence: str


class ResultsFile(Struct, frozen=True, kw_only=True):
    """`results.json`: scores and statistics of the runs that are complete."""

    study: StudyFile
    machine: dict[str, str]
    seconds: float  # of all trainings, one after the other
    episodes: Count  # of all trainings
    complete: Count  # trainings
    failures: dict[str, str]  # message by run
    editions: list[EditionResults]
    returns: list[Curve]  # of training episodes
    milestones: list[Curve]  # totals at milestones
    gradient_variance: list[Curve]  # at milestones; empty: not measured
    gradient_signal: list[Curve]
    convergence: list[ConvergenceResult]
    methods: str


def first_seeds(count: int) -> list[int]:
    """That many seeds, from 0 on."""
    if not 2 <= count <= MAX_SEEDS:
        raise ValueError(f"seeds must be from 2 to {MAX_SEEDS:,}, got {count}")
    return [*range(count)]


def read_results(path: Path) -> ResultsFile:
    """Results in the folder of a study.

    Raises:
        ValueError: there are none yet, or the file is damaged.
    """
    results = read_if_exists(path / RESULTS, ResultsFile)
    if results is None:
        raise ValueError(
            f"a study must have {RESULTS}, {path} has none: run it with cagepool study {path}"
        )
    return results
