"""The gradient of a part of a minibatch: through both networks, the loss, and back."""

import torch

from cagepool._stages import stage
from cagepool.train.loss import LossParts, LossRule, Outputs, Part, Rows, write_slopes
from cagepool.train.networks import Networks
from cagepool.train.passes import Backward


class PartGradient:
    """The gradient of one part at a time, in memory that is made once."""

    def __init__(self, networks: Networks) -> None:
        """Work with the networks as they are at each call."""
        self.flat = torch.zeros_like(networks.flat)
        of_actor, of_critic = networks.halves(self.flat)
        self._actor = Backward(networks.actor, of_actor)
        self._critic = Backward(networks.critic, of_critic)
        self._inputs = torch.empty(0)

    def write(self, rows: Rows, part: Part, rule: LossRule) -> LossParts:
        """Write into `flat` what these rows add to the gradient of their minibatch's loss."""
        with stage("update"):  # in a thread of its own, if there are several
            if len(self._inputs) != len(part.rows):
                self._inputs = torch.empty(len(part.rows), rows.inputs.shape[1])
            inputs = torch.index_select(rows.inputs, 0, part.rows, out=self._inputs)
            outputs = Outputs(self._actor.run(inputs), self._critic.run(inputs)[:, 0])
            slopes = Outputs(self._actor.slopes(), self._critic.slopes()[:, 0])
            parts = write_slopes(outputs, rows, part, rule, slopes)
            self._actor.back(inputs)
            self._critic.back(inputs)
            return parts
