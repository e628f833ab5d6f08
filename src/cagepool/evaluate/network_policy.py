"""A trained policy whose network is not an MLP: recurrent, or of the user. It needs PyTorch."""

import numpy as np
import torch
from numpy.typing import ArrayLike

from cagepool._lookup import is_reference
from cagepool.evaluate.policy import Policy
from cagepool.networks import (
    SIZES,
    NetworkInputs,
    NetworkOutputs,
    NetworkSpec,
    check_array_shapes,
    load_network_arrays,
    make_network,
    state_size,
)
from cagepool.scenarios import Layout
from cagepool.sim.host_features import PlayedNetworks
from cagepool.types import Arrays, Float32s

ENTITY = "entity"


class NetworkPolicy(Policy):
    """Chooses actions by a PyTorch network on the CPU, with a recurrent state per game."""

    @property
    def layout(self) -> Layout | None:
        """Layout that the games must have; an entity network plays any."""
        return None if self.settings.ppo.network == ENTITY else super().layout

    def begin(self, games: int, networks: PlayedNetworks | None = None) -> None:
        """Reset all histories and states: an episode starts in this many games."""
        super().begin(games, networks)
        self._state = torch.zeros(games, state_size(self.network), device="cpu")

    def reset(self, ids: ArrayLike) -> None:
        """Reset the histories and states of these games."""
        super().reset(ids)
        self._state[torch.from_numpy(np.asarray(ids, np.int64))] = 0

    def forward(self, rows: Float32s) -> Float32s:
        """Forward pass of the actor; advances the states."""
        if len(rows) != len(self._state):
            self.begin(len(rows))
        masks = self._masks if self._is_cage else None
        allowed = None if masks is None else torch.from_numpy(masks).bool()[None]
        features = torch.from_numpy(np.ascontiguousarray(rows))[None]
        with torch.no_grad():
            inputs = NetworkInputs(features, None, allowed, self._state)
            logits, _, self._state = NetworkOutputs(*self.network(inputs))
        return logits[0].numpy()

    def _load_weights(self, arrays: Arrays) -> None:
        settings = self.settings.ppo
        sizes = arrays.get(SIZES)
        if sizes is None or sizes.shape != (3,) or sizes.dtype.kind != "i" or sizes.min() < 1:
            raise ValueError(f"there must be three {SIZES} of at least 1")
        features, critic_features, actions = map(int, sizes)
        self._spec = NetworkSpec(
            features,
            critic_features,
            actions,
            hidden=settings.hidden,
            critic_hidden=settings.critic_hidden or settings.hidden,
            activation=settings.activation,
            hosts=None if self.networks is None else self.networks.blocks,
        )
        if not is_reference(settings.network):  # before memory is allocated for a stranger's sizes
            check_array_shapes(settings.network, self._spec, arrays)
        self.network = make_network(settings.network, self._spec).eval()
        load_network_arrays(self.network, arrays)

    def _check_sizes(self) -> None:
        sizes = (self._spec.features, self._spec.actions)
        if self._is_cage and sizes != self._expected_sizes():
            raise ValueError(f"a policy does not fit its settings: its sizes are {sizes}")
