"""Bench of networks, and the plot of a step's cost."""

from benchmarks import network_plot
from benchmarks.suites.networks import NetworksConfig, measure_networks
from cagepool.bench.engine import ATTACKERS, NETWORK_SIZES
from cagepool.bench.measure import Pace
from cagepool.bench.schema import BenchResult


def test_every_network_is_timed_and_drawn() -> None:
    pace = Pace(repetitions=2, seconds=0.001)
    figures = measure_networks(NetworksConfig(pace=pace), lambda *_: None)
    timed = {
        (one.settings["red"], one.settings["hosts"])
        for one in figures.groups["networks"]
        if one.settings["network"] == "generated"
    }
    assert timed == {(red, hosts) for red in ATTACKERS for hosts in NETWORK_SIZES}
    assert len(figures.ratios) == 2 * len(ATTACKERS)
    result = BenchResult(
        bench="networks", machine={}, load_after=0.0, groups=figures.groups, ratios=figures.ratios
    )
    (axes,) = network_plot.draw(result).axes
    legend = axes.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} >= {*ATTACKERS}
