"""Harness: damaged recordings are refused with a sentence, or replayed without harm."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from cagepool import _core
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim import dtypes, replay
from cagepool.sim.scenario_tables import core_scenarios
from fuzz.games import networks
from fuzz.outcomes import refusal_allowed
from fuzz.values import EXTREMES, chance, damaged_array, junk, pick, strange_array

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
STRUCTS = ("TRACE_EPISODE", "TRACE_INPUT", "TRACE_ROW")
METAS = (
    "",
    "{}",
    "[]",
    "null",
    '{"red_names": 3}',
    '{"red_names": ["x"]}',
    '{"edition": []}',
    "[" * 5000,
)


@cache
def recordings() -> list[tuple[Scenario, dict[str, Any]]]:
    """All golden traces with their scenarios."""
    by_name = {network.name: network for network in networks()}
    traces = []
    for path in sorted((*GOLDEN.glob("*.npz"), *GOLDEN.glob("traces_scenarios/*.npz"))):
        with np.load(path) as arrays:
            traces.append((by_name.get(path.stem.rpartition("_")[0], CAGE2), dict(arrays)))
    return traces


def run_case(rng: Generator) -> None:
    """Replay a few recorded episodes with some fields damaged, or bytes that are no recording."""
    if chance(rng, 0.2):
        return _replay_bytes(rng)
    if chance(rng, 0.2):
        return _replay_tables(rng)
    scenario, whole = recordings()[rng.integers(len(recordings()))]
    trace = _some_episodes(rng, whole)
    for _ in range(int(rng.integers(4))):
        _damage_field(rng, trace)
    with refusal_allowed((ValueError, TypeError)):
        replay(trace, scenario=pick(rng, networks()) if chance(rng, 0.1) else scenario)
    return None


def _some_episodes(rng: Generator, trace: dict[str, Any]) -> dict[str, Any]:
    episodes = rng.integers(len(trace["ep_red"]), size=rng.integers(4))
    steps = int(rng.integers(1, 30))
    return {
        name: values
        if values.ndim == 0
        else values[episodes].copy()
        if values.ndim == 1
        else values[episodes, :steps].copy()
        for name, values in trace.items()
        if len(values.shape) == 0 or len(values) == len(trace["ep_red"])
    }


def _damage_field(rng: Generator, trace: dict[str, Any]) -> None:
    if not trace:
        return
    name = pick(rng, sorted(trace))
    kind = rng.integers(6)
    values = trace[name]
    if kind == 0:
        del trace[name]
    elif kind == 1:
        trace[name] = junk(rng)
    elif kind == 2 and "meta" in trace:
        trace["meta"] = np.array(pick(rng, METAS))
    elif isinstance(values, np.ndarray) and values.ndim and values.dtype.kind in "iu":
        if kind == 3 or not values.size:
            trace[name] = damaged_array(rng, values)
            return
        wide = values.astype(np.int64)
        small = chance(rng, 0.7)
        value = int(rng.integers(-2, 20)) if small else pick(rng, EXTREMES[:10])
        wide.flat[int(rng.integers(wide.size))] = value
        trace[name] = wide


def _replay_bytes(rng: Generator) -> None:
    """Call the core itself, with rows of random bytes."""
    arrays: list[Any] = []
    for struct in STRUCTS:
        rows = int(rng.integers(5))
        width = getattr(dtypes, struct).itemsize
        limit = int(pick(rng, (2, 13, 256)))
        arrays.append(rng.integers(limit, size=(rows, width), dtype=np.uint8))
        if chance(rng, 0.1):
            arrays[-1] = strange_array(rng)
    episodes, inputs, rows_out = arrays
    with refusal_allowed((ValueError, TypeError)):
        _core.CompiledBatch.replay(
            **core_scenarios([CAGE2], Layout.of([CAGE2])),
            episodes=episodes,
            inputs=inputs,
            rows=rows_out,
        )


def _replay_tables(rng: Generator) -> None:
    """Call the core itself, with tables of a network in which bytes are changed."""
    scenario = pick(rng, networks())
    layout = Layout.of([scenario])
    arguments = core_scenarios([scenario], layout)
    tables = arguments["scenarios"] = arguments["scenarios"].copy()
    for _ in range(int(rng.integers(1, 6))):
        tables[0, rng.integers(tables.size)] = int(rng.integers(256))
    episodes = np.zeros(2, dtypes.TRACE_EPISODE)
    episodes["red"] = rng.integers(4, size=2)
    inputs = np.zeros((2, 30), dtypes.TRACE_INPUT)
    inputs["blue_action"] = rng.integers(len(layout.actions), size=inputs.shape)
    for name in ("red_kind", "red_target", "exploit", "detected", "esc_pick", "decoy_pick"):
        inputs[name] = rng.integers(-1, 7, size=inputs.shape)
    rows = np.zeros(inputs.size, dtypes.TRACE_ROW)
    with refusal_allowed((ValueError, TypeError)):
        _core.TableBatch.replay(
            **arguments,
            episodes=dtypes.as_bytes(episodes),
            inputs=dtypes.as_bytes(inputs),
            rows=dtypes.as_bytes(rows),
        )
