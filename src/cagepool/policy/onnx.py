"""Policies in ONNX files: files of others are played, trained policies are written.

What `write_onnx` writes:

| | name | shape | type |
|---|---|---|---|
| input | `features` | (games, features) | float32, of `policy.policy.feature_encoder` |
| input | `action_masks` | (games, choices) | bool; only with `action_masking` |
| input | `state` | (games, state size) | float32, zeros at the start; only of a recurrent network |
| output | `actions` | (games,) | int64, numbers of blue's actions: those of the greedy policy |
| output | `logits` | (games, choices) | float32, -1e30 where masked |
| output | `next_state` | (games, state size) | float32; only of a recurrent network |

An MLP becomes a graph of its layers. Other networks are exported by PyTorch.
"""

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from cagepool import _core, _optional, runs
from cagepool.policy.defenders import FunctionDefender
from cagepool.policy.native import MASKED_LOGIT, MAX_NORMALIZED, NativeRuntime
from cagepool.policy.policy import Policy, feature_encoder
from cagepool.sim.encoder import FeatureEncoder
from cagepool.types import Bools, Float32s

GAMES = "games"  # name of the dimension whose size is free
OPSET, IR_VERSION = 18, 10  # of MLPs; ONNX Runtime 1.18 and newer read them
EXAMPLE_GAMES = 3  # PyTorch would take 0 and 1 for fixed sizes
_OPERATORS = {"tanh": "Tanh", "relu": "Relu"}
_DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(bool)": np.bool_}


def load_onnx(path: Path) -> FunctionDefender:
    """The policy in an ONNX file as a defender, played by ONNX Runtime."""
    session = _make_session(path)
    _check_inputs(path, session.get_inputs())
    return FunctionDefender(OnnxPolicy(path, session), path.name)


class OnnxPolicy:
    """A session as a policy; see `FunctionDefender`."""

    def __init__(self, path: Path, session: Any = None) -> None:
        """Take a session whose inputs are observations, and action masks if there are two."""
        self._path = path
        self._session = session or _make_session(path)
        self._inputs = self._session.get_inputs()

    def __reduce__(self) -> tuple[Any, ...]:
        """Read the file anew."""
        return type(self), (self._path,)

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


def _make_session(path: Path) -> Any:
    with _optional.require("an ONNX file", "onnx", "onnxruntime"):
        import onnxruntime  # noqa: PLC0415 - an optional library

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the networks are small; results don't depend on the machine
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has an exception class per fault and no common one
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ValueError(f"{path} is damaged, or not an ONNX file: {reason}") from error


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


def write_onnx(policy: Policy, path: Path) -> None:
    """Write the network of a policy for CAGE-2, with its choice of an action, as an ONNX file."""
    with _optional.require("an ONNX file", "export", "onnx"):
        import onnx  # noqa: PLC0415 - an optional library

    encoder = feature_encoder(policy.settings, 1)
    is_mlp = isinstance(policy.runtime, NativeRuntime)
    model = _mlp_model(policy, encoder) if is_mlp else _network_model(policy, encoder)
    onnx.checker.check_model(model)
    try:
        runs.replace_file(path, model.SerializeToString())
    except OSError as error:
        raise ValueError(f"{path} must be a writable file: {error}") from error


def _mlp_model(policy: Policy, encoder: FeatureEncoder) -> Any:
    """The layers of an MLP, between the normalization of features and the choice."""
    assert isinstance(policy.runtime, NativeRuntime)
    graph = _Graph()
    rows = "features"
    if policy.moments is not None:
        mean, deviation = policy.moments
        rows = graph.add("Sub", rows, graph.constant("feature_mean", mean))
        rows = graph.add("Div", rows, graph.constant("feature_deviation", deviation))
        limit = np.float32(MAX_NORMALIZED)
        limits = graph.constant("lowest", -limit), graph.constant("highest", limit)
        rows = graph.add("Clip", rows, *limits)
    for number, (weights, biases) in enumerate(policy.runtime.layers):
        if number:
            rows = graph.add(_OPERATORS[policy.settings.ppo.activation], rows)
        layer = (
            graph.constant(f"weights_{number}", weights.T),
            graph.constant(f"biases_{number}", biases),
        )
        rows = graph.add("Gemm", rows, *layer)
    inputs = {"features": (encoder.size, "FLOAT")}
    if encoder.config.action_masking:
        inputs["action_masks"] = (encoder.n_choices, "BOOL")
        masked = graph.constant("masked", np.float32(MASKED_LOGIT))
        rows = graph.add("Where", "action_masks", rows, masked)
    graph.add("Identity", rows, output="logits")
    choices = graph.add("ArgMax", rows, axis=1, keepdims=0)
    actions = graph.constant("action_indices", encoder.action_indices)
    graph.add("Gather", actions, choices, output="actions")
    outputs = {"actions": (None, "INT64"), "logits": (encoder.n_choices, "FLOAT")}
    return graph.model(inputs, outputs)


class _Graph:
    """Nodes and constants of a graph; the output of a node is called by a number."""

    def __init__(self) -> None:
        import onnx.helper  # noqa: PLC0415 - an optional library

        self._onnx: Any = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, name: str, value: Any) -> str:
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"node_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def model(
        self, inputs: dict[str, tuple[int, str]], outputs: dict[str, tuple[int | None, str]]
    ) -> Any:
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes,
            "policy",
            [self._tensor(name, *of) for name, of in inputs.items()],
            [self._tensor(name, *of) for name, of in outputs.items()],
            self._constants,
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(
            graph, producer_name="cagepool", opset_imports=[opset], ir_version=IR_VERSION
        )

    def _tensor(self, name: str, size: int | None, kind: str) -> Any:
        shape = [GAMES, *([size] if size else [])]
        kind_number = getattr(self._onnx.TensorProto, kind)
        return self._onnx.helper.make_tensor_value_info(name, kind_number, shape)


def _network_model(policy: Policy, encoder: FeatureEncoder) -> Any:
    """Any network, by PyTorch's exporter."""
    name = policy.settings.ppo.network
    with _optional.require(f"an ONNX file of network {name}", "export", "torch", "onnxscript"):
        import torch  # noqa: PLC0415 - slow import

        from cagepool.policy.networks import (  # noqa: PLC0415 - slow import
            GreedyActor,
            TorchRuntime,
            state_size,
        )

    assert isinstance(policy.runtime, TorchRuntime)
    network = policy.runtime.network
    inputs = {"features": torch.zeros(EXAMPLE_GAMES, encoder.size)}
    if encoder.config.action_masking:
        inputs["action_masks"] = torch.ones(EXAMPLE_GAMES, encoder.n_choices, dtype=torch.bool)
    if size := state_size(network):
        inputs["state"] = torch.zeros(EXAMPLE_GAMES, size)
    games = torch.export.Dim(GAMES)
    try:
        with _quiet():
            program = torch.onnx.export(
                GreedyActor(network, policy.moments, encoder.action_indices).eval(),
                kwargs=inputs,
                dynamo=True,
                verbose=False,
                dynamic_shapes={name: {0: games} for name in inputs},
                input_names=[*inputs],
                output_names=["actions", "logits", *(["next_state"] if "state" in inputs else [])],
            )
    except Exception as error:  # whatever the exporter raises about a user's network
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"network {name} can't be exported to ONNX: {reason}") from error
    assert program is not None
    return program.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress what PyTorch's exporter prints, which is about its own parts."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
