"""The comparison of workers runs, and says what it has measured."""

import json
from contextlib import ExitStack

import pytest

from cagepool.bench.contenders import ray_actors
from cagepool.bench.dummy_envs import Probe
from cagepool.bench.measure import Pace
from cagepool.bench.workers import WorkersConfig, measure_workers


def test_every_group_is_measured_and_can_be_written_as_json() -> None:
    config = WorkersConfig(pace=Pace(repetitions=2, seconds=0.01), sizes=(1, 4), actors=0)
    groups = set()
    result = measure_workers(config, lambda group, *_: groups.add(group))
    assert groups == {"overhead 1", "overhead 4"}
    written = json.loads(json.dumps(result.as_dict()))
    assert {one["name"] for one in written["groups"]["overhead 4"]} >= {
        "ours, barrier",
        "ours, free",
        "Gymnasium, sync",
        "Gymnasium, pipes",
        "Gymnasium, pipes only",
    }
    assert written["start"]["workers"] == 2
    assert written["start"]["megabytes_per_worker"] > 1
    assert all(value > 0 for value in written["ratios"].values())


@pytest.mark.ray
def test_ray_takes_part_where_it_is_installed() -> None:
    pytest.importorskip("ray")
    with ExitStack() as stack:
        contender = ray_actors([Probe] * 2, stack)
        assert contender.steps == 2
        assert contender.clock(3) > 0
