"""PPO in one file, to read and to change: plain PyTorch on natively simulated CAGE-2.

python examples/ppo_single_file.py --red B_lineAgent --updates 60
cagepool evaluate examples.ppo_single_file:SavedPolicy
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import cagepool
from cagepool.envs import NativeVectorEnv

SAVED = Path("ppo_single_file.pt")  # in the current folder


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the game and of PPO."""

    red: str = "B_lineAgent"
    max_steps: int = 30
    n_envs: int = 128
    n_steps: int = 30  # per environment, between two updates
    updates: int = 60
    n_epochs: int = 4
    n_minibatches: int = 4
    learning_rate: float = 2e-3
    gamma: float = 0.95
    gae_lambda: float = 0.9
    clip_range: float = 0.2
    ent_coef: float = 0.01
    seed: int = 0


class Agent(nn.Module):
    """Actor and critic."""

    def __init__(self, observation_size: int, actions: int) -> None:
        """Create two networks with two hidden layers each."""
        super().__init__()
        self.actor = mlp(observation_size, actions, gain=0.01)
        self.critic = mlp(observation_size, 1, gain=1.0)

    def policy(self, observations: Tensor, masks: Tensor) -> torch.distributions.Categorical:
        """Distribution of the actions; masked actions have probability 0."""
        logits = self.actor(observations).masked_fill(~masks, -1e9)
        return torch.distributions.Categorical(logits=logits, validate_args=False)

    def value(self, observations: Tensor) -> Tensor:
        """Expected return."""
        values: Tensor = self.critic(observations).squeeze(-1)
        return values


def mlp(inputs: int, outputs: int, gain: float) -> nn.Sequential:
    """Create an MLP with orthogonal weights."""
    sizes = [(inputs, 64, 2**0.5), (64, 64, 2**0.5), (64, outputs, gain)]
    layers: list[nn.Module] = []
    for size_in, size_out, scale in sizes:
        layer = nn.Linear(size_in, size_out)
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


@dataclass
class Rollout:
    """Transitions; every tensor is (steps, environments, ...)."""

    observations: Tensor
    masks: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    rewards: Tensor
    dones: Tensor


class Collector:
    """Steps the environments with the policy and keeps the returns of finished episodes."""

    def __init__(self, settings: Settings, envs: NativeVectorEnv) -> None:
        """Reset the environments."""
        self.settings = settings
        self.envs = envs
        self.observations = torch.from_numpy(envs.reset(seed=settings.seed)[0])
        self.returns: list[float] = []

    @torch.no_grad()
    def collect(self, agent: Agent) -> tuple[Rollout, Tensor]:
        """Collect a rollout; returns it and the values of the states after its last step."""
        steps = [self.step(agent) for _ in range(self.settings.n_steps)]
        columns = [torch.stack(column) for column in zip(*steps, strict=True)]
        return Rollout(*columns), agent.value(self.observations)

    def step(self, agent: Agent) -> tuple[Tensor, ...]:
        """Play one action in every environment; returns one row per field of a rollout."""
        observations, masks = self.observations, torch.from_numpy(self.envs.action_masks())
        policy = agent.policy(observations, masks)
        actions = policy.sample()
        next_observations, rewards, _, truncations, infos = self.envs.step(actions.numpy())
        scores = torch.from_numpy(rewards).float()
        dones = torch.from_numpy(truncations)
        if truncations.any():  # a time limit: bootstrap with the value of the last state
            last = torch.from_numpy(self.envs.batch.final_observations)
            scores += self.settings.gamma * agent.value(last) * dones
            self.returns += infos["episode"]["r"][infos["_episode"]].tolist()
        self.observations = torch.from_numpy(next_observations)
        values = agent.value(observations)
        return observations, masks, actions, policy.log_prob(actions), values, scores, dones


