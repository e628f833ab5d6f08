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
BELIEF = STRUCTS["belief"]
BELIEF_STATE = STRUCTS["belief_state"]


def as_bytes(
    structs: "np.ndarray[Any, np.dtype[np.void]]",
) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """View structs as rows of bytes, the form in which the core takes them."""
    return structs.view(np.uint8).reshape(structs.size, structs.itemsize)
