"""The networks that a policy was trained on, as its checkpoint names them."""

import hashlib
from typing import Self

import msgspec
import numpy as np
from msgspec import Struct

from cagepool.scenarios import Layout
from cagepool.sim.host_features import HOST_FEATURES, SHARED_FEATURES, HostFeatureEncoder
from cagepool.types import Arrays, HostBlocks

TRAINED_NETWORKS = "scenario.networks"  # in a checkpoint: JSON, as bytes


class TrainedNetworks(Struct, frozen=True):
    """Layout and scenarios of a training whose policy sees its inputs host by host."""

    slots: tuple[str, ...]
    action_kinds: tuple[str, ...]  # of the layout
    plain_kinds: tuple[str, ...]  # of the policy's choices, without a host
    host_kinds: tuple[str, ...]  # of its choices on a host
    by_position: bool  # whether slot i is host i, whatever its name is
    scenarios: int
    hash: str  # of the hashes of all scenarios, in their order
    shared_features: int = SHARED_FEATURES
    host_features: int = HOST_FEATURES

    @classmethod
    def from_encoder(cls, encoder: HostFeatureEncoder) -> Self:
        """The networks that an encoder encodes."""
        networks = encoder.networks
        hashes = "\n".join(scenario.hash for scenario in networks.scenarios)
        return cls(
            slots=networks.layout.slots,
            action_kinds=networks.layout.kinds,
            plain_kinds=encoder.plain_kinds,
            host_kinds=encoder.host_kinds,
            by_position=networks.layout.by_position,
            scenarios=len(networks.scenarios),
            hash=hashlib.sha256(hashes.encode()).hexdigest(),
        )

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self | None:
        """The networks that a checkpoint names; None: the built-in one, and other inputs.

        Raises:
            ValueError: they are damaged, or the inputs are those of another version.
        """
        if TRAINED_NETWORKS not in arrays:
            return None
        try:
            networks = msgspec.json.decode(arrays[TRAINED_NETWORKS].tobytes(), type=cls)
        except msgspec.MsgspecError as error:
            raise ValueError(
                f"{TRAINED_NETWORKS} must be a description of networks: {error}"
            ) from error
        sizes = networks.shared_features, networks.host_features
        if sizes != (SHARED_FEATURES, HOST_FEATURES):
            raise ValueError(
                f"a policy must have {SHARED_FEATURES} shared inputs and {HOST_FEATURES} per host, "
                f"as this version of cagepool makes them, got {sizes[0]} and {sizes[1]}"
            )
        return networks

    def to_arrays(self) -> Arrays:
        """The array that `from_arrays` reads, by its name in a checkpoint."""
        return {TRAINED_NETWORKS: np.frombuffer(msgspec.json.encode(self), np.uint8).copy()}

    @property
    def layout(self) -> Layout:
        """Layout of the training."""
        return Layout(self.slots, self.action_kinds, self.by_position)

    @property
    def choice_kinds(self) -> tuple[str, ...]:
        """Kinds of the policy's choices."""
        return self.plain_kinds + self.host_kinds

    @property
    def blocks(self) -> HostBlocks:
        """How the policy's inputs and logits are made of hosts."""
        return HostBlocks(
            self.shared_features, self.host_features, self.plain_kinds, self.host_kinds
        )

    @property
    def input_size(self) -> int:
        """Inputs of a policy that plays the layout of its training."""
        return self.shared_features + len(self.slots) * self.host_features

    @property
    def choice_count(self) -> int:
        """Choices of a policy that plays the layout of its training."""
        return len(self.plain_kinds) + len(self.slots) * len(self.host_kinds)
