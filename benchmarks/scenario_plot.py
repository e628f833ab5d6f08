"""Draw docs/scenario-cost.svg, a step's cost by number of hosts, from results/scenario_cost.json.

Run it as python -m benchmarks.scenario_plot.
"""

from pathlib import Path

from matplotlib.figure import Figure

from cagepool.bench.engine import ATTACKERS, MANY, SCENARIO_SIZES
from cagepool.bench.schema import BenchResult, find, read_result

RESULT = Path(__file__).parent / "results" / "scenario_cost.json"
PLOT = Path(__file__).parents[1] / "docs" / "scenario-cost.svg"


def main() -> None:
    """Draw the plot."""
    draw(read_result(RESULT)).savefig(PLOT, metadata={"Date": None})


def draw(result: BenchResult) -> Figure:
    """One curve per red, and CAGE-2 compiled and by its tables as points."""
    figure = Figure((7, 3.4), layout="constrained")
    axes = figure.subplots()
    group = result.groups["scenarios"]
    for number, red in enumerate(ATTACKERS):
        costs = [
            find(
                group, "Batch.step", red=red, scenario="generated", hosts=hosts
            ).nanoseconds_per_step
            for hosts in SCENARIO_SIZES
        ]
        low, high = zip(*(cost.quartiles for cost in costs), strict=True)
        color = f"C{number}"
        axes.plot(SCENARIO_SIZES, [cost.median for cost in costs], "o-", color=color, label=red)
        axes.fill_between(SCENARIO_SIZES, low, high, color=color, alpha=0.2)
        for scenario, marker in (("CAGE-2, compiled", "s"), ("CAGE-2, tables", "D")):
            found = find(group, "Batch.step", red=red, scenario=scenario)
            cost = found.nanoseconds_per_step.median
            hosts = int(found.settings["hosts"])
            axes.plot([hosts], [cost], marker, color=color, label=f"{scenario}, {red}")
    axes.set_xlabel("hosts")
    axes.set_ylabel(f"ns per step, {MANY:,} games, one core")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    return figure


if __name__ == "__main__":
    main()