def gae_advantages(settings: Settings, rollout: Rollout, next_values: Tensor) -> Tensor:
    """Generalized advantage estimation (GAE), (steps, environments)."""
    advantages = torch.zeros_like(rollout.rewards)
    last = torch.zeros_like(next_values)
    for step in reversed(range(len(advantages))):
        going_on = (~rollout.dones[step]).float()
        target = rollout.rewards[step] + settings.gamma * next_values * going_on
        error = target - rollout.values[step]
        last = error + settings.gamma * settings.gae_lambda * going_on * last
        advantages[step] = last
        next_values = rollout.values[step]
    return advantages


def update(
    settings: Settings,
    agent: Agent,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    advantages: Tensor,
) -> None:
    """Train on a rollout for several epochs of minibatches."""
    flat = {name: values.flatten(0, 1) for name, values in vars(rollout).items()}
    flat["advantages"] = advantages.flatten()
    flat["returns"] = flat["advantages"] + flat["values"]
    for _ in range(settings.n_epochs):
        shuffled = torch.randperm(len(flat["returns"]))
        for rows in shuffled.chunk(settings.n_minibatches):
            minibatch = {name: values[rows] for name, values in flat.items()}
            optimizer.zero_grad()
            ppo_loss(settings, agent, minibatch).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def ppo_loss(settings: Settings, agent: Agent, minibatch: dict[str, Tensor]) -> Tensor:
    """Clipped surrogate loss, value loss and entropy bonus."""
    policy = agent.policy(minibatch["observations"], minibatch["masks"])
    ratio = (policy.log_prob(minibatch["actions"]) - minibatch["log_probs"]).exp()
    advantages = minibatch["advantages"]
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped = ratio.clamp(1 - settings.clip_range, 1 + settings.clip_range)
    surrogate = torch.min(ratio * advantages, clipped * advantages).mean()
    errors = agent.value(minibatch["observations"]) - minibatch["returns"]
    entropy = policy.entropy().mean()
    total: Tensor = 0.5 * errors.square().mean() - surrogate - settings.ent_coef * entropy
    return total


class SavedPolicy:
    """The saved agent, as `cagepool evaluate` takes policies: observations to actions."""

    def __init__(self) -> None:
        """Read the agent that was trained last in the current folder."""
        state = torch.load(SAVED, weights_only=True)
        self.agent = Agent(state["actor.0.weight"].shape[1], len(state["actor.4.bias"]))
        self.agent.load_state_dict(state)

    @torch.no_grad()
    def __call__(
        self, observations: NDArray[np.float32], action_masks: NDArray[np.bool_]
    ) -> NDArray[np.float32]:
        """Probabilities of all actions, (games, 145); the most probable is played."""
        policy = self.agent.policy(torch.from_numpy(observations), torch.from_numpy(action_masks))
        probabilities: NDArray[np.float32] = policy.probs.numpy()
        return probabilities


def train(settings: Settings) -> None:
    """Train a defender, print its mean return, and save it."""
    torch.manual_seed(settings.seed)
    torch.set_num_threads(1)  # networks this small gain nothing from more
    envs = cagepool.make_vec(
        settings.n_envs, red=settings.red, max_steps=settings.max_steps, autoreset="same_step"
    )
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    agent = Agent(envs.observations.shape[1], int(envs.single_action_space.n))
    optimizer = torch.optim.Adam(agent.parameters(), settings.learning_rate, eps=1e-5)
    collector = Collector(settings, envs)
    start = perf_counter()
    for number in range(1, settings.updates + 1):
        rollout, next_values = collector.collect(agent)
        advantages = gae_advantages(settings, rollout, next_values)
        update(settings, agent, optimizer, rollout, advantages)
        if number % 10 == 0 or number == 1:
            recent = collector.returns[-settings.n_envs :]
            mean = sum(recent) / max(1, len(recent))
            print(f"update {number:4}  return {mean:8.2f}  {perf_counter() - start:5.1f} s")
    torch.save(agent.state_dict(), SAVED)


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in vars(Settings()).items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=type(value), default=value, help=f"default: {value}")
    train(Settings(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
