"""PPO in one file, to read and to change: plain PyTorch on a pool of native games.

python examples/ppo_single_file.py --red B_lineAgent --updates 60
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import gymnasium as gym
import torch
from torch import Tensor, nn

import cagepool
from cagepool.envs import NativeVectorEnv


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is played and how it is learned."""

    red: str = "B_lineAgent"
    max_steps: int = 30
    games: int = 128
    steps: int = 30  # in each game, between two updates
    updates: int = 60
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 2e-3
    gamma: float = 0.95
    decay: float = 0.9  # the lambda of generalised advantage estimation
    clip: float = 0.2
    entropy: float = 0.01
    seed: int = 0


class Agent(nn.Module):
    """An actor and a critic."""

    def __init__(self, inputs: int, actions: int) -> None:
        """Two layers each."""
        super().__init__()
        self.actor = network(inputs, actions, gain=0.01)
        self.critic = network(inputs, 1, gain=1.0)

    def policy(self, seen: Tensor, masks: Tensor) -> torch.distributions.Categorical:
        """How likely each action is; never one that can't work."""
        logits = self.actor(seen).masked_fill(~masks, -1e9)
        return torch.distributions.Categorical(logits=logits, validate_args=False)

    def value(self, seen: Tensor) -> Tensor:
        """The return to expect from here."""
        values: Tensor = self.critic(seen).squeeze(-1)
        return values


def network(inputs: int, outputs: int, gain: float) -> nn.Sequential:
    """A small perceptron."""
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
    """What was played: every tensor is (steps, games, ...)."""

    seen: Tensor
    masks: Tensor
    actions: Tensor
    log_probabilities: Tensor
    values: Tensor
    rewards: Tensor
    ends: Tensor


class Player:
    """Plays the games on and on, and keeps the returns of episodes that end."""

    def __init__(self, settings: Settings, envs: NativeVectorEnv) -> None:
        """Start all games."""
        self.settings = settings
        self.envs = envs
        self.seen = torch.from_numpy(envs.reset(seed=settings.seed)[0])
        self.returns: list[float] = []

    @torch.no_grad()
    def collect(self, agent: Agent) -> tuple[Rollout, Tensor]:
        """A rollout, and the values of where it ends."""
        turns = [self.turn(agent) for _ in range(self.settings.steps)]
        columns = [torch.stack(column) for column in zip(*turns, strict=True)]
        return Rollout(*columns), agent.value(self.seen)

    def turn(self, agent: Agent) -> tuple[Tensor, ...]:
        """Play one action in every game."""
        seen, masks = self.seen, torch.from_numpy(self.envs.action_masks())
        policy = agent.policy(seen, masks)
        actions = policy.sample()
        after, rewards, _, truncations, infos = self.envs.step(actions.numpy())
        gains = torch.from_numpy(rewards).float()
        ends = torch.from_numpy(truncations)
        if truncations.any():  # cut off, not lost: what would have come counts too
            last = torch.from_numpy(self.envs.batch.final_observations)
            gains += self.settings.gamma * agent.value(last) * ends
            self.returns += infos["episode"]["r"][infos["_episode"]].tolist()
        self.seen = torch.from_numpy(after)
        return seen, masks, actions, policy.log_prob(actions), agent.value(seen), gains, ends


def advantages(settings: Settings, rollout: Rollout, next_values: Tensor) -> Tensor:
    """Generalised advantage estimates, (steps, games)."""
    result = torch.zeros_like(rollout.rewards)
    carried = torch.zeros_like(next_values)
    for step in reversed(range(len(result))):
        alive = (~rollout.ends[step]).float()
        ahead = settings.gamma * next_values * alive
        error = rollout.rewards[step] + ahead - rollout.values[step]
        result[step] = carried = error + settings.gamma * settings.decay * alive * carried
        next_values = rollout.values[step]
    return result


def improve(
    settings: Settings,
    agent: Agent,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    advantage: Tensor,
) -> None:
    """Several passes over a rollout, in minibatches."""
    flat = {name: values.flatten(0, 1) for name, values in vars(rollout).items()}
    flat["advantage"] = advantage.flatten()
    flat["target"] = flat["advantage"] + flat["values"]
    for _ in range(settings.epochs):
        order = torch.randperm(len(flat["target"]))
        for rows in order.chunk(settings.minibatches):
            lost = loss(settings, agent, {name: values[rows] for name, values in flat.items()})
            optimizer.zero_grad()
            lost.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def loss(settings: Settings, agent: Agent, rows: dict[str, Tensor]) -> Tensor:
    """Clipped policy loss, value loss and entropy."""
    policy = agent.policy(rows["seen"], rows["masks"])
    ratio = (policy.log_prob(rows["actions"]) - rows["log_probabilities"]).exp()
    advantage = rows["advantage"]
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    gain = torch.min(ratio * advantage, clipped * advantage).mean()
    error = (agent.value(rows["seen"]) - rows["target"]).square().mean()
    total: Tensor = 0.5 * error - gain - settings.entropy * policy.entropy().mean()
    return total


def train(settings: Settings) -> None:
    """Train a defender and tell how it does."""
    torch.manual_seed(settings.seed)
    torch.set_num_threads(1)  # networks this small gain nothing from more
    envs = cagepool.make_vec(
        settings.games, red=settings.red, max_steps=settings.max_steps, autoreset="same_step"
    )
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    agent = Agent(envs.observations.shape[1], int(envs.single_action_space.n))
    optimizer = torch.optim.Adam(agent.parameters(), settings.learning_rate, eps=1e-5)
    player = Player(settings, envs)
    began_s = perf_counter()
    for update in range(1, settings.updates + 1):
        rollout, next_values = player.collect(agent)
        improve(settings, agent, optimizer, rollout, advantages(settings, rollout, next_values))
        if update % 10 == 0 or update == 1:
            recent = player.returns[-settings.games :]
            mean = sum(recent) / max(1, len(recent))
            print(f"update {update:4}  return {mean:8.2f}  {perf_counter() - began_s:5.1f} s")


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in vars(Settings()).items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=type(value), default=value, help=f"default: {value}")
    train(Settings(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
