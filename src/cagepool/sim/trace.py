"""Recorded games played again by the core (docs/traces.md)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cagepool import _core
from cagepool.sim import dtypes
from cagepool.sim.names import (
    DECOYS,
    EDITIONS,
    EXPLOITS,
    HOSTS,
    RED_AGENTS,
    RED_KINDS,
    SUBNETS,
    TRACE_REDS,
    edition_code,
    red_class_name,
)

Trace: TypeAlias = dict[str, NDArray[Any]]

DRAWS = ("green_host", "red_target", "exploit", "detected", "esc_pick")


def replay(trace: Mapping[str, ArrayLike]) -> Trace:
    """Play recorded games again; only their random picks are taken from the recording.

    Needed are `ep_red`, `ep_green`, `blue_action` and the draws `green_host`, `red_target`,
    `exploit`, `detected` and `esc_pick`, of any integer type. `ep_edition` counts if it is there,
    and the names in `meta` say what the numbers of reds and editions mean. `ep_policy` is handed
    on. All other entries are ignored, so a whole recording may be given.

    Returns:
        Every field of docs/traces.md, in its type. The draws are those that the game asked for, so
        that a recording which holds others shows it there too.

    Raises:
        TypeError: a field is not of integers.
        ValueError: a field is missing, of the wrong shape or out of range, or a pick is not among
            its candidates; says which field, episode and step.
    """
    names = _names(trace)
    shape = _checked_shape(trace)
    blue_action = _field(trace, "blue_action", np.uint8, shape)
    draws = {name: _field(trace, name, np.int8, shape) for name in DRAWS}
    episodes = _episodes(trace, names, shape[0])
    starts = np.zeros(shape[0], dtypes.TRACE_EPISODE)
    starts["red"] = _codes(episodes, "ep_red", names["red_names"], _red_code)
    starts["green"] = episodes["ep_green"]
    starts["edition"] = _codes(episodes, "ep_edition", names["edition_names"], edition_code)
    inputs = np.zeros(shape, dtypes.TRACE_INPUT)
    inputs["blue_action"] = blue_action
    for name, values in draws.items():
        inputs[name] = values
    rows = np.zeros(blue_action.size, dtypes.TRACE_ROW)
    _core.replay(
        episodes=dtypes.as_bytes(starts),
        inputs=dtypes.as_bytes(inputs),
        rows=dtypes.as_bytes(rows),
    )
    result = {"meta": np.array(json.dumps(names)), **episodes, "blue_action": blue_action}
    for name in dtypes.TRACE_ROW.names or ():
        values = rows[name]
        result[name] = values.reshape(*shape, *values.shape[1:]).copy()
    return result


def _names(trace: Mapping[str, ArrayLike]) -> dict[str, Any]:
    """The name lists of a trace: our own, but the recording's where it numbers things itself."""
    names = {
        "edition": next(iter(EDITIONS)),
        "edition_names": list(EDITIONS),
        "red_names": list(TRACE_REDS),
        "policy_names": [],
        "hosts": HOSTS,
        "subnets": SUBNETS,
        "red_kinds": RED_KINDS,
        "exploits": EXPLOITS,
        "decoys": DECOYS,
    }
    if "meta" not in trace:
        return names
    meta = str(np.asarray(trace["meta"]))
    try:
        given = dict(json.loads(meta))
    except (ValueError, TypeError):
        raise ValueError(f"meta must be a JSON object, got {meta[:50]!r}") from None
    own = ("edition", "edition_names", "red_names", "policy_names")
    return names | {name: given[name] for name in own if name in given}


def _checked_shape(trace: Mapping[str, ArrayLike]) -> tuple[int, int]:
    missing = [n for n in ("blue_action", "ep_red", "ep_green", *DRAWS) if n not in trace]
    if missing:
        raise ValueError(f"a trace must have all inputs, got one without {', '.join(missing)}")
    shape = np.shape(trace["blue_action"])
    if len(shape) != 2:
        raise ValueError(f"blue_action must have shape (episodes, steps), got {shape}")
    return shape


def _episodes(trace: Mapping[str, ArrayLike], names: dict[str, Any], count: int) -> Trace:
    """The fields that say what is played in each episode."""
    defaults = {"ep_edition": _edition_number(names), "ep_policy": -1}
    return {
        name: np.full(count, defaults[name], np.int8)
        if name in defaults and name not in trace
        else _field(trace, name, np.int8, (count,))
        for name in ("ep_red", "ep_policy", "ep_green", "ep_edition")
    }


def _field(
    trace: Mapping[str, ArrayLike], name: str, dtype: type[np.integer], shape: tuple[int, ...]
) -> NDArray[Any]:
    """A copy of a field in the type that the core takes."""
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
    """The core's numbers for those of the recording, by the names behind both."""
    for episode, number in enumerate(episodes[field]):
        if not 0 <= number < len(names):
            raise ValueError(
                f"{field} of episode {episode} must be below {len(names)}, got {number}"
            )
    return np.array([code(names[number]) for number in episodes[field]], np.int8)


def _edition_number(names: dict[str, Any]) -> int:
    """What the recording's `meta` says of all episodes."""
    edition, known = names["edition"], names["edition_names"]
    if edition not in known:
        raise ValueError(f"edition in meta must be one of {', '.join(known)}; got {edition!r}")
    return int(known.index(edition))


def _red_code(name: str) -> int:
    return int(RED_AGENTS[red_class_name(name if name in RED_AGENTS else name.lower())])
