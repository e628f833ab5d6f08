"""Networks of a policy in PyTorch: the built-in ones, and the protocol of your own.

A network is any `torch.nn.Module` that is created with a `NetworkSpec` and whose `forward` turns
`NetworkInputs` into `NetworkOutputs`; `docs/own-networks.md` is a tutorial. A recurrent network has
an attribute `state_size`. Parameters whose name starts with `critic` are the critic's: the
gradients of actor and critic are clipped separately.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from cagepool._lookup import is_reference, load_object
from cagepool.policy.native import MASKED_LOGIT, MAX_NORMALIZED, Runtime
from cagepool.types import Arrays, Bytes, Float32s, HostBlocks, Int64s

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}
SIZES = "network.sizes"  # in a checkpoint: sizes of the inputs and outputs


@dataclass(frozen=True)
class NetworkSpec:
    """Sizes of a network, and the settings of the run that describe it."""

    features: int  # inputs of the actor
    critic_features: int  # inputs of the critic
    actions: int
    hidden: tuple[int, ...] = (64, 64)  # --hidden
    critic_hidden: tuple[int, ...] = (64, 64)  # --critic-hidden, by default --hidden
    activation: str = "tanh"  # --activation
    hosts: HostBlocks | None = None  # of the features; None: they are not made of hosts


class NetworkInputs(NamedTuple):
    """Inputs of a network: consecutive steps of several games, in which no episode ends."""

    features: torch.Tensor  # (steps, rows, features)
    critic_features: torch.Tensor | None  # (steps, rows, critic features); None: values not needed
    action_masks: torch.Tensor | None  # (steps, rows, actions), true where allowed
    state: torch.Tensor  # (rows, state_size), before the first step; zeros when an episode starts


class NetworkOutputs(NamedTuple):
    """Outputs of a network."""

    logits: torch.Tensor  # (steps, rows, actions); masked by the trainer
    values: torch.Tensor | None  # (steps, rows); may be None if `critic_features` is
    state: torch.Tensor  # (rows, state_size), after the last step


class MlpNetwork(nn.Module):
    """Actor and critic: two MLPs that share no weights."""

    def __init__(self, spec: NetworkSpec) -> None:
        """Initialize both with orthogonal weights."""
        super().__init__()
        self.actor = make_mlp((spec.features, *spec.hidden, spec.actions), spec.activation)
        self.critic = make_mlp((spec.critic_features, *spec.critic_hidden, 1), spec.activation)
        # A small gain on the actor's last layer: an almost uniform policy at the start.
        initialize(self.actor, last_gain=0.01)
        initialize(self.critic, last_gain=1.0)

    def forward(self, inputs: NetworkInputs) -> NetworkOutputs:
        """Logits and values of each row on its own."""
        critic = inputs.critic_features
        values = None if critic is None else self.values(critic)
        return NetworkOutputs(self.actor(inputs.features), values, inputs.state)

    def values(self, critic_features: torch.Tensor) -> torch.Tensor:
        """Values alone, without the pass of the actor."""
        values: torch.Tensor = self.critic(critic_features)[..., 0]
        return values


class GruNetwork(nn.Module):
    """Actor with a gated recurrent unit (GRU), and a critic that also sees the actor's memory.

    The hidden widths are those of an encoder, the last one that of the GRU. The critic is an MLP;
    its gradient does not reach the memory.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        """Initialize with orthogonal weights."""
        super().__init__()
        *encoder, self.state_size = spec.hidden
        widths = (spec.features, *encoder)
        self.encoder = make_mlp(widths, spec.activation, activate_last=True)
        self.gru = nn.GRU(widths[-1], self.state_size)
        self.actor = nn.Linear(self.state_size, spec.actions)
        critic_inputs = spec.critic_features + self.state_size
        self.critic = make_mlp((critic_inputs, *spec.critic_hidden, 1), spec.activation)
        initialize(self.encoder, last_gain=2**0.5)
        initialize(nn.Sequential(self.actor), last_gain=0.01)
        initialize(self.critic, last_gain=1.0)

    def forward(self, inputs: NetworkInputs) -> NetworkOutputs:
        """Logits and values of the steps; the state is the memory of the GRU."""
        memory, state = self.gru(self.encoder(inputs.features), inputs.state[None])
        values = None
        if inputs.critic_features is not None:
            seen = torch.cat([inputs.critic_features, memory.detach()], -1)
            values = self.critic(seen)[..., 0]
        return NetworkOutputs(self.actor(memory), values, state[0])


