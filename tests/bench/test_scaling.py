"""The sweep says of every kind and number what the backends reach and what `auto` takes."""

import json
from typing import Any

import pytest

from cagepool.bench.measure import Pace
from cagepool.bench.scaling import KINDS, ScalingConfig, measure_scaling


@pytest.fixture(scope="module")
def written() -> Any:
    pace = Pace(repetitions=2, seconds=0.005)
    result = measure_scaling(ScalingConfig(pace=pace, sizes=(1, 3), most_pipes=1), lambda *_: None)
    return json.loads(json.dumps(result.as_dict()))


def rates_of(rows: Any) -> dict[str, float]:
    return {one["name"]: one["steps_per_second"] for one in rows}


def test_every_backend_is_measured_at_every_number_that_it_can_do(written: Any) -> None:
    names = {group: {one["name"] for one in rows} for group, rows in written["groups"].items()}
    assert names == {
        "CAGE-2 1": {"native", "sync", "workers", "pipes"},
        "CAGE-2 3": {"native", "sync", "workers"},
        "cheap 1": {"sync", "workers", "pipes"},
        "cheap 3": {"sync", "workers"},
        "costly 1": {"sync", "workers", "pipes"},
        "costly 3": {"sync", "workers"},
    }
    assert written["left_out"].startswith("pipes above 1 environments")


def test_efficiency_and_advice_are_those_of_the_rates_beside_them(written: Any) -> None:
    for kind in KINDS:
        said = written["scaling"][kind]
        rates = {
            size: {
                one["name"]: one["steps_per_second"] for one in written["groups"][f"{kind} {size}"]
            }
            for size in (1, 3)
        }
        for name, shares in said["efficiency"].items():
            assert shares["1"] == 1
            if "3" in shares:
                expected = rates[3][name] / rates[1][name] / 3
                assert shares["3"] == pytest.approx(expected, rel=0.01)  # rates are rounded
        last = said["recommendation"][-1]
        assert last["last"] == 3
        assert rates[3][last["backend"]] == max(rates[3].values())


def test_what_auto_takes_is_told_beside_the_best(written: Any) -> None:
    for group, rows in written["groups"].items():
        kind, size = group.rsplit(" ", 1)
        auto = written["scaling"][kind]["auto"][size]
        rates = rates_of(rows)
        said = written["ratios"][f"{group}: auto ({auto['takes']}) / best"]
        assert said == pytest.approx(rates[auto["takes"]] / rates[auto["best"]], rel=0.01)
    assert {one["takes"] for one in written["scaling"]["CAGE-2"]["auto"].values()} == {"native"}


def test_processor_time_counts_the_children(written: Any) -> None:
    # A costly step computes for 200 microseconds, wherever it does so.
    shares = written["scaling"]["costly"]["steps_per_cpu_second"]
    assert all(0 < rate < 1 / 190e-6 for of in shares.values() for rate in of.values())


def test_without_a_single_environment_there_is_nothing_to_scale_from() -> None:
    with pytest.raises(ValueError, match=r"^sizes must hold 1, got \(2, 5\)$"):
        ScalingConfig(sizes=(2, 5))
