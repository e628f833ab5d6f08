"""Time to read scenario files and to generate scenarios."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cagepool.bench.measure import (
    Contender,
    Figures,
    MakeContender,
    Pace,
    Progress,
    measure_groups,
    time_calls,
)
from cagepool.scenarios import Scenario

FOLDER = Path(__file__).parents[2] / "tests" / "golden" / "scenarios"
FILES = {"cage2_rebuilt": 13, "wide40": 40, "wide64": 64}  # number of hosts
GENERATED = 100  # scenarios per call


@dataclass(frozen=True, kw_only=True)
class ScenarioFilesConfig:
    """Settings of this bench."""

    pace: Pace = field(default_factory=Pace)


def measure_scenario_files(config: ScenarioFilesConfig, progress: Progress) -> Figures:
    """Measure `load`, and `generate` with its default ranges; a step is one scenario."""
    groups = measure_groups([("scenario files", [*_contenders()])], config.pace, progress)
    medians = {}
    for measured in groups["scenario files"]:
        costs = sorted(measured.repetitions.nanoseconds_per_step)
        medians[measured.name] = round(costs[len(costs) // 2] / 1e6, 3)
    return Figures(groups=groups, ratios={f"{name}, ms": cost for name, cost in medians.items()})


def _contenders() -> Iterator[MakeContender]:
    for name, hosts in FILES.items():
        path = FOLDER / f"{name}.yaml"
        yield _contender(f"load, {hosts} hosts", 1, partial(Scenario.load, path))
    yield _contender("generate", GENERATED, lambda: [*map(Scenario.generate, range(GENERATED))])


def _contender(name: str, scenarios: int, call: Callable[[], object]) -> MakeContender:
    def make(_stack: ExitStack) -> Contender:
        timer = time_calls(call)
        return Contender(name=name, settings={}, steps_per_call=scenarios, timer=timer)

    return make
