import json

import pytest

from cagepool.bench.measure import Pace
from cagepool.bench.train import BenchTrainConfig, BenchTrainResult, measure_training


@pytest.fixture(scope="module")
def result() -> BenchTrainResult:
    pace = Pace(repetitions=2, seconds=0.001)
    config = BenchTrainConfig(pace=pace, games=4, steps=5, sb3_minibatches=(10,))
    turns: list[tuple[str, int, int]] = []
    measured = measure_training(config, lambda *turn: turns.append(turn))
    assert [turn[1] for turn in turns if turn[0] == "training"] == [*range(19)]
    return measured


def test_collection_is_measured_with_and_without_memory(result: BenchTrainResult) -> None:
    assert list(result.rates("collection")) == ["52 inputs, 1 thread", "all inputs, 1 thread"]


def test_ours_and_theirs_take_turns(result: BenchTrainResult) -> None:
    names = list(result.rates("training"))
    assert names[:3] == ["52 inputs, 1 thread", "52 inputs, 2 threads", "52 inputs, --async"]
    assert names[-2:] == ["SB3, minibatch 10, 1 threads", "SB3, minibatch 10, 2 threads"]


def test_the_claim_is_the_ratio_of_the_best_of_both(result: BenchTrainResult) -> None:
    rates = result.rates("training")
    ours = max(rate for name, rate in rates.items() if name.startswith("52"))
    theirs = max(rate for name, rate in rates.items() if name.startswith("SB3"))
    claim = result.ratios["our best / SB3 at its best minibatch size"]
    assert claim == round(ours / theirs, 2)


def test_an_order_is_measured_beside_none(result: BenchTrainResult) -> None:
    rates = result.rates("training")
    gain = rates["all inputs, 2 threads, with an order"] / rates["all inputs, 2 threads"]
    assert result.ratios["with an order against without"] == round(gain, 3)


def test_the_result_is_json(result: BenchTrainResult) -> None:
    content = json.loads(json.dumps(result.as_dict()))
    assert content["groups"]["training"][0]["epochs"] == 4
    assert content["machine"]["torch"].startswith("2.")
