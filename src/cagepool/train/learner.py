"""The learner: turns a rollout into a better policy."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from cagepool._stages import stage
from cagepool.train.adam import Adam
from cagepool.train.advantage import advantages
from cagepool.train.config import PpoConfig
from cagepool.train.gradient import PartGradient
from cagepool.train.loss import LossParts, LossRule, Part, Rows, mean_of, sum_of
from cagepool.train.networks import Networks
from cagepool.train.passes import Forward
from cagepool.train.rollout_buffer import Rollout
from cagepool.types import Arrays, Float32s

Number = TypeVar("Number", bound=np.generic)

LEAST_PART = 256  # rows: with fewer, handing them to another thread costs more than it saves


class Learned(NamedTuple):
    """What one update did."""

    parts: LossParts
    explained_variance: float
    gradient_norm: float


class Learner:
    """Networks, their optimiser, and the settings of PPO; close it to end its threads.

    A minibatch is cut into a part for each thread. Their gradients are added up in the order of
    the parts, so that no number depends on timing.
    """

    def __init__(self, networks: Networks, config: PpoConfig, rng: np.random.Generator) -> None:
        """Learn with these networks; `rng` shuffles."""
        self.networks = networks
        self.rng = rng
        self.learning_rate = config.learning_rate
        self._config = config
        self._gradient = torch.zeros_like(networks.flat)
        self._optimiser = Adam(networks.flat)
        self._critic = Forward(networks.critic)
        self._gradients = [PartGradient(networks) for _ in range(config.threads)]
        self._executor = other_threads(config.threads)

    def close(self) -> None:
        """End the threads."""
        self._executor.shutdown()

    def update(self, rollout: Rollout, progress: float) -> Learned:
        """Learn from a rollout, `progress` of the way (0 to 1) through the run."""
        config = self._config
        left = 1 - progress
        self.learning_rate = _between(config.learning_rate_end, config.learning_rate, left)
        entropy = _between(config.ent_coef_end, config.ent_coef, left)
        rule = LossRule(config.clip_range, config.clip_range_vf, entropy)
        with stage("advantages"):
            rows, explained = self.rows(rollout)
        parts: list[LossParts] = []
        norms: list[float] = []
        for _ in range(config.n_epochs):
            epoch = [self._step(rows, some, rule, norms) for some in self._parts(rows)]
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
        if self._config.normalize_advantage:
            gained = (gained - gained.mean()) / (gained.std() + 1e-8)
        everything = len(counted) == steps * rollout.shape.games

        def flat(array: NDArray[Number]) -> NDArray[Number]:
            rows = array[:steps].reshape(steps * rollout.shape.games, *array.shape[2:])
            return rows if everything else rows[counted]

        return Rows(
            inputs=torch.from_numpy(flat(rollout.inputs)),
            masks=None if rollout.masks is None else flat(rollout.masks),
            choices=flat(rollout.choices),
            log_probabilities=flat(rollout.log_probabilities),
            advantages=gained,
            values=values,
            returns=returns,
        ), explained

    def arrays(self) -> Arrays:
        """Weights and the optimiser's memory, by name."""
        result = dict(self.networks.arrays())
        for moment, flat in self._moments.items():
            for name, part in self.networks.named(flat).items():
                result[f"adam.{moment}.{name}"] = part.numpy()
        result["adam.step"] = np.array([float(self._optimiser.steps)])
        return result

    def take(self, arrays: Arrays) -> None:
        """Go on from such arrays."""
        self.networks.take(arrays)
        self._optimiser.steps = int(arrays["adam.step"][0])
        for moment, flat in self._moments.items():
            for name, part in self.networks.named(flat).items():
                part.copy_(torch.tensor(arrays[f"adam.{moment}.{name}"]))

    @property
    def _moments(self) -> dict[str, torch.Tensor]:
        """The optimiser's memory, by the names that it has in files."""
        return {"exp_avg": self._optimiser.mean, "exp_avg_sq": self._optimiser.square}

    def _parts(self, rows: Rows) -> Iterator[torch.Tensor]:
        """The numbers of the rows in random order, cut into minibatches."""
        count = len(rows.choices)
        shuffled = torch.from_numpy(self.rng.permutation(count))
        yield from shuffled.tensor_split(min(self._config.n_minibatches, count))

    def _step(
        self, rows: Rows, some: torch.Tensor, rule: LossRule, norms: list[float]
    ) -> LossParts:
        mine, *others = self._gradients[: max(1, len(some) // LEAST_PART)]
        first, *rest = (Part(rows, len(some)) for rows in some.tensor_split(1 + len(others)))
        elsewhere = [
            self._executor.submit(gradient.write, rows, part, rule)
            for gradient, part in zip(others, rest, strict=True)
        ]
        parts = [mine.write(rows, first, rule)]
        with stage("thread_wait"):
            parts += [one.result() for one in elsewhere]
        torch.sum(torch.stack([one.flat for one in (mine, *others)]), 0, out=self._gradient)
        of_actor, of_critic = self.networks.halves(self._gradient)
        norms.append(_clip(of_actor, self._config.max_grad_norm))
        _clip(of_critic, self._config.max_grad_norm)
        self._optimiser.step(self._gradient, self.learning_rate)
        return sum_of(parts)

    def _values(self, inputs: Float32s) -> Float32s:
        rows = torch.from_numpy(inputs.reshape(-1, inputs.shape[-1]))
        return self._critic.run(rows).reshape(inputs.shape[:-1]).numpy().copy()


def other_threads(threads: int) -> ThreadPoolExecutor:
    """Threads beside the present one, in which PyTorch starts none of its own."""
    return ThreadPoolExecutor(max(1, threads - 1), initializer=use_threads, initargs=(1,))


def use_threads(threads: int) -> None:
    """Let PyTorch split each sum among so many threads when it is called from this one."""
    torch.set_num_threads(threads)


def _clip(gradient: torch.Tensor, limit: float) -> float:
    """Make a gradient no longer than the limit; returns its length before."""
    norm = float(torch.linalg.vector_norm(gradient))
    if norm > limit:
        gradient.mul_(limit / norm)
    return norm


def _between(low: float, high: float, share: float) -> float:
    return low + share * (high - low)
