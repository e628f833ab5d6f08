"""RLlib on native pools beside RLlib with one process per game."""

import pytest

from benchmarks.suites.rllib_training import RllibConfig, measure_rllib
from cagepool.bench.measure import Pace
from cagepool.bench.schema import rates


@pytest.mark.ray
@pytest.mark.soak
def test_pools_and_processes_are_measured_interleaved() -> None:
    pace = Pace(repetitions=2, seconds=0.01)
    progress: list[tuple[str, int, int]] = []
    config = RllibConfig(pace=pace, games=4, steps=5, runners=(0,), process_runners=0)

    figures = measure_rllib(config, lambda *done: progress.append(done))

    pools, processes = "no env runners, native pools", "no env runners, one process per game"
    for group in ("collection", "training"):
        rate = rates(figures.groups[group])
        assert list(rate) == [pools, processes]
        ratio = figures.ratios[f"{group}: {pools} / one process per game"]
        assert ratio == round(rate[pools] / rate[processes], 3)
        assert [done for done in progress if done[0] == group][-1] == (group, 4, 4)
    assert figures.facts["memory_of_env_runners"] == {pools: {}, processes: {}}
