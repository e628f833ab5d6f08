"""The bench of Ray measures training with actors beside training without."""

import pytest

from cagepool.bench.cluster import ClusterConfig, measure_cluster
from cagepool.bench.measure import Pace
from tests.train.cluster.nodes import loose_ends


@pytest.mark.ray
def test_actors_and_none_take_turns_at_collecting_and_at_training() -> None:
    pace = Pace(repetitions=2, seconds=0.01)
    heard: list[tuple[str, int, int]] = []
    config = ClusterConfig(pace=pace, games=4, steps=5, actors=(1,))

    with loose_ends():
        result = measure_cluster(config, lambda *told: heard.append(told))

    rates = {one.name: one.steps_per_second for one in result.groups["training"]}
    assert [*rates] == ["no Ray", "no Ray, --async", "1 actor", "1 actor, --async"]
    assert [one.name for one in result.groups["collection"]] == ["no Ray", "1 actor"]
    ratio = result.ratios["training: 1 actor, --async / no Ray, --async"]
    expected = rates["1 actor, --async"] / rates["no Ray, --async"]
    assert ratio == pytest.approx(expected, abs=5e-4)  # rounded
    assert heard[-1] == ("training", 8, 8)
