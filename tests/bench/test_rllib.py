"""The bench of RLlib measures pools beside processes."""

import pytest

from cagepool.bench.measure import Pace
from cagepool.bench.rllib import RllibConfig, measure_rllib


@pytest.mark.ray
def test_pools_and_processes_take_turns_at_collecting_and_at_training() -> None:
    pace = Pace(repetitions=2, seconds=0.01)
    heard: list[tuple[str, int, int]] = []
    config = RllibConfig(pace=pace, games=4, steps=5, runners=(0,), process_runners=0)

    result = measure_rllib(config, lambda *told: heard.append(told))

    pools, processes = "no env runners, a pool each", "no env runners, a process a game"
    for group in ("collection", "training"):
        members = {one.name: one for one in result.groups[group]}
        assert list(members) == [pools, processes]
        rates = [one.steps_per_second for one in members.values()]
        ratio = result.ratios[f"{group}: {pools} / a process a game"]
        assert ratio == pytest.approx(rates[0] / rates[1], abs=5e-4)  # rounded
        assert [told for told in heard if told[0] == group][-1] == (group, 4, 4)
    assert result.as_dict()["memory_of_env_runners"] == {pools: {}, processes: {}}
