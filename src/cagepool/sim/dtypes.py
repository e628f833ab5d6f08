"""NumPy types of the structs that Python shares with the core, read from the core."""

from typing import Any

import numpy as np

from cagepool import _core
from cagepool.types import Bytes, Records


def _dtype(size: int, fields: list[tuple[str, str, int, int]]) -> np.dtype[np.void]:
    names, kinds, offsets, counts = zip(*fields, strict=True)
    formats = [
        np.dtype((kind, count) if count > 1 else kind)
        for kind, count in zip(kinds, counts, strict=True)
    ]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


STRUCTS = {name: _dtype(*layout) for name, layout in _core.struct_layouts().items()}
GAME_CONFIG = STRUCTS["game_config"]
GAME = STRUCTS["game"]  # of CAGE-2, as in a snapshot
CAGE2_TRUE_STATE = STRUCTS["cage2_true_state"]  # in memory and snapshots of the compiled game
TRUE_STATE = STRUCTS["true_state"]  # with room for the largest scenario: see `true_state`
MOVES = STRUCTS["moves"]
SESSION = STRUCTS["session"]
TRACE_EPISODE = STRUCTS["trace_episode"]
TRACE_INPUT = STRUCTS["trace_input"]
TRACE_ROW = STRUCTS["trace_row"]
SCENARIO = STRUCTS["scenario"]
BELIEF = STRUCTS["belief"]
BELIEF_STATE = STRUCTS["belief_state"]
HISTORY = STRUCTS["history"]


def true_state(hosts: int) -> np.dtype[np.void]:
    """Type of a true state with so many hosts, without padding."""
    fields: dict[str, Any] = dict(TRUE_STATE.fields or {})
    return np.dtype(
        [(name, kind.base, (hosts,) * len(kind.shape)) for name, (kind, *_) in fields.items()]
    )


def as_true_state(states: Records, hosts: int) -> Records:
    """Copy true states into the type `true_state`; hosts that they lack are 0."""
    result = np.zeros(states.shape, true_state(hosts))
    for name in result.dtype.names or ():
        values = states[name]
        if values.ndim > states.ndim:
            count = min(hosts, values.shape[-1])
            result[name][..., :count] = values[..., :count]
        else:
            result[name] = values
    return result


def trimmed(dtype: np.dtype[np.void], hosts: int) -> np.dtype[np.void]:
    """A struct in which arrays over hosts have only the first ones."""
    fields: dict[str, Any] = dict(dtype.fields or {})
    formats = [
        np.dtype((kind.base, (hosts,))) if kind.shape == (_core.MAX_HOSTS,) else kind
        for kind, *_ in fields.values()
    ]
    offsets = [offset for _, offset, *_ in fields.values()]
    return np.dtype(
        {"names": [*fields], "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}
    )


def as_bytes(structs: Records) -> Bytes:
    """View structs as rows of bytes, the form in which the core takes them."""
    return structs.view(np.uint8).reshape(structs.size, structs.itemsize)