class EntityNetwork(nn.Module):
    """Weights that are shared by all hosts, for scenarios of any number of hosts.

    An encoder turns the features of each host into a vector. A host's head sees this vector, the
    mean over the hosts of its subnet, and the mean and maximum over all hosts; it gives the logits
    of the actions on that host. Another head gives those of the actions without a host. The critic
    has an encoder of its own. Permuting the hosts permutes the logits, and padding changes nothing.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        """Initialize with orthogonal weights."""
        super().__init__()
        if spec.hosts is None:
            raise ValueError("network entity needs features that are made of hosts")
        self._blocks = spec.hosts
        *encoder, head = spec.hidden if len(spec.hidden) > 1 else (*spec.hidden, *spec.hidden)
        self.encoder = make_mlp(
            (spec.hosts.features, *encoder), spec.activation, activate_last=True
        )
        pooled = 2 * encoder[-1] + spec.hosts.shared
        self.host_hidden = nn.Linear(encoder[-1], head)
        self.subnet_hidden = nn.Linear(encoder[-1], head, bias=False)
        self.pooled_hidden = nn.Linear(pooled, head, bias=False)
        self.plain_hidden = nn.Linear(pooled, head)
        self.activation = ACTIVATIONS[spec.activation]()
        self.host_actor = nn.Linear(head, len(spec.hosts.host_kinds), bias=False)
        self.plain_actor = nn.Linear(head, len(spec.hosts.plain_kinds), bias=False)
        self.kind_biases = nn.Parameter(torch.zeros(len(spec.hosts.kinds)))
        critic, *critic_head = spec.critic_hidden
        self.critic_encoder = nn.Linear(spec.hosts.features, critic)
        critic_widths = (2 * critic + spec.hosts.shared, *(critic_head or (critic,)), 1)
        self.critic = make_mlp(critic_widths, spec.activation)
        self._initialize()

    def _initialize(self) -> None:
        initialize(self.encoder, last_gain=2**0.5)
        initialize(self.critic, last_gain=1.0)
        for hidden in (self.host_hidden, self.plain_hidden, self.critic_encoder):
            initialize(nn.Sequential(hidden), last_gain=2**0.5)
        for hidden in (self.subnet_hidden, self.pooled_hidden):
            nn.init.orthogonal_(hidden.weight, 1.0)
        for actor in (self.host_actor, self.plain_actor):
            nn.init.orthogonal_(actor.weight, 0.01)

    def forward(self, inputs: NetworkInputs) -> NetworkOutputs:
        """Logits and values of each row on its own; the number of hosts is that of the inputs."""
        shared, hosts = self._split(inputs.features)
        present = hosts[..., :1]
        encoded = self.encoder(hosts) * present
        pooled = _pool(encoded, present, shared)
        context = self.subnet_hidden(_subnet_means(encoded, hosts))
        context = context + self.pooled_hidden(pooled)[..., None, :]
        hidden = self.activation(self.host_hidden(encoded) + context)
        plain, on_hosts = self.kind_biases.tensor_split([len(self._blocks.plain_kinds)])
        host_logits = (self.host_actor(hidden) + on_hosts).transpose(-1, -2).flatten(-2)
        plain_logits = self.plain_actor(self.activation(self.plain_hidden(pooled))) + plain
        values = None if inputs.critic_features is None else self._values(shared, hosts)
        return NetworkOutputs(torch.cat([plain_logits, host_logits], -1), values, inputs.state)

    def values(self, critic_features: torch.Tensor) -> torch.Tensor:
        """Values alone, without the pass of the actor."""
        return self._values(*self._split(critic_features))

    def _values(self, shared: torch.Tensor, hosts: torch.Tensor) -> torch.Tensor:
        """Values; the critic sees what the actor sees."""
        present = hosts[..., :1]
        encoded = self.activation(self.critic_encoder(hosts)) * present
        values: torch.Tensor = self.critic(_pool(encoded, present, shared))[..., 0]
        return values

    def _split(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Shared features, and those of each host, (..., hosts, features)."""
        shared = self._blocks.shared
        hosts = features[..., shared:].reshape(*features.shape[:-1], -1, self._blocks.features)
        return features[..., :shared], hosts.contiguous()  # for actor and critic


