"""Cost of a step by scenario, and the plot of a step's cost."""

from benchmarks import scenario_plot
from benchmarks.suites.scenario_cost import ScenarioCostConfig, measure_scenario_cost
from cagepool.bench.engine import ATTACKERS, SCENARIO_SIZES
from cagepool.bench.measure import Pace
from cagepool.bench.schema import BenchResult


def test_every_network_is_timed_and_drawn() -> None:
    pace = Pace(repetitions=2, seconds=0.001)
    figures = measure_scenario_cost(ScenarioCostConfig(pace=pace), lambda *_: None)
    timed = {
        (one.settings["red"], one.settings["hosts"])
        for one in figures.groups["scenarios"]
        if one.settings["scenario"] == "generated"
    }
    assert timed == {(red, hosts) for red in ATTACKERS for hosts in SCENARIO_SIZES}
    assert len(figures.ratios) == 2 * len(ATTACKERS)
    result = BenchResult(
        bench="scenario_cost",
        machine={},
        load_after=0.0,
        groups=figures.groups,
        ratios=figures.ratios,
    )
    (axes,) = scenario_plot.draw(result).axes
    legend = axes.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} >= {*ATTACKERS}
