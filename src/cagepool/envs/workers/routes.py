"""Which worker has which environments."""

from array import array
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from cagepool.types import Int64s


class Routes:
    """Sorts environments by worker; each worker has a run of them."""

    def __init__(self, bounds: list[int]) -> None:
        """Worker k has the environments from `bounds[k]` to before `bounds[k + 1]`."""
        self._bounds = np.array(bounds, np.int32)
        self._owners = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))

    def parts(self, ids: Int64s) -> Iterator[tuple[int, bytes, int]]:
        """Workers, the words for each and how many they are."""
        if len(ids) < len(self._bounds) - 1:  # sorting would take longer
            parts: dict[int, list[int]] = {}
            for owner, index in zip(self._owners[ids].tolist(), ids.tolist(), strict=True):
                parts.setdefault(owner, []).append(index)
            for owner, part in parts.items():
                yield owner, array("i", part).tobytes(), len(part)
            return
        words = np.sort(ids.astype(np.int32))
        cuts = words.searchsorted(self._bounds).tolist()
        for owner, (start, stop) in enumerate(pairwise(cuts)):
            if start < stop:
                yield owner, words[start:stop].tobytes(), stop - start
