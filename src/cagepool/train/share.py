"""A thread's share of a minibatch: through both networks, the loss, and back."""

import torch

from cagepool.train.loss import LossParts, LossRule, Outputs, Part, Rows, write_slopes
from cagepool.train.networks import Networks
from cagepool.train.passes import Backward


class Share:
    """Memory for one share, of whatever minibatch."""

    def __init__(self, networks: Networks) -> None:
        """Work with the networks as they are at each call."""
        self.gradient = torch.zeros_like(networks.flat)
        of_actor, of_critic = networks.halves(self.gradient)
        self._actor = Backward(networks.actor, of_actor)
        self._critic = Backward(networks.critic, of_critic)
        self._inputs = torch.empty(0)

    def learn(self, rows: Rows, part: Part, rule: LossRule) -> LossParts:
        """Write this part of the gradient of the mean loss of a minibatch."""
        if len(self._inputs) != len(part.rows):
            self._inputs = torch.empty(len(part.rows), rows.inputs.shape[1])
        inputs = torch.index_select(rows.inputs, 0, part.rows, out=self._inputs)
        outputs = Outputs(self._actor(inputs), self._critic(inputs)[:, 0])
        slopes = Outputs(self._actor.slopes(), self._critic.slopes()[:, 0])
        parts = write_slopes(outputs, rows, part, rule, slopes)
        self._actor.back(inputs)
        self._critic.back(inputs)
        return parts
