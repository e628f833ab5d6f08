"""What is measured of the engine, and what is made of it."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from cagepool.bench import engine
from cagepool.bench.engine import ALIGNMENT, ATTACKERS, ORDER, EngineConfig, EngineResult
from cagepool.bench.measure import Contender, Measurement, Pace

GROUPS = {"batch", "vector", "call", "threads", "compliance", "options", "limit", "busy"}


def at(nanoseconds: float, name: str = "Batch.step", **settings: Any) -> Measurement:
    """A measurement of one step a call."""
    seconds = [nanoseconds * factor / 1e9 for factor in (1, 0.5, 4)]
    return Measurement(name=name, settings=settings, steps=1, calls=1, seconds=seconds)


COMPLIANCE = [
    ("Batch.step", 100, 50.0),
    ("Batch.step", 4096, 40.0),
    ("VectorEnv.step", 100, 100.0),
    ("VectorEnv.step", 4096, 80.0),
]


def doctored() -> EngineResult:
    groups = {
        "call": [at(220, games=1), at(120, games=2)],
        "threads": [
            *(at(40, games=4096, threads=1), at(25, games=4096, threads=2)),
            *(at(60, games=65536, threads=1), at(30, games=65536, threads=2)),
        ],
        "busy": [at(40, games=4096, threads=1), at(50, games=4096, threads=2)],
        "compliance": [
            judged
            for name, games, cost in COMPLIANCE
            for judged in (
                at(cost, name, games=games),
                at(cost + 1, name, games=games, order=ORDER),
                at(cost + 2, name, games=games, order=ORDER, alignment=ALIGNMENT),
            )
        ],
        "limit": [
            *(at(40, games=4096), at(10, "outputs only", games=4096)),
            *(at(50, games=65536), at(30, "outputs only", games=65536)),
        ],
        "vector": [
            measured
            for red in ATTACKERS
            for games, extra in ((1, 2500), (100, 25), (4096, 1))
            for measured in (
                at(40, games=games, red=red),
                at(40 + extra, "VectorEnv.step", games=games, red=red),
            )
        ],
    }
    # The order within a group means nothing.
    groups = {name: group[::-1] for name, group in groups.items()}
    return EngineResult(machine={"load": 0.5}, load_after=1.5, groups=groups)


def test_ratios_are_those_of_medians_within_a_group() -> None:
    assert doctored().ratios == {
        "nanoseconds of a Batch.step call": 200,
        "2 threads against 1, 4096 games": 1.6,
        "2 threads against 1, 65536 games": 2.0,
        "2 threads against 1, 4096 games, beside a busy core": 0.8,
        "Batch.step with compliance against none, 100 games": 1.02,
        "Batch.step with compliance and alignment, 100 games": 1.04,
        "Batch.step with compliance against none, 4096 games": 1.025,
        "Batch.step with compliance and alignment, 4096 games": 1.05,
        "VectorEnv.step with compliance against none, 100 games": 1.01,
        "VectorEnv.step with compliance and alignment, 100 games": 1.02,
        "VectorEnv.step with compliance against none, 4096 games": 1.012,
        "VectorEnv.step with compliance and alignment, 4096 games": 1.025,
        "writing outputs against a step, 4096 games": 0.25,
        "writing outputs against a step, 65536 games": 0.6,
        **{
            f"microseconds of VectorEnv.step over Batch.step, {games} games, {red}": extra
            for games, extra in ((1, 2.5), (100, 2.5), (4096, 4.096))
            for red in ATTACKERS
        },
    }


def test_other_builds_and_cyborg_have_ratios_where_they_were_measured() -> None:
    result = doctored()
    result.groups["build"] = [
        measured
        for games in (100, 4096)
        for red, cost in zip(ATTACKERS, (30, 20), strict=True)
        for measured in (
            at(cost, "other build", games=games, red=red),
            at(40, games=games, red=red),
        )
    ]
    result.groups["cyborg"] = [
        measured
        for red in ATTACKERS
        for measured in (at(4e6, "CybORG", games=1, red=red), at(40, games=4096, red=red))
    ]
    result.groups["minicage"] = [
        measured
        for red in ATTACKERS
        for measured in (at(8e3, "MiniCAGE", games=1000, red=red), at(40, games=1000, red=red))
    ]

    added = {name: value for name, value in result.ratios.items() if name not in doctored().ratios}

    assert added == {
        "this build against the other, 100 games, B_lineAgent": 0.75,
        "this build against the other, 100 games, RedMeanderAgent": 0.5,
        "this build against the other, 4096 games, B_lineAgent": 0.75,
        "this build against the other, 4096 games, RedMeanderAgent": 0.5,
        "against CybORG, 4096 games, B_lineAgent": 100_000,
        "against CybORG, 4096 games, RedMeanderAgent": 100_000,
        "against MiniCAGE, 1000 games, B_lineAgent": 200,
        "against MiniCAGE, 1000 games, RedMeanderAgent": 200,
    }


def test_a_cost_is_that_of_one_contender() -> None:
    result = doctored()
    assert result.cost("limit", "outputs only", games=4096) == pytest.approx(10)
    with pytest.raises(ValueError, match="unpack"):
        result.cost("limit", games=1)
    with pytest.raises(ValueError, match="unpack"):
        result.cost("limit")


def test_the_json_form_holds_figures_and_what_they_were_measured_on() -> None:
    form = json.loads(json.dumps(doctored().as_dict()))

    assert (form["machine"], form["load_after"]) == ({"load": 0.5}, 1.5)
    assert form["bytes_per_game"] <= 100
    assert form["groups"]["call"][1]["nanoseconds_per_step"]["median"] == 220
    assert form["ratios"] == doctored().ratios


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call every clock once a turn, instead of for a while."""

    def once(
        contenders: Iterable[Contender], pace: Pace, progress: Callable[[], object]
    ) -> list[Measurement]:
        measurements = []
        for one in contenders:
            assert one.clock(1) > 0
            for _ in range(pace.repetitions):
                progress()
            measurements.append(at(10.0, one.name, **one.settings))
        return measurements

    monkeypatch.setattr(engine, "compare", once)


@pytest.mark.usefixtures("hurried")
def test_every_group_is_measured_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cagepool.bench.subprocess_timer.has_cyborg", lambda _python: False)
    told: list[tuple[str, int, int]] = []

    result = engine.measure_engine(EngineConfig(), lambda *turn: told.append(turn))

    assert result.groups.keys() == GROUPS
    assert {group for group, _, _ in told} == GROUPS - {"busy"}
    assert [done for _, done, _ in told] == list(range(1, len(told) + 1))
    assert {turns for _, _, turns in told} == {len(told)}
    assert set(result.ratios) == set(doctored().ratios)
    played = {(one.settings["games"], one.settings["red"]) for one in result.groups["batch"]}
    assert {(games, red) for games in (100, 4096) for red in ATTACKERS} <= played


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"other_build": Path("no-such-folder")}, "another build of cagepool, got no-such-folder"),
        ({"cyborg_python": "no-such-python"}, "can import CybORG, got no-such-python"),
        ({"minicage": Path("no-such-folder")}, "package mini_CAGE, got no-such-folder"),
    ],
    ids=["build", "CybORG", "MiniCAGE"],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_measured(
    settings: dict[str, Any], sentence: str
) -> None:
    told: list[object] = []
    with pytest.raises(ValueError, match=sentence):
        engine.measure_engine(EngineConfig(**settings), lambda *turn: told.append(turn))
    assert told == []
