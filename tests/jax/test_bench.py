"""The games in JAX beside the core."""

from itertools import product

import pytest

from cagepool.bench.engine import ATTACKERS
from cagepool.bench.jax import DTYPES, JaxConfig, measure_jax
from cagepool.bench.measure import Pace


@pytest.mark.soak
def test_every_game_is_measured_in_the_core_and_in_jax() -> None:
    config = JaxConfig(pace=Pace(repetitions=2, seconds=0.01), sizes=(4,))

    figures = measure_jax(config, lambda *_: None)

    names = [measurement.name for measurement in figures.groups["4 games"]]
    pairs = list(product(ATTACKERS, DTYPES))
    assert names.count("jax") == len(pairs) == len(names) - names.count("jax")
    assert list(figures.ratios) == [f"jax / core, 4 games, {red}, {dtype}" for red, dtype in pairs]
    assert figures.facts.keys() == {"device", "jax", "clock"}
