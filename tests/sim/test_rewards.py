"""Parts of the official reward on other networks; those of CAGE-2 are in tests/envs."""

import numpy as np
import pytest

from cagepool.sim import Batch, BatchConfig
from cagepool.sim.red_observation import red_observations
from cagepool.sim.rewards import REWARD_PARTS, reward_tables
from tests.scenarios.files import SAMPLES, sample


@pytest.mark.parametrize("name", SAMPLES)
def test_parts_sum_to_the_reward_on_every_network(name: str) -> None:
    scenarios = (sample(name), sample("tiny"))
    batch = Batch(20, BatchConfig(scenario=scenarios, red="given", autoreset="disabled"))
    batch.reset(np.arange(20, dtype=np.uint64))
    tables = reward_tables(batch.scenarios, batch.layout)
    rng = np.random.default_rng(0)
    losses = np.zeros(len(REWARD_PARTS), np.int64)
    for _ in range(80):
        blue = rng.integers(0, len(batch.layout.actions), 20)
        known = red_observations(batch).masks
        red = [int(rng.choice(np.flatnonzero(allowed))) for allowed in known]
        batch.step(np.where(rng.random(20) < 0.9, 0, blue), np.array(red))
        parts = tables.step_part_tenths(batch.true_state, batch.moves, batch.scenario_ids)
        np.testing.assert_array_equal(parts.sum(axis=1) / 10, batch.rewards)
        losses += parts.sum(axis=0)
    assert (losses[[1, 3]] < 0).all()


@pytest.mark.parametrize("name", ["tiny", "other_values", "other_images", "flat"])
def test_an_outage_costs_the_availability_of_its_host(name: str) -> None:
    scenario = sample(name)
    batch = Batch(10, BatchConfig(scenario=scenario, red="B_lineAgent", autoreset="disabled"))
    batch.reset(np.arange(10, dtype=np.uint64))
    tables = reward_tables(batch.scenarios, batch.layout)
    host = scenario.host_index("Op_Server0")
    for _ in range(60):
        batch.step(np.zeros(10, np.int64))
        parts = tables.step_part_tenths(batch.true_state, batch.moves, batch.scenario_ids)
        np.testing.assert_array_equal(parts.sum(axis=1) / 10, batch.rewards)
    impact = parts[:, REWARD_PARTS.index("impact")]
    assert {*impact.tolist()} <= {0, -scenario.availability_tenths[host]}
    assert impact.any()
