"""Types of arrays, dicts and records that several packages pass around."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
Float32s: TypeAlias = NDArray[np.float32]
Float64s: TypeAlias = NDArray[np.float64]
Records: TypeAlias = NDArray[np.void]  # structured; the fields are listed in `sim.dtypes`
Seeds: TypeAlias = NDArray[np.uint64]  # one random seed per game

Arrays: TypeAlias = dict[str, NDArray[Any]]  # arrays by name, as in an .npz file
Observations: TypeAlias = NDArray[np.float32 | np.uint8]  # of blue, in either dtype of a batch
Infos: TypeAlias = dict[str, Any]  # infos of a Gymnasium environment


class HostBlocks(NamedTuple):
    """How rows of features and of logits are made of hosts, whose number is not fixed.

    Features are `shared` values, then `features` per host; logits are those of the plain kinds of
    actions, which have no host, then one per kind and host. Feature 0 of a host is 1 where there is
    a host and 0 for padding; feature 1 is equal for hosts of one subnet.
    """

    shared: int
    features: int
    plain_kinds: tuple[str, ...]
    host_kinds: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of actions, in the order of the logits."""
        return self.plain_kinds + self.host_kinds
