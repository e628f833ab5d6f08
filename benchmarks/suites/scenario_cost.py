"""Cost of a step by scenario."""

from dataclasses import dataclass, field
from itertools import count

from cagepool.bench.engine import scenario_contenders, scenario_ratios
from cagepool.bench.measure import Figures, Pace, Progress, measure_interleaved


@dataclass(frozen=True, kw_only=True)
class ScenarioCostConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=Pace)


def measure_scenario_cost(config: ScenarioCostConfig, progress: Progress) -> Figures:
    """Measure all contenders interleaved."""
    contenders = scenario_contenders()
    finished = count(1)
    total = config.pace.repetitions * len(contenders)
    groups = {
        "scenarios": measure_interleaved(
            contenders, config.pace, lambda: progress("scenarios", next(finished), total)
        )
    }
    return Figures(groups=groups, ratios=dict(scenario_ratios(groups)))
