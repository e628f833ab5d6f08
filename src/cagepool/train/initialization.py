"""Initial weights of actor and critic, the same for every learner."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from cagepool import _core
from cagepool.sim.features import action_set, parse_biases
from cagepool.train.config import PpoConfig, TrainConfig
from cagepool.train.learner import Learner
from cagepool.train.rollout import RolloutShape
from cagepool.types import Arrays, Float32s

HIDDEN_GAIN = 2**0.5
ACTOR_GAIN = 0.01  # of the last layer: an almost uniform policy at the start
CRITIC_GAIN = 1.0
KIND_BIASES = "kind_biases"  # of an entity network


def actor_widths(config: PpoConfig, shape: RolloutShape) -> list[int]:
    """Widths of the actor: inputs, hidden layers, outputs."""
    return [shape.features, *config.hidden, shape.actions]


def critic_widths(config: PpoConfig, shape: RolloutShape) -> list[int]:
    """Widths of the critic: inputs, hidden layers, one output."""
    return [shape.critic_features or shape.features, *(config.critic_hidden or config.hidden), 1]


def initial_weights(actor: Sequence[int], critic: Sequence[int], seed: int) -> Arrays:
    """Orthogonal weights and zero biases of two MLPs, by name.

    Args:
        actor: Widths: inputs, hidden layers, outputs.
        critic: Likewise.
        seed: The weights are drawn from it.
    """
    rng = np.random.default_rng(seed)
    return {
        **_mlp_weights("actor", actor, ACTOR_GAIN, rng),
        **_mlp_weights("critic", critic, CRITIC_GAIN, rng),
    }


def _mlp_weights(
    network: str, widths: Sequence[int], last_gain: float, rng: np.random.Generator
) -> Arrays:
    arrays: Arrays = {}
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        gain = last_gain if layer == len(widths) - 2 else HIDDEN_GAIN
        # Numbers as in PyTorch's `Sequential`, where activations count too.
        arrays[f"{network}.{2 * layer}.weight"] = orthogonal(outputs, inputs, gain, rng)
        arrays[f"{network}.{2 * layer}.bias"] = np.zeros(outputs, np.float32)
    return arrays


def orthogonal(rows: int, columns: int, gain: float, rng: np.random.Generator) -> Float32s:
    """Matrix whose rows, or columns if they are fewer, are orthogonal with norm `gain`."""
    normal = rng.standard_normal((max(rows, columns), min(rows, columns)))
    basis, triangle = np.linalg.qr(normal)
    basis *= np.sign(np.diag(triangle))  # makes the distribution uniform
    matrix = basis if rows >= columns else basis.T
    return np.ascontiguousarray(gain * matrix, np.float32)


def start_biases(config: TrainConfig, shape: RolloutShape) -> Float32s | None:
    """Initial bias of each choice of the policy; None: all 0."""
    if config.ppo.start_bias is None:
        return None
    by_kind = parse_biases(config.ppo.start_bias)
    if shape.hosts is None:
        indices = action_set(config.features.actions)
        kinds = [_core.blue_action(int(action))[0].name.capitalize() for action in indices]
    else:
        plain, on_hosts = shape.hosts.plain_kinds, shape.hosts.host_kinds
        slots = (shape.actions - len(plain)) // len(on_hosts)
        kinds = [*plain, *np.repeat(on_hosts, slots).tolist()]
    names = ("Decoy" if kind.startswith("Decoy") else kind for kind in kinds)
    return np.array([by_kind.get(name, 0.0) for name in names], np.float32)


def set_start_biases(learner: Learner, biases: Float32s, shape: RolloutShape) -> None:
    """Set the biases of the actor's last layer, one per action, or of the kinds of actions.

    Raises:
        ValueError: the network has no layer `actor.bias` or `actor.N.bias`.
    """
    arrays = {name: array.copy() for name, array in learner.arrays().items()}
    if KIND_BIASES in arrays and shape.hosts is not None:
        plain, kinds = len(shape.hosts.plain_kinds), len(shape.hosts.host_kinds)
        by_kind = biases[plain:].reshape(kinds, -1)[:, 0]
        arrays[KIND_BIASES][:] = np.concatenate([biases[:plain], by_kind])
        learner.load_arrays(arrays)
        return
    layers = [name for name in arrays if re.fullmatch(r"actor(\.[0-9]+)?\.bias", name)]
    if not layers:
        raise ValueError("ppo.start_bias needs a network whose last layer is named actor")
    last = max(layers, key=lambda name: [int(number) for number in re.findall("[0-9]+", name)])
    arrays[last][:] = biases
    learner.load_arrays(arrays)
