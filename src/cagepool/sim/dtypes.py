"""NumPy types of the structs that Python shares with the core, read from the core."""

from typing import Any

import numpy as np

from cagepool import _core


def _dtype(size: int, fields: list[tuple[str, str, int, int]]) -> np.dtype[np.void]:
    names, kinds, offsets, counts = zip(*fields, strict=True)
    formats = [
        np.dtype((kind, count) if count > 1 else kind)
        for kind, count in zip(kinds, counts, strict=True)
    ]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


STRUCTS = {name: _dtype(*layout) for name, layout in _core.struct_layouts().items()}
GAME_CONFIG = STRUCTS["game_config"]
GAME = STRUCTS["game"]
TRUE_STATE = STRUCTS["true_state"]
MOVES = STRUCTS["moves"]
TRACE_EPISODE = STRUCTS["trace_episode"]
TRACE_INPUT = STRUCTS["trace_input"]
TRACE_ROW = STRUCTS["trace_row"]
SCENARIO = STRUCTS["scenario"]
SCENARIO_TRUE_STATE = STRUCTS["scenario_true_state"]
SCENARIO_MOVES = STRUCTS["scenario_moves"]
SCENARIO_TRACE_ROW = STRUCTS["scenario_trace_row"]
BELIEF = STRUCTS["belief"]
BELIEF_STATE = STRUCTS["belief_state"]


def trimmed(dtype: np.dtype[np.void], hosts: int) -> np.dtype[np.void]:
    """A struct of any network in which arrays over hosts have only the first ones."""
    fields: dict[str, Any] = dict(dtype.fields or {})
    formats = [
        np.dtype((kind.base, (hosts,))) if kind.shape == (_core.MAX_HOSTS,) else kind
        for kind, *_ in fields.values()
    ]
    offsets = [offset for _, offset, *_ in fields.values()]
    return np.dtype(
        {"names": [*fields], "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}
    )


def as_bytes(
    structs: "np.ndarray[Any, np.dtype[np.void]]",
) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """View structs as rows of bytes, the form in which the core takes them."""
    return structs.view(np.uint8).reshape(structs.size, structs.itemsize)
