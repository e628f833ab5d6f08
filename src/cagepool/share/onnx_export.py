"""ONNX files of trained policies: features and action masks in, actions and logits out.

| | name | shape | type |
|---|---|---|---|
| input | `features` | (games, features) | float32, of `evaluate.policy.feature_encoder` |
| input | `action_masks` | (games, choices) | bool; only with `action_masking` |
| input | `state` | (games, state size) | float32, zeros at the start; only of a recurrent network |
| output | `actions` | (games,) | int64, numbers of blue's 145 actions: those of the greedy policy |
| output | `logits` | (games, choices) | float32, -1e30 where masked |
| output | `next_state` | (games, state size) | float32; only of a recurrent network |

An MLP becomes a graph of its layers. Other networks are exported by PyTorch.
"""

from pathlib import Path
from typing import Any

import numpy as np

from cagepool import _optional, runs
from cagepool.evaluate.policy import MASKED_LOGIT, MAX_NORMALIZED, MLP, Policy, feature_encoder
from cagepool.sim.features import FeatureEncoder

with _optional.require("an ONNX file", "export", "onnx"):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

GAMES = "games"  # name of the dimension whose size is free
OPSET, IR_VERSION = 18, 10  # of MLPs; ONNX Runtime 1.18 and newer read them
_OPERATORS = {"tanh": "Tanh", "relu": "Relu"}


def write_onnx(policy: Policy, path: Path) -> None:
    """Write the network of a policy for CAGE-2, with its choice of an action, as an ONNX file.

    Raises:
        ValueError: PyTorch cannot export the network, or the file cannot be written.
        ImportError: a network other than an MLP needs libraries that are not installed.
    """
    encoder = feature_encoder(policy.settings, 1)
    name = policy.settings.ppo.network
    model = _mlp_model(policy, encoder) if name == MLP else _network_model(policy, encoder)
    onnx.checker.check_model(model)
    try:
        runs.replace_file(path, model.SerializeToString())
    except OSError as error:
        raise ValueError(f"{path} must be a writable file: {error}") from error


def _mlp_model(policy: Policy, encoder: FeatureEncoder) -> Any:
    """The layers of an MLP, between the normalization of features and the choice."""
    graph = _Graph()
    rows = "features"
    if policy.moments is not None:
        mean, deviation = policy.moments
        rows = graph.add("Sub", rows, graph.constant("feature_mean", mean))
        rows = graph.add("Div", rows, graph.constant("feature_deviation", deviation))
        limits = (
            graph.constant("lowest", -MAX_NORMALIZED),
            graph.constant("highest", MAX_NORMALIZED),
        )
        rows = graph.add("Clip", rows, *limits)
    for number, (weights, biases) in enumerate(policy.layers):
        if number:
            rows = graph.add(_OPERATORS[policy.settings.ppo.activation], rows)
        layer = (
            graph.constant(f"weights_{number}", weights),
            graph.constant(f"biases_{number}", biases),
        )
        rows = graph.add("Gemm", rows, *layer)
    inputs: list[tuple[str, Any, int]] = [("features", TensorProto.FLOAT, encoder.size)]
    if encoder.config.action_masking:
        inputs.append(("action_masks", TensorProto.BOOL, encoder.n_choices))
        rows = graph.add("Where", "action_masks", rows, graph.constant("masked", MASKED_LOGIT))
    graph.add("Identity", rows, output="logits")
    choices = graph.add("ArgMax", rows, axis=1, keepdims=0)
    actions = graph.constant("action_indices", encoder.action_indices)
    graph.add("Gather", actions, choices, output="actions")
    outputs: list[tuple[str, Any, int | None]] = [
        ("actions", TensorProto.INT64, None),
        ("logits", TensorProto.FLOAT, encoder.n_choices),
    ]
    return graph.model(inputs, outputs)


class _Graph:
    """Nodes and constants of a graph; the output of a node is called by a number."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, name: str, value: Any) -> str:
        self._constants.append(
            numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name)
        )
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"node_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def model(
        self, inputs: list[tuple[str, Any, int]], outputs: list[tuple[str, Any, int | None]]
    ) -> Any:
        graph = helper.make_graph(
            self._nodes,
            "policy",
            [
                helper.make_tensor_value_info(name, kind, [GAMES, size])
                for name, kind, size in inputs
            ],
            [
                helper.make_tensor_value_info(name, kind, [GAMES, *([size] if size else [])])
                for name, kind, size in outputs
            ],
            self._constants,
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(
            graph, producer_name="cagepool", opset_imports=[opset], ir_version=IR_VERSION
        )


def _network_model(policy: Policy, encoder: FeatureEncoder) -> Any:
    """Any network, by PyTorch's exporter."""
    name = policy.settings.ppo.network
    with _optional.require(f"an ONNX file of network {name}", "export", "torch", "onnxscript"):
        from cagepool.share.network_onnx import network_model  # noqa: PLC0415 - slow import

    return network_model(policy, encoder)
