"""Bench of the engine: what is measured, and the ratios."""

from collections.abc import Callable, Iterable

import pytest

from cagepool.bench import engine
from cagepool.bench.engine import ALIGNMENT, ATTACKERS, ORDER, EngineConfig, engine_ratios
from cagepool.bench.measure import Contender, Pace
from cagepool.bench.schema import Groups, Measurement
from tests.bench.results import row

GROUPS = {
    *("batch", "vector", "call", "threads", "compliance", "options", "scenarios", "belief"),
    *("limit", "busy"),
}


def at(nanoseconds: float, name: str = "Batch.step", **settings: str | float) -> Measurement:
    """A contender with this median cost."""
    return row([nanoseconds * factor for factor in (1, 0.5, 4)], name, **settings)


COMPLIANCE = [
    ("Batch.step", 100, 50.0),
    ("Batch.step", 4096, 40.0),
    ("VectorEnv.step", 100, 100.0),
    ("VectorEnv.step", 4096, 80.0),
]


def invented_groups() -> Groups:
    groups = {
        "call": [at(220, games=1), at(120, games=2)],
        "threads": [
            *(at(40, games=4096, threads=1), at(25, games=4096, threads=2)),
            *(at(60, games=65536, threads=1), at(30, games=65536, threads=2)),
        ],
        "busy": [at(40, games=4096, threads=1), at(50, games=4096, threads=2)],
        "compliance": [
            contender
            for name, games, cost in COMPLIANCE
            for contender in (
                at(cost, name, games=games),
                at(cost + 1, name, games=games, order=ORDER),
                at(cost + 2, name, games=games, order=ORDER, alignment=ALIGNMENT),
            )
        ],
        "limit": [
            *(at(40, games=4096), at(10, "outputs only", games=4096)),
            *(at(50, games=65536), at(30, "outputs only", games=65536)),
        ],
        "scenarios": [
            contender
            for red in ATTACKERS
            for contender in (
                at(20, red=red, scenario="CAGE-2, compiled"),
                at(50, red=red, scenario="CAGE-2, tables"),
                at(40, red=red, scenario="one of many"),
                at(50, red=red, scenario="1,000 different"),
            )
        ],
        "vector": [
            contender
            for red in ATTACKERS
            for games, extra in ((1, 2500), (100, 25), (4096, 1))
            for contender in (
                at(40, games=games, red=red),
                at(40 + extra, "VectorEnv.step", games=games, red=red),
            )
        ],
    }
    # The order within a group has no meaning.
    return {name: group[::-1] for name, group in groups.items()}


def test_ratios_are_those_of_medians_within_a_group() -> None:
    assert engine_ratios(invented_groups()) == {
        "nanoseconds per Batch.step call": 200,
        "speed-up with 2 threads, 4096 games": 1.6,
        "speed-up with 2 threads, 65536 games": 2.0,
        "speed-up with 2 threads, 4096 games, beside a busy core": 0.8,
        "Batch.step, cost with compliance / without, 100 games": 1.02,
        "Batch.step, cost with alignment / without, 100 games": 1.04,
        "Batch.step, cost with compliance / without, 4096 games": 1.025,
        "Batch.step, cost with alignment / without, 4096 games": 1.05,
        "VectorEnv.step, cost with compliance / without, 100 games": 1.01,
        "VectorEnv.step, cost with alignment / without, 100 games": 1.02,
        "VectorEnv.step, cost with compliance / without, 4096 games": 1.012,
        "VectorEnv.step, cost with alignment / without, 4096 games": 1.025,
        "cost of writing outputs / step, 4096 games": 0.25,
        "cost of writing outputs / step, 65536 games": 0.6,
        **{f"cost of CAGE-2 by tables / compiled, {red}": 2.5 for red in ATTACKERS},
        **{f"rate of 1,000 scenarios / one, {red}": 0.8 for red in ATTACKERS},
        **{
            f"microseconds per call of VectorEnv.step above Batch.step, {games} games, {red}": extra
            for games, extra in ((1, 2.5), (100, 2.5), (4096, 4.096))
            for red in ATTACKERS
        },
    }


@pytest.fixture
def one_call_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call every timer once instead of measuring."""

    def measure(
        contenders: Iterable[Contender], pace: Pace, on_repetition: Callable[[], object]
    ) -> list[Measurement]:
        measured = []
        for contender in contenders:
            assert contender.timer(1) > 0
            for _ in range(pace.repetitions):
                on_repetition()
            measured.append(at(10.0, contender.name, **contender.settings))
        return measured

    monkeypatch.setattr(engine, "measure_interleaved", measure)


@pytest.mark.usefixtures("one_call_each")
def test_every_group_is_measured_and_reported() -> None:
    progress: list[tuple[str, int, int]] = []

    figures = engine.measure_engine(EngineConfig(), lambda *done: progress.append(done))

    assert figures.groups.keys() == GROUPS
    assert {group for group, _, _ in progress} == GROUPS - {"busy"}
    assert [done for _, done, _ in progress] == list(range(1, len(progress) + 1))
    assert {total for _, _, total in progress} == {len(progress)}
    assert figures.ratios.keys() == engine_ratios(invented_groups()).keys()
    assert figures.facts["bytes_per_game"] <= 100
    played = {(one.settings["games"], one.settings["red"]) for one in figures.groups["batch"]}
    assert {(games, red) for games in (100, 4096) for red in ATTACKERS} <= played
