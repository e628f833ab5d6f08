"""ONNX models of policies whose network is not an MLP, by the exporter of PyTorch."""

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import torch
from torch import Tensor, nn

from cagepool.evaluate.network_policy import NetworkPolicy
from cagepool.evaluate.policy import MASKED_LOGIT, MAX_NORMALIZED, Policy
from cagepool.networks import NetworkInputs, NetworkOutputs, state_size
from cagepool.sim.features import FeatureEncoder

EXAMPLE_GAMES = 3  # PyTorch would take 0 and 1 for fixed sizes


def network_model(policy: Policy, encoder: FeatureEncoder) -> Any:
    """The model with the inputs and outputs that `share.onnx_export` describes.

    Raises:
        ValueError: PyTorch cannot export the network.
    """
    assert isinstance(policy, NetworkPolicy)
    inputs = _example_inputs(policy, encoder)
    games = torch.export.Dim("games")
    try:
        with _quiet():
            program = torch.onnx.export(
                _GreedyPolicy(policy, encoder).eval(),
                kwargs=inputs,
                dynamo=True,
                verbose=False,
                dynamic_shapes={name: {0: games} for name in inputs},
                input_names=[*inputs],
                output_names=["actions", "logits", *(["next_state"] if "state" in inputs else [])],
            )
    except Exception as error:  # whatever the exporter raises about a user's network
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        name = policy.settings.ppo.network
        raise ValueError(f"network {name} can't be exported to ONNX: {reason}") from error
    assert program is not None
    return program.model_proto


class _GreedyPolicy(nn.Module):
    """Normalization of features, network, masks, and the choice of an action."""

    moments: Tensor | None
    actions: Tensor

    def __init__(self, policy: NetworkPolicy, encoder: FeatureEncoder) -> None:
        super().__init__()
        self.network = policy.network
        moments = policy.moments
        tensor = None if moments is None else torch.stack([torch.from_numpy(x) for x in moments])
        self.register_buffer("moments", tensor)
        self.register_buffer("actions", torch.from_numpy(encoder.action_indices))

    def forward(
        self, features: Tensor, action_masks: Tensor | None = None, state: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        if self.moments is not None:
            limit = float(MAX_NORMALIZED)
            features = ((features - self.moments[0]) / self.moments[1]).clamp(-limit, limit)
        before = features.new_zeros(features.shape[0], 0) if state is None else state
        masks = None if action_masks is None else action_masks[None]
        outputs = NetworkOutputs(*self.network(NetworkInputs(features[None], None, masks, before)))
        logits = outputs.logits[0]
        if action_masks is not None:
            logits = torch.where(action_masks, logits, float(MASKED_LOGIT))
        actions = self.actions[logits.argmax(1)]
        return (actions, logits) if state is None else (actions, logits, outputs.state)


def _example_inputs(policy: NetworkPolicy, encoder: FeatureEncoder) -> dict[str, Tensor]:
    inputs = {"features": torch.zeros(EXAMPLE_GAMES, encoder.size)}
    if encoder.config.action_masking:
        inputs["action_masks"] = torch.ones(EXAMPLE_GAMES, encoder.n_choices, dtype=torch.bool)
    if size := state_size(policy.network):
        inputs["state"] = torch.zeros(EXAMPLE_GAMES, size)
    return inputs


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
