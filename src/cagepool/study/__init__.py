"""Studies over seeds, and statistics of scores that can be used on scores from anywhere."""

from typing import TYPE_CHECKING

from cagepool._lookup import lazy_names
from cagepool.study.statistics import (
    Convergence,
    Difference,
    Interval,
    convergence,
    cvar,
    difference,
    holm,
    interquartile_range,
    interval,
    iqm,
    mean,
    median,
    optimality_gap,
    paired_difference,
    probability_of_improvement,
    profile,
    profile_band,
    standard_deviation,
)

if TYPE_CHECKING:
    from cagepool.experiments.listener import Listener
    from cagepool.runs.study_schema import StudyProtocol, read_results
    from cagepool.study.config import make_study, read_study
    from cagepool.study.study import create_or_open, run_study

__all__ = [
    "Convergence",
    "Difference",
    "Interval",
    "Listener",
    "StudyProtocol",
    "convergence",
    "create_or_open",
    "cvar",
    "difference",
    "holm",
    "interquartile_range",
    "interval",
    "iqm",
    "make_study",
    "mean",
    "median",
    "optimality_gap",
    "paired_difference",
    "probability_of_improvement",
    "profile",
    "profile_band",
    "read_results",
    "read_study",
    "run_study",
    "standard_deviation",
]

_HOMES = {  # on first use: statistics need neither training nor files
    "Listener": "cagepool.experiments.listener",
    "StudyProtocol": "cagepool.runs.study_schema",
    "create_or_open": "cagepool.study.study",
    "make_study": "cagepool.study.config",
    "read_results": "cagepool.runs.study_schema",
    "read_study": "cagepool.study.config",
    "run_study": "cagepool.study.study",
}
__getattr__ = lazy_names(__name__, _HOMES)
