"""Replays recorded games in the core (docs/traces.md)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cagepool import _core
from cagepool.errors import short_repr
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.sim import dtypes
from cagepool.sim.names import (
    DECOYS,
    EDITIONS,
    EXPLOITS,
    RED_AGENTS,
    RED_KINDS,
    TRACE_REDS,
    edition_code,
    red_class_name,
)
from cagepool.sim.scenario_tables import core_batch, core_scenarios
from cagepool.types import Records

Trace: TypeAlias = dict[str, NDArray[Any]]

DRAWS = ("green_host", "red_target", "exploit", "detected", "esc_pick")
SCENARIO_INPUTS = ("decoy_pick", "red_kind")
"""Inputs of some recordings: the draw of Misinform, and the actions of a red that is given."""


def replay(trace: Mapping[str, ArrayLike], scenario: Scenario = CAGE2) -> Trace:
    """Replay recorded games: blue's actions and the random draws are those of the recording.

    A trace must have `ep_red`, `ep_green`, `blue_action` and the draws `green_host`, `red_target`,
    `exploit`, `detected` and `esc_pick`, of any integer type. It may have `ep_edition`,
    `ep_policy`, which is copied to the result, and `meta`, whose name lists define the numbers of
    red agents and editions. With Misinform among blue's actions it must have `decoy_pick`, and with
    episodes whose red is given, `red_kind`. Other entries are ignored, so that a whole recording
    may be given.

    Returns:
        All fields of docs/traces.md, in their types: those of CAGE-2 if the hosts are those of
        CAGE-2 and the recording is of CAGE-2 or has its fields (`s_ot`). The draws are those that
        the game used: a draw of the recording that the game did not use shows as a difference.

    Raises:
        TypeError: a field does not have integers.
        ValueError: a field is missing, has a wrong shape or is out of range, or a draw is not among
            its candidates; the message names field, episode and step.
    """
    has_cage2_form = scenario == CAGE2 or ("s_ot" in trace and scenario.hosts == CAGE2.hosts)
    names = _name_lists(trace, scenario)
    shape = _checked_shape(trace)
    inputs = _inputs(trace, shape, np.uint8 if scenario == CAGE2 else np.uint16)
    episodes = _episode_fields(trace, names, shape[0])
    episode_starts = np.zeros(shape[0], dtypes.TRACE_EPISODE)
    episode_starts["red"] = _codes(episodes, "ep_red", names["red_names"], _red_code)
    episode_starts["green"] = episodes["ep_green"]
    episode_starts["edition"] = _codes(episodes, "ep_edition", names["edition_names"], edition_code)
    is_given = bool(np.any(episode_starts["red"] == _core.Red.GIVEN))
    if is_given and "red_kind" not in trace:
        raise ValueError("a trace whose red is given must have red_kind, got none")
    rows = _replayed_rows(scenario, episode_starts, inputs, is_given=is_given)
    result = {"meta": np.array(json.dumps(names)), **episodes}
    result["blue_action"] = inputs["blue_action"].copy()
    for name, values in _columns(rows, scenario).items():
        result[name] = values.reshape(*shape, *values.shape[1:]).copy()
    return in_cage2_form(result) if has_cage2_form else result


def _inputs(
    trace: Mapping[str, ArrayLike], shape: tuple[int, int], action_type: type[np.integer]
) -> Records:
    """Blue's actions, the random draws and the actions of a given red."""
    inputs = np.zeros(shape, dtypes.TRACE_INPUT)
    inputs["blue_action"] = _field(trace, "blue_action", action_type, shape)
    for name in DRAWS:
        inputs[name] = _field(trace, name, np.int8, shape)
    for name in SCENARIO_INPUTS:
        inputs[name] = _field(trace, name, np.int8, shape) if name in trace else -1
    return inputs


def _replayed_rows(
    scenario: Scenario, episodes: Records, inputs: Records, *, is_given: bool
) -> Records:
    layout = Layout.of([scenario])
    rows = np.zeros(inputs.size, dtypes.TRACE_ROW)
    core_batch([scenario], layout, impacts_any_host=is_given).replay(
        **core_scenarios([scenario], layout),
        episodes=dtypes.as_bytes(episodes),
        inputs=dtypes.as_bytes(inputs),
        rows=dtypes.as_bytes(rows),
    )
    return rows


def _columns(rows: Records, scenario: Scenario) -> Trace:
    """Fields of rows, with the hosts and subnets of the scenario."""
    columns = {name: rows[name] for name in rows.dtype.names or ()}
    hosts = len(scenario.hosts)
    for name, values in columns.items():
        if values.shape[1:] == (_core.MAX_HOSTS,):
            columns[name] = values[:, :hosts]
    columns["obs"] = columns["obs"][:, : 4 * hosts]
    columns["s_known_net"] = columns["s_known_net"][:, : len(scenario.subnets)]
    columns["s_meander"] = columns["s_meander"].reshape(-1, 4, _core.MAX_HOSTS)[..., :hosts]
    for name in ("green_host", "red_target"):
        columns[name] = columns[name].astype(np.int16)
    return columns


