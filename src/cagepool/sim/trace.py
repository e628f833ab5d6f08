"""Replays recorded games in the core (docs/traces.md)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cagepool import _core
from cagepool.errors import short_repr
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
    """Replay recorded games: blue's actions and the random draws are those of the recording.

    A trace must have `ep_red`, `ep_green`, `blue_action` and the draws `green_host`, `red_target`,
    `exploit`, `detected` and `esc_pick`, of any integer type. It may have `ep_edition`,
    `ep_policy`, which is copied to the result, and `meta`, whose name lists define the numbers of
    red agents and editions. Other entries are ignored, so that a whole recording may be given.

    Returns:
        All fields of docs/traces.md, in their types. The draws are those that the game used: a
        draw of the recording that the game did not use shows as a difference.

    Raises:
        TypeError: a field does not have integers.
        ValueError: a field is missing, has a wrong shape or is out of range, or a draw is not among
            its candidates; the message names field, episode and step.
    """
    names = _name_lists(trace)
    shape = _checked_shape(trace)
    blue_action = _field(trace, "blue_action", np.uint8, shape)
    draws = {name: _field(trace, name, np.int8, shape) for name in DRAWS}
    episodes = _episode_fields(trace, names, shape[0])
    episode_starts = np.zeros(shape[0], dtypes.TRACE_EPISODE)
    episode_starts["red"] = _codes(episodes, "ep_red", names["red_names"], _red_code)
    episode_starts["green"] = episodes["ep_green"]
    episode_starts["edition"] = _codes(episodes, "ep_edition", names["edition_names"], edition_code)
    inputs = np.zeros(shape, dtypes.TRACE_INPUT)
    inputs["blue_action"] = blue_action
    for name, values in draws.items():
        inputs[name] = values
    rows = np.zeros(blue_action.size, dtypes.TRACE_ROW)
    _core.replay(
        episodes=dtypes.as_bytes(episode_starts),
        inputs=dtypes.as_bytes(inputs),
        rows=dtypes.as_bytes(rows),
    )
    result = {"meta": np.array(json.dumps(names)), **episodes, "blue_action": blue_action}
    for name in dtypes.TRACE_ROW.names or ():
        values = rows[name]
        result[name] = values.reshape(*shape, *values.shape[1:]).copy()
    return result


def _name_lists(trace: Mapping[str, ArrayLike]) -> dict[str, Any]:
    """Name lists of a trace: the recording's where its `meta` has them, else ours."""
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
