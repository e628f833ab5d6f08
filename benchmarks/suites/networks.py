"""Cost of a step by network."""

from dataclasses import dataclass, field
from itertools import count

from cagepool.bench.engine import network_contenders, network_ratios
from cagepool.bench.measure import Figures, Pace, Progress, measure_interleaved


@dataclass(frozen=True, kw_only=True)
class NetworksConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=Pace)


def measure_networks(config: NetworksConfig, progress: Progress) -> Figures:
    """Measure all contenders interleaved."""
    contenders = network_contenders()
    finished = count(1)
    total = config.pace.repetitions * len(contenders)
    groups = {
        "networks": measure_interleaved(
            contenders, config.pace, lambda: progress("networks", next(finished), total)
        )
    }
    return Figures(groups=groups, ratios=dict(network_ratios(groups)))