def trace_row_dtype(scenario: Scenario) -> np.dtype[np.void]:
    """Type of a step with the fields of a trace of this scenario (docs/traces.md)."""
    columns = _columns(np.zeros(1, dtypes.TRACE_ROW), scenario)
    return np.dtype([(name, values.dtype, values.shape[1:]) for name, values in columns.items()])


def in_cage2_form(trace: Trace) -> Trace:
    """The trace of a scenario with the hosts of CAGE-2, with the fields of CAGE-2's traces."""
    server = CAGE2.host_index("Op_Server0")
    running, pid_known = (
        trace.pop(f"s_ot_{name}")[..., server] for name in ("running", "pid_known")
    )
    weights = (1 << np.arange(len(CAGE2.hosts))).astype(np.uint16)
    trace["s_ot"] = np.stack([running, pid_known, trace.pop("s_ot_known")], axis=-1)
    trace["s_meander"] = (trace["s_meander"] * weights).sum(-1, dtype=np.uint16)
    del trace["decoy_pick"]
    trace["blue_action"] = trace["blue_action"].astype(np.uint8)
    for name in ("green_host", "red_target"):
        trace[name] = trace[name].astype(np.int8)
    return trace


def _name_lists(trace: Mapping[str, ArrayLike], scenario: Scenario) -> dict[str, Any]:
    """Name lists of a trace: the recording's where its `meta` has them, else ours."""
    names = {
        "edition": next(iter(EDITIONS)),
        "edition_names": list(EDITIONS),
        "red_names": list(TRACE_REDS),
        "policy_names": [],
        "hosts": scenario.hosts,
        "subnets": scenario.subnets,
        "red_kinds": RED_KINDS,
        "exploits": EXPLOITS,
        "decoys": DECOYS,
    }
    if scenario != CAGE2:
        names |= {
            "scenario": scenario.name,
            "hash": scenario.hash,
            "actions": scenario.action_kinds,
            "decoys": (*DECOYS, "MisinformSmss", "MisinformSvchost"),
            "red_names": [*TRACE_REDS, "given"],
            "red_kinds": (*RED_KINDS, "InvalidAction"),
        }
    if "meta" not in trace:
        return names
    meta = str(np.asarray(trace["meta"]))
    try:
        recorded = dict(json.loads(meta))
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"meta must be a JSON object, got {meta[:50]!r}") from None
    from_recording = ("edition", "edition_names", "red_names", "policy_names")
    found = {name: recorded[name] for name in from_recording if name in recorded}
    for name, value in found.items():
        texts = [value] if name == "edition" else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            form = "a name" if name == "edition" else "a list of names"
            raise ValueError(f"{name} in meta must be {form}, got {short_repr(value)}")
    return names | found


def _checked_shape(trace: Mapping[str, ArrayLike]) -> tuple[int, int]:
    missing = [n for n in ("blue_action", "ep_red", "ep_green", *DRAWS) if n not in trace]
    if missing:
        raise ValueError(f"a trace must have all inputs, got one without {', '.join(missing)}")
    shape = np.shape(trace["blue_action"])
    if len(shape) != 2:
        raise ValueError(f"blue_action must have shape (episodes, steps), got {shape}")
    return shape


def _episode_fields(trace: Mapping[str, ArrayLike], names: dict[str, Any], count: int) -> Trace:
    """Fields that have one value per episode."""
    defaults = {"ep_edition": _default_edition(names), "ep_policy": -1}
    return {
        name: np.full(count, defaults[name], np.int8)
        if name in defaults and name not in trace
        else _field(trace, name, np.int8, (count,))
        for name in ("ep_red", "ep_policy", "ep_green", "ep_edition")
    }


def _field(
    trace: Mapping[str, ArrayLike], name: str, dtype: type[np.integer], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Copy a field into the type of the core."""
    values = np.asarray(trace[name])
    if values.dtype.kind not in "biu":
        raise TypeError(f"{name} must be of integers, got {values.dtype}")
    if values.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {values.shape}")
    limits = np.iinfo(dtype)
    if values.size and not limits.min <= values.min() <= values.max() <= limits.max:
        raise ValueError(
            f"{name} must be from {limits.min} to {limits.max}, "
            f"got {values.min()} to {values.max()}"
        )
    return values.astype(dtype, order="C")


def _codes(
    episodes: Trace, field: str, names: list[str], code: Callable[[str], int]
) -> NDArray[np.int8]:
    """Translate numbers of the recording to those of the core, by name."""
    for episode, number in enumerate(episodes[field]):
        if not 0 <= number < len(names):
            raise ValueError(
                f"{field} of episode {episode} must be below {len(names)}, got {number}"
            )
    return np.array([code(names[number]) for number in episodes[field]], np.int8)


def _default_edition(names: dict[str, Any]) -> int:
    """Number of the edition in `meta`, for episodes without `ep_edition`."""
    edition, known = names["edition"], names["edition_names"]
    if edition not in known:
        raise ValueError(f"edition in meta must be one of {', '.join(known)}; got {edition!r}")
    return int(known.index(edition))


def _red_code(name: str) -> int:
    return int(RED_AGENTS[red_class_name(name if name in RED_AGENTS else name.lower())])
