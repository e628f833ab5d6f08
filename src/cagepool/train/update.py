"""The learner: turns a rollout into a better policy."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cagepool.runs import Arrays
from cagepool.sim.inputs import Floats
from cagepool.train.advantage import advantages
from cagepool.train.config import PpoConfig
from cagepool.train.loss import LossParts, LossRule, Rows, backward, mean_of
from cagepool.train.networks import Networks
from cagepool.train.rollout import Rollout

ADAM_MOMENTS = ("exp_avg", "exp_avg_sq")


class Learned(NamedTuple):
    """What one update did."""

    parts: LossParts
    explained_variance: float
    gradient_norm: float


class Learner:
    """Networks, their optimiser, and the settings of PPO."""

    def __init__(self, networks: Networks, config: PpoConfig, rng: np.random.Generator) -> None:
        """Learn with these networks; `rng` shuffles."""
        self.networks = networks
        self.rng = rng
        self.learning_rate = config.learning_rate
        self._config = config
        self._optimiser = torch.optim.Adam(networks.parameters(), config.learning_rate, fused=True)

    def update(self, rollout: Rollout, progress: float) -> Learned:
        """Learn from a rollout, `progress` of the way (0 to 1) through the run."""
        config = self._config
        left = 1 - progress
        self.learning_rate = _between(config.learning_rate_end, config.learning_rate, left)
        self._optimiser.param_groups[0]["lr"] = self.learning_rate
        entropy = _between(config.entropy_end, config.entropy, left)
        rule = LossRule(config.clip, config.value_clip, entropy)
        rows, explained = self.rows(rollout)
        parts: list[LossParts] = []
        norms: list[float] = []
        for _ in range(config.epochs):
            epoch = [self._step(rows[some], rule, norms) for some in self._parts(len(rows.choices))]
            parts += epoch
            if config.target_kl and mean_of(epoch).kl > config.target_kl:
                break
        return Learned(mean_of(parts), explained, float(np.mean(norms)))

    def rows(self, rollout: Rollout) -> tuple[Rows, float]:
        """The steps of a rollout in one long row each, and how well the critic foresaw them."""
        steps = rollout.steps
        values = self._values(rollout.inputs[: steps + 1])
        rewards = rollout.rewards[:steps].copy()
        if self._config.bootstrap:
            for final in rollout.finals:
                rewards[final.step, final.games] += self._config.gamma * self._values(final.inputs)
        gained = advantages(
            rewards, values, rollout.ends[:steps], self._config.gamma, self._config.gae_lambda
        )
        counted = np.flatnonzero(rollout.counted[:steps])
        values = values[:-1].reshape(-1)[counted]
        gained = gained.reshape(-1)[counted]
        returns = gained + values
        spread = returns.var()
        explained = float(1 - gained.var() / spread) if spread > 0 else float("nan")
        if self._config.normalise_advantages:
            gained = (gained - gained.mean()) / (gained.std() + 1e-8)
        everything = len(counted) == steps * rollout.shape.games

        def flat(array: NDArray[np.generic]) -> torch.Tensor:
            rows = array[:steps].reshape(steps * rollout.shape.games, *array.shape[2:])
            return torch.from_numpy(rows if everything else rows[counted])

        return Rows(
            inputs=flat(rollout.inputs),
            masks=None if rollout.masks is None else flat(rollout.masks),
            choices=flat(rollout.choices),
            log_probabilities=flat(rollout.log_probabilities),
            advantages=torch.from_numpy(gained),
            values=torch.from_numpy(values),
            returns=torch.from_numpy(returns),
        ), explained

    def arrays(self) -> Arrays:
        """Weights and the optimiser's memory, by name."""
        result = dict(self.networks.arrays())
        for name, weights in self.networks.named_parameters():
            for moment in ADAM_MOMENTS:
                if weights in self._optimiser.state:  # not before the first update
                    kept = self._optimiser.state[weights][moment]
                    result[f"adam.{moment}.{name}"] = kept.numpy()
        steps = [state["step"].item() for state in self._optimiser.state.values()]
        result["adam.step"] = np.array([steps[0] if steps else 0.0])
        return result

    def take(self, arrays: Arrays) -> None:
        """Go on from such arrays."""
        self.networks.take(arrays)
        (steps,) = arrays["adam.step"].tolist()
        if not steps:
            return
        for name, weights in self.networks.named_parameters():
            self._optimiser.state[weights] = {
                "step": torch.tensor(steps),
                **{
                    moment: torch.tensor(arrays[f"adam.{moment}.{name}"]) for moment in ADAM_MOMENTS
                },
            }

    def _parts(self, rows: int) -> Iterator[torch.Tensor]:
        """The rows in random order, cut into minibatches."""
        shuffled = torch.from_numpy(self.rng.permutation(rows))
        yield from shuffled.tensor_split(min(self._config.minibatches, rows))

    def _step(self, rows: Rows, rule: LossRule, norms: list[float]) -> LossParts:
        logits = self.networks.logits(rows.inputs)
        values = self.networks.values(rows.inputs)
        self._optimiser.zero_grad()
        parts = backward(logits, values, rows, rule)
        for network in (self.networks.actor, self.networks.critic):
            limit = self._config.max_gradient_norm
            norm = torch.nn.utils.clip_grad_norm_(network.parameters(), limit)
            if network is self.networks.actor:
                norms.append(norm.item())
        self._optimiser.step()
        return parts

    def _values(self, inputs: Floats) -> Floats:
        with torch.inference_mode():
            return self.networks.values(torch.from_numpy(inputs)).numpy()


def _between(low: float, high: float, share: float) -> float:
    return low + share * (high - low)
