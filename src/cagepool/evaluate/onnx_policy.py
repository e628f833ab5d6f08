"""Policies in ONNX files, played by ONNX Runtime."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cagepool import _core, _optional
from cagepool.evaluate.policy_function import FunctionDefender
from cagepool.types import Bools, Float32s

with _optional.require("an ONNX file", "onnx", "onnxruntime"):
    import onnxruntime

_DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(bool)": np.bool_}


def load_onnx(path: Path) -> FunctionDefender:
    """The policy in an ONNX file as a defender.

    Raises:
        ValueError: the file can't be read, or its inputs are not those of a policy.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the networks are small; results don't depend on the machine
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # ONNX Runtime has an exception class per fault and no common one
        raise ValueError(f"{path} is damaged, or not an ONNX file: {_first_line(error)}") from error
    _check_inputs(path, session.get_inputs())
    return FunctionDefender(OnnxPolicy(session), path.name)


class OnnxPolicy:
    """A session as a policy; see `FunctionDefender`."""

    def __init__(self, session: Any) -> None:
        """Take a session whose inputs are observations, and action masks if there are two."""
        self._session = session
        self._inputs = session.get_inputs()

    def __call__(self, observations: Float32s, action_masks: Bools) -> Any:
        """The first output of the network, computed in pieces if the file fixes the batch size."""
        arrays = (observations, action_masks)[: len(self._inputs)]
        games = len(observations)
        size = self._inputs[0].shape[0]
        pieces = self._pieces(arrays, size if isinstance(size, int) else games)
        outputs = [np.atleast_1d(self._session.run(None, piece)[0]) for piece in pieces]
        return np.concatenate(outputs)[:games]

    def _pieces(self, arrays: tuple[Any, ...], size: int) -> Iterator[dict[str, Any]]:
        """Inputs of `size` rows each; the last row is repeated to fill the last piece."""
        rows = len(arrays[0])
        for first in range(0, rows, size):
            ids = np.minimum(np.arange(first, first + size), rows - 1)
            yield {
                one.name: array[ids].astype(_DTYPES[one.type])
                for one, array in zip(self._inputs, arrays, strict=True)
            }


def _check_inputs(path: Path, inputs: list[Any]) -> None:
    if inputs and inputs[0].name == "features":
        raise ValueError(
            f"{path} takes features, as `cagepool export` writes it: evaluate its folder, "
            f"{path.parent}, instead"
        )
    sizes = (_core.OBSERVATION_SIZE, _core.ACTION_COUNT)
    fits = len(inputs) in (1, 2) and all(
        one.type in _DTYPES and len(one.shape) == 2 and one.shape[1] in (size, None)
        for one, size in zip(inputs, sizes, strict=False)
    )
    if not fits:
        found = ", ".join(f"{one.name} {one.type} {one.shape}" for one in inputs) or "none"
        raise ValueError(
            f"inputs of a policy must be observations, (N, {sizes[0]}), and perhaps action masks, "
            f"(N, {sizes[1]}), of type float or bool; {path} has {found}"
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
