"""Infos of single environments brought together in Gymnasium's form."""

from collections.abc import Iterable
from typing import Any

from gymnasium.vector import VectorEnv

from cagepool.types import Infos


class _Gatherer(VectorEnv[Any, Any, Any]):
    """Lends us Gymnasium's own way of doing it, for any number of rows."""

    closed = True  # there is nothing to close

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs

    def gathered(self, infos: Iterable[tuple[int, Infos]]) -> Infos:
        result: Infos = {}
        for row, info in infos:
            result = self._add_info(result, info, row)
        return result


def gathered(infos: Iterable[tuple[int, Infos]], num_rows: int) -> Infos:
    """One dictionary of arrays and masks from dictionaries and the rows that they belong to."""
    return _Gatherer(num_rows).gathered(infos)
