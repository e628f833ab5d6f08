"""NumPy types of the structs that the core writes, read off the core itself."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from cagepool import _core


def _dtype(fields: Iterable[tuple[str, str, int, int]], size: int) -> np.dtype[np.void]:
    names, formats, offsets = [], [], []
    for name, kind, offset, count in fields:
        names.append(name)
        formats.append(np.dtype(kind if count == 1 else (kind, (count,))))
        offsets.append(offset)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


TRUE_STATE = _dtype(_core.true_state_fields(), _core.TRUE_STATE_BYTES)
MOVES = _dtype(_core.moves_fields(), _core.MOVES_BYTES)
TRACE_ROW = _dtype(_core.trace_fields(), _core.TRACE_ROW_BYTES)


def as_bytes(
    structs: "np.ndarray[Any, np.dtype[np.void]]",
) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """The same memory as rows of bytes, which is how structs cross into the core."""
    return structs.view(np.uint8).reshape(structs.size, structs.itemsize)