def _pool(encoded: torch.Tensor, present: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
    """Mean and maximum over the hosts, at least 0, and the shared features.

    `encoded` is 0 for padding, which therefore changes neither.
    """
    mean = encoded.sum(-2) / present.sum(-2)
    return torch.cat([mean, encoded.max(-2).values.clamp_min(0), shared], -1)


def _subnet_means(encoded: torch.Tensor, hosts: torch.Tensor) -> torch.Tensor:
    """Mean over the hosts of each host's subnet, itself included."""
    present, subnets = hosts[..., 0], hosts[..., 1]
    same = (subnets[..., :, None] == subnets[..., None, :]) * present[..., None, :]
    return (same / same.sum(-1, keepdim=True)) @ encoded


BUILT_IN: dict[str, type[nn.Module]] = {
    "mlp": MlpNetwork,
    "gru": GruNetwork,
    "entity": EntityNetwork,
}


def make_network(name: str, spec: NetworkSpec, seed: int = 0) -> nn.Module:
    """Create a network on the CPU; weights that PyTorch draws come from the seed.

    Args:
        name: `mlp`, `gru` or `module:Class`.
        spec: Sizes and settings.
        seed: Random seed of the weights; the global generator keeps its state.
    """
    made = load_object(name, "network") if is_reference(name) else BUILT_IN[name]
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(seed)
        try:
            network = made(spec)
        except Exception as error:  # whatever the user's class raises
            raise ValueError(f"network {name} must be made of a NetworkSpec: {error!r}") from error
    if not isinstance(network, nn.Module):
        raise ValueError(f"network {name} must be a torch.nn.Module, got {type(network).__name__}")
    other = {str(weights.dtype) for weights in network.parameters()} - {"torch.float32"}
    if other:
        raise ValueError(f"weights of network {name} must be float32, got {', '.join(other)}")
    check_outputs(name, network, spec)
    return network


def state_size(network: nn.Module) -> int:
    """Size of the recurrent state of a game; 0: the network has no memory."""
    return int(getattr(network, "state_size", 0))


def check_outputs(name: str, network: nn.Module, spec: NetworkSpec) -> None:
    """Call a network on zeros, as in an update and as in play, and check its outputs.

    Raises:
        ValueError: it raises, or an output has another shape than the protocol says.
    """
    steps, rows = 2, 3
    size = state_size(network)
    inputs = NetworkInputs(
        torch.zeros(steps, rows, spec.features, device="cpu"),
        torch.zeros(steps, rows, spec.critic_features, device="cpu"),
        torch.ones(steps, rows, spec.actions, dtype=torch.bool, device="cpu"),
        torch.zeros(rows, size, device="cpu"),
    )
    played = _call_on_zeros(name, network, inputs._replace(critic_features=None, action_masks=None))
    outputs = _call_on_zeros(name, network, inputs)
    expected = {"logits": (steps, rows, spec.actions), "state": (rows, size)}
    _check_output_shapes(name, played, expected)
    _check_output_shapes(name, outputs, {**expected, "values": (steps, rows)})


def _call_on_zeros(name: str, network: nn.Module, inputs: NetworkInputs) -> NetworkOutputs:
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
        try:
            return NetworkOutputs(*network(inputs))
        except Exception as error:  # whatever the user's module raises
            needs = " with critic_features None" if inputs.critic_features is None else ""
            raise ValueError(f"network {name} must take NetworkInputs{needs}: {error!r}") from error


def _check_output_shapes(
    name: str, outputs: NetworkOutputs, expected: dict[str, tuple[int, ...]]
) -> None:
    for field, shape in expected.items():
        found = getattr(outputs, field)
        given = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        if given != shape:
            raise ValueError(f"network {name}: {field} must have shape {shape}, got {given}")


class TorchRuntime(Runtime):
    """Computes logits by a PyTorch network on the CPU, with a recurrent state per game."""

    def __init__(self, name: str, arrays: Arrays, threads: int, **settings: Any) -> None:
        """Build a network from the weights of a checkpoint.

        Args:
            name: `gru`, `entity` or `module:Class`.
            arrays: Weights by name, and their sizes.
            threads: Threads of PyTorch during a pass.
            settings: Fields of `NetworkSpec` except the sizes.
        """
        sizes = arrays.get(SIZES)
        if sizes is None or sizes.shape != (3,) or sizes.dtype.kind != "i" or sizes.min() < 1:
            raise ValueError(f"there must be three {SIZES} of at least 1")
        features, critic_features, actions = map(int, sizes)
        spec = NetworkSpec(features, critic_features, actions, **settings)
        if not is_reference(name):  # before memory is allocated for a stranger's sizes
            check_array_shapes(name, spec, arrays)
        self.name, self.sizes = name, (spec.features, spec.actions)
        self.network = make_network(name, spec).eval()
        load_network_arrays(self.network, arrays)
        self._threads = threads
        self.begin(0)

    def begin(self, games: int) -> None:
        """Reset all recurrent states."""
        self._state = torch.zeros(games, state_size(self.network), device="cpu")

    def reset(self, ids: Int64s) -> None:
        """Reset the recurrent states of these games."""
        self._state[torch.from_numpy(ids)] = 0

    def state(self) -> Arrays:
        """The recurrent states."""
        return {"network_state": self._state.numpy().copy()}

    def restore(self, state: Arrays) -> None:
        """Continue from what `state` returned."""
        self._state = torch.from_numpy(state["network_state"].copy())

    def logits(self, rows: Float32s, masks: Bytes | None) -> Float32s:
        """Logits of the choices; advances the recurrent states."""
        if len(rows) != len(self._state):
            self.begin(len(rows))
        allowed = None if masks is None else torch.from_numpy(masks).bool()[None]
        features = torch.from_numpy(np.ascontiguousarray(rows))[None]
        with torch.no_grad(), limited_threads(self._threads):
            inputs = NetworkInputs(features, None, allowed, self._state)
            logits, _, self._state = NetworkOutputs(*self.network(inputs))
        return logits[0].numpy()


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Let PyTorch use at most this many threads, which would otherwise spin on all cores."""
    before = torch.get_num_threads()
    if before <= threads:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class GreedyActor(nn.Module):
    """Normalization of features, network, masks, and the choice of an action, for ONNX."""

    moments: torch.Tensor | None
    actions: torch.Tensor

    def __init__(
        self, network: nn.Module, moments: tuple[Float32s, Float32s] | None, actions: Int64s
    ) -> None:
        """Take mean and deviation of the features, and the action of each choice."""
        super().__init__()
        self.network = network
        tensor = None if moments is None else torch.stack([torch.from_numpy(x) for x in moments])
        self.register_buffer("moments", tensor)
        self.register_buffer("actions", torch.from_numpy(actions))

    def forward(
        self,
        features: torch.Tensor,
        action_masks: torch.Tensor | None = None,
        state: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        """Actions and logits, and the next state of a recurrent network."""
        if self.moments is not None:
            features = ((features - self.moments[0]) / self.moments[1]).clamp(
                -MAX_NORMALIZED, MAX_NORMALIZED
            )
        before = features.new_zeros(features.shape[0], 0) if state is None else state
        masks = None if action_masks is None else action_masks[None]
        outputs = NetworkOutputs(*self.network(NetworkInputs(features[None], None, masks, before)))
        logits = outputs.logits[0]
        if action_masks is not None:
            logits = torch.where(action_masks, logits, MASKED_LOGIT)
        actions = self.actions[logits.argmax(1)]
        return (actions, logits) if state is None else (actions, logits, outputs.state)


def network_arrays(network: nn.Module) -> Arrays:
    """Weights and buffers by name; on the CPU, they share memory with the network."""
    return {name: values.detach().cpu().numpy() for name, values in network.state_dict().items()}


def load_network_arrays(network: nn.Module, arrays: Arrays) -> None:
    """Copy weights and buffers from arrays."""
    _check_shapes(network, arrays)
    with torch.no_grad():
        for name, values in network.state_dict().items():
            loaded = torch.from_numpy(arrays[name].copy())
            if not torch.isfinite(loaded).all():
                raise ValueError(f"weights {name} contain NaN or infinity")
            values.copy_(loaded)


def check_array_shapes(name: str, spec: NetworkSpec, arrays: Arrays) -> None:
    """Check that arrays fit a built-in network without allocating its weights."""
    if name not in BUILT_IN:
        raise ValueError(f"network must be {', '.join(BUILT_IN)} or module:Class, got {name!r}")
    with torch.device("meta"):
        _check_shapes(BUILT_IN[name](spec), arrays)


def _check_shapes(network: nn.Module, arrays: Arrays) -> None:
    for name, values in network.state_dict().items():
        shape = arrays[name].shape if name in arrays else "none"
        if shape != tuple(values.shape):
            raise ValueError(
                f"the weights {name} must have shape {tuple(values.shape)}, got {shape}"
            )


def make_mlp(
    widths: Sequence[int], activation: str, *, activate_last: bool = False
) -> nn.Sequential:
    """Linear layers of these widths with activations between them, and after them if asked for."""
    modules: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        modules += [nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
    return nn.Sequential(*(modules if activate_last else modules[:-1]))


def initialize(network: nn.Sequential, last_gain: float) -> None:
    """Orthogonal weights with gain sqrt(2), `last_gain` in the last layer, and biases of zero."""
    linear = [layer for layer in network if isinstance(layer, nn.Linear)]
    for layer in linear:
        gain = last_gain if layer is linear[-1] else 2**0.5
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
