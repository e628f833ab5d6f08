"""Barrier and free mode are compared with the rate at which nobody waits."""

import json

import pytest

from cagepool.bench.measure import Pace
from cagepool.bench.stragglers import StragglersConfig, measure_stragglers


def test_every_rate_is_told_as_a_share_of_the_ideal() -> None:
    config = StragglersConfig(pace=Pace(repetitions=2, seconds=0.02), waiting=2, working=2)
    result = measure_stragglers(config, lambda *_: None)
    written = json.loads(json.dumps(result.as_dict()))
    ideal = written["ideal_steps_per_second"]
    assert ideal["heavy tail"] == 2 / 0.005
    assert ideal["one slow"] == (1 + 1 / 5) / 0.005
    (pipes,) = (one for one in written["groups"]["one slow"] if one["name"] == "Gymnasium, pipes")
    share = written["ratios"]["one slow: Gymnasium, pipes, of the ideal rate"]
    rounding = 0.01
    assert share == pytest.approx(pipes["steps_per_second"] / ideal["one slow"], abs=rounding)
    assert "one slow, computing: ours, barrier, of the ideal rate" in written["ratios"]
