"""Type aliases of arrays and dicts that several packages pass around."""

from typing import Any, TypeAlias

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
