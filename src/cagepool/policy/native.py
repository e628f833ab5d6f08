"""Runtimes of a policy's network; the native one, for MLPs, is the forward pass of the core."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from cagepool import _core
from cagepool.types import Arrays, Bytes, Float32s, Int64s

Layers: TypeAlias = list[tuple[Float32s, Float32s]]  # weights, (outputs, inputs), and biases

ACTIVATIONS = {"tanh": _core.Activation.TANH, "relu": _core.Activation.RELU}
MASKED_LOGIT = -1e30
MAX_NORMALIZED = 10.0  # deviations
_CACHE_LINE_FLOATS = 16


class Runtime:
    """Computes the logits of a policy; this class has no memory of the games."""

    sizes: tuple[int, int]  # inputs and choices

    def begin(self, games: int) -> None:
        """Start an episode in this many games."""

    def reset(self, ids: Int64s) -> None:
        """Start an episode in these games."""

    def state(self) -> Arrays:
        """Memory of all games, for `restore`."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Continue from what `state` returned."""

    def logits(self, rows: Float32s, masks: Bytes | None, /) -> Float32s:
        """Logits of the choices, (rows, choices); may use the masks, does not apply them."""
        raise NotImplementedError


class NativeRuntime(Runtime):
    """Logits of an MLP by the core, whose threads sleep while there is nothing to compute."""

    def __init__(self, layers: Layers, activation: str, threads: int) -> None:
        """Take layers that fit each other."""
        self.layers = layers
        self._arguments = layers, activation, threads
        widths = [layers[0][0].shape[1], *(len(biases) for _, biases in layers)]
        self.sizes = widths[0], widths[-1]
        self._core = _core.MlpActor(
            widths=widths, activation=ACTIVATIONS[activation], threads=threads
        )
        names = layer_names("actor", widths)
        self._parameters = Parameters(names, self._core.layers, self._core.size)
        kinds = ("weight", "bias")
        self._parameters.load(
            {
                f"{name}.{kind}": array
                for name, layer in zip(names, layers, strict=True)
                for kind, array in zip(kinds, layer, strict=True)
            }
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the weights; the threads are created anew."""
        return type(self), self._arguments

    def logits(self, rows: Float32s, _masks: Bytes | None = None) -> Float32s:
        """Logits of the choices, (rows, choices)."""
        logits = np.empty((len(rows), self.sizes[1]), np.float32)
        self._core.write_logits(self._parameters.flat, np.ascontiguousarray(rows), logits)
        return logits


class Parameters:
    """Flat parameters in the layout of the core, with views of each array by name."""

    def __init__(
        self, names: Sequence[str], layers: Sequence[tuple[int, int, int, int]], size: int
    ) -> None:
        """Allocate zeros; `layers` has offset, inputs, outputs and stride per layer."""
        self._layout = names, layers, size
        self.flat = _aligned_zeros(size)
        self._views: dict[str, Float32s] = {}
        for name, (offset, inputs, outputs, stride) in zip(names, layers, strict=True):
            end = offset + inputs * stride
            weights = self.flat[offset:end].reshape(inputs, stride)
            self._views[f"{name}.weight"] = weights[:, :outputs].T
            self._views[f"{name}.bias"] = self.flat[end : end + outputs]

    def arrays(self) -> Arrays:
        """Copies of the arrays: weights, (outputs, inputs), and biases."""
        return {name: view.copy(order="C") for name, view in self._views.items()}

    def load(self, arrays: Arrays, prefix: str = "") -> None:
        """Copy arrays by name.

        Raises:
            ValueError: an array is missing, has another shape, or has numbers that are not finite.
        """
        for name, view in self._views.items():
            array = arrays.get(prefix + name)
            if array is None or array.shape != view.shape:
                given = "none" if array is None else array.shape
                raise ValueError(
                    f"the weights {prefix}{name} must have shape {view.shape}, got {given}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"the weights {prefix}{name} must be finite numbers")
        for name, view in self._views.items():
            view[:] = arrays[prefix + name]

    def zeros_like(self) -> "Parameters":
        """Zeros in the same layout."""
        return Parameters(*self._layout)


def layer_names(network: str, widths: Sequence[int]) -> list[str]:
    """Names of the layers, numbered as in PyTorch's `Sequential`, where activations count too."""
    return [f"{network}.{2 * layer}" for layer in range(len(widths) - 1)]


def _aligned_zeros(size: int) -> Float32s:
    """Zeros that start at a cache line: vectors that straddle two lines load slower."""
    zeros = np.zeros(size + _CACHE_LINE_FLOATS, np.float32)
    start = -zeros.ctypes.data // zeros.itemsize % _CACHE_LINE_FLOATS
    return zeros[start : start + size]
