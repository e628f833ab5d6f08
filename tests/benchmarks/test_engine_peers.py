"""Engine beside other engines."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.suites.engine_peers import EnginePeersConfig, measure_engine_peers, peer_ratios
from cagepool.bench.engine import ATTACKERS
from cagepool.bench.schema import Measurement
from tests.bench.results import row


def at(nanoseconds: float, name: str = "Batch.step", **settings: str | float) -> Measurement:
    return row([nanoseconds] * 3, name, **settings)


def test_ratios_are_costs_divided_by_that_of_this_build() -> None:
    groups = {
        "build": [
            contender
            for games in (100, 4096)
            for red, cost in zip(ATTACKERS, (30, 20), strict=True)
            for contender in (
                at(cost, "other build", games=games, red=red),
                at(40, games=games, red=red),
            )
        ],
        "cyborg": [
            contender
            for red in ATTACKERS
            for contender in (at(4e6, "CybORG", games=1, red=red), at(40, games=4096, red=red))
        ],
        "minicage": [
            contender
            for red in ATTACKERS
            for contender in (at(8e3, "MiniCAGE", games=1000, red=red), at(40, games=1000, red=red))
        ],
    }
    assert peer_ratios(groups) == {
        "other build / this build, 100 games, B_lineAgent": 0.75,
        "other build / this build, 100 games, RedMeanderAgent": 0.5,
        "other build / this build, 4096 games, B_lineAgent": 0.75,
        "other build / this build, 4096 games, RedMeanderAgent": 0.5,
        "CybORG / this build, 4096 games, B_lineAgent": 100_000,
        "CybORG / this build, 4096 games, RedMeanderAgent": 100_000,
        "MiniCAGE / this build, 1000 games, B_lineAgent": 200,
        "MiniCAGE / this build, 1000 games, RedMeanderAgent": 200,
    }
    assert peer_ratios({}) == {}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"other_build": Path("no-such-folder")}, "a build of cagepool, got no-such-folder"),
        ({"cyborg_python": "no-such-python"}, "can import CybORG, got no-such-python"),
        ({"minicage": Path("no-such-folder")}, "package mini_CAGE, got no-such-folder"),
    ],
    ids=["build", "CybORG", "MiniCAGE"],
)
def test_a_missing_peer_is_refused_before_anything_is_measured(
    settings: dict[str, Any], sentence: str
) -> None:
    progress: list[object] = []
    with pytest.raises(ValueError, match=sentence):
        measure_engine_peers(EnginePeersConfig(**settings), lambda *done: progress.append(done))
    assert progress == []
