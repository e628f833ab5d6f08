"""PPO in one file and one program, in the style of PureJaxRL: games, networks and updates in JAX.

python examples/purejaxrl_ppo.py --red B_lineAgent --seeds 2 --out runs/jax
cagepool evaluate runs/jax

Everything from the first reset to the last update is one jitted function, vectorized over seeds.
The best seed is written as a run folder, which plays natively and in CybORG.
"""

import argparse
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cagepool import runs
from cagepool.jax import Cage2, Features, History, State

Layers: TypeAlias = list[tuple[Array, Array]]  # weights, (outputs, inputs), and biases
HIDDEN = (64, 64)
MASKED_LOGIT = -1e30


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the game and of PPO."""

    red: str = "B_lineAgent"
    edition: str = "2.1"
    max_steps: int = 100
    n_envs: int = 256
    n_steps: int = 100  # per environment, between two updates
    updates: int = 80
    n_epochs: int = 4
    n_minibatches: int = 8
    learning_rate: float = 2e-3  # falls to 0
    gamma: float = 0.995
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.01  # falls to 0
    max_grad_norm: float = 0.5
    reward_scale: float = 0.1
    seeds: int = 1
    seed: int = 0


class Networks(NamedTuple):
    """Actor and critic."""

    actor: Layers
    critic: Layers


class Adam(NamedTuple):
    """Moments of the gradient."""

    mean: Networks
    square: Networks
    step: Array


class Games(NamedTuple):
    """All games, with what the policy sees of them."""

    states: State
    histories: History
    observations: Array


class Rollout(NamedTuple):
    """Transitions; every array is (steps, environments, ...)."""

    features: Array
    masks: Array
    choices: Array
    log_probs: Array
    values: Array
    rewards: Array
    ends: Array
    returns: Array  # of the episodes that ended; 0 elsewhere


def init_mlp(key: Array, sizes: tuple[int, ...], gain: float) -> Layers:
    """Create an MLP with orthogonal weights."""
    layers = []
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        scale = gain if number == len(sizes) - 2 else 2**0.5
        make = jax.nn.initializers.orthogonal(scale)
        weights = make(jax.random.fold_in(key, number), (outputs, inputs), jnp.float32)
        layers.append((weights, jnp.zeros(outputs)))
    return layers


def apply_mlp(layers: Layers, rows: Array) -> Array:
    """Forward pass."""
    for weights, biases in layers[:-1]:
        rows = jnp.tanh(rows @ weights.T + biases)
    weights, biases = layers[-1]
    return rows @ weights.T + biases


def log_policy(actor: Layers, features: Array, masks: Array) -> Array:
    """Logarithms of the probabilities of all choices."""
    logits = jnp.where(masks, apply_mlp(actor, features), MASKED_LOGIT)
    return jax.nn.log_softmax(logits)


def pick(log_probs: Array, choices: Array) -> Array:
    """Value of the chosen column in each row."""
    return jnp.sum(log_probs * jax.nn.one_hot(choices, log_probs.shape[-1]), axis=-1)


class Ppo:
    """The training of one seed as a pure function."""

    def __init__(self, settings: Settings) -> None:
        """Create the environment and the features."""
        self.settings = settings
        self.env = Cage2(red=settings.red, edition=settings.edition)
        self.params = self.env.default_params.replace(max_steps_in_episode=settings.max_steps)
        self.features = Features(horizon=settings.max_steps)

    def train(self, key: Array) -> tuple[Networks, Array]:
        """Train; returns the networks and the mean return of the episodes of each update."""
        settings = self.settings
        key, init_key, env_key = jax.random.split(key, 3)
        networks = self.init_networks(init_key)
        zeros = jax.tree.map(jnp.zeros_like, networks)
        carry: Any = (networks, Adam(zeros, zeros, jnp.zeros(())), self.start_games(env_key), key)
        left = 1.0 - jnp.arange(settings.updates) / settings.updates
        (networks, *_), returns = jax.lax.scan(self.update, carry, left)
        return networks, returns

    def init_networks(self, key: Array) -> Networks:
        """Create both networks."""
        actor_key, critic_key = jax.random.split(key)
        inputs = (self.features.size, *HIDDEN)
        actor = init_mlp(actor_key, (*inputs, self.features.n_choices), 0.01)
        return Networks(actor, init_mlp(critic_key, (*inputs, 1), 1.0))

    def start_games(self, key: Array) -> Games:
        """Reset all environments."""
        keys = jax.random.split(key, self.settings.n_envs)
        observations, states = jax.vmap(partial(self.env.reset, params=self.params))(keys)
        start = self.features.start()
        copies = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(keys), *x.shape)), start)
        return Games(states, copies, observations)

    def update(self, carry: Any, left: Array) -> tuple[Any, Array]:
        """Collect a rollout and train on it; `left` is the share of the training that is left."""
        networks, adam, games, key = carry
        key, play_key, train_key = jax.random.split(key, 3)
        play = partial(self.play_step, networks)
        games, rollout = jax.lax.scan(
            play, games, jax.random.split(play_key, self.settings.n_steps)
        )
        features, _ = jax.vmap(self.features.encode)(games.observations, games.histories)
        advantages = self.advantages(rollout, apply_mlp(networks.critic, features)[:, 0])
        networks, adam = self.train_epochs(networks, adam, (rollout, advantages, left, train_key))
        episodes = jnp.maximum(rollout.ends.sum(), 1)
        return (networks, adam, games, key), rollout.returns.sum() / episodes

    def play_step(self, networks: Networks, games: Games, key: Array) -> tuple[Games, Rollout]:
        """Play one action in every environment."""
        features, masks = jax.vmap(self.features.encode)(games.observations, games.histories)
        log_probs = log_policy(networks.actor, features, masks)
        choices = jax.random.categorical(key, log_probs)
        values = apply_mlp(networks.critic, features)[:, 0]
        games, rewards, ends, returns = jax.vmap(self.step_game)(games, choices)
        scaled = rewards * self.settings.reward_scale
        chosen = pick(log_probs, choices)
        return games, Rollout(features, masks, choices, chosen, values, scaled, ends, returns)

    def step_game(self, game: Games, choice: Array) -> tuple[Games, Array, Array, Array]:
        """Step one environment; the history starts again with its episode."""
        action = self.features.action(choice)
        unused = jnp.zeros(2, jnp.uint32)  # a game has random numbers of its own
        observation, state, reward, _, end, info = self.env.step(
            unused, game.states, action, self.params
        )
        history = self.features.update(game.histories, action, observation)
        history = jax.tree.map(partial(jnp.where, end), self.features.start(), history)
        returns = jnp.where(end, info["episode_return"], 0.0)
        return Games(state, history, observation), reward, end, returns

    def advantages(self, rollout: Rollout, last_values: Array) -> Array:
        """Generalized advantage estimation (GAE), (steps, environments)."""
        settings = self.settings

        def step_back(carry: tuple[Array, Array], row: Rollout) -> tuple[Any, Array]:
            next_advantage, next_value = carry
            going_on = 1.0 - row.ends
            error = row.rewards + settings.gamma * next_value * going_on - row.values
            advantage = error + settings.gamma * settings.gae_lambda * going_on * next_advantage
            return (advantage, row.values), advantage

        start = (jnp.zeros_like(last_values), last_values)
        return jax.lax.scan(step_back, start, rollout, reverse=True)[1]

    def train_epochs(self, networks: Networks, adam: Adam, data: Any) -> tuple[Networks, Adam]:
        """Train on a rollout for several epochs of minibatches."""
        rollout, advantages, left, key = data
        rows = {**rollout._asdict(), "advantages": advantages}
        rows = {name: array.reshape(-1, *array.shape[2:]) for name, array in rows.items()}
        count = self.settings.n_minibatches

        def train_minibatch(carry: Any, minibatch: dict[str, Array]) -> tuple[Any, None]:
            networks, adam = carry
            gradient = jax.grad(self.loss)(networks, minibatch, left)
            return self.apply_gradient(networks, adam, gradient, left), None

        def train_epoch(carry: Any, epoch_key: Array) -> tuple[Any, None]:
            order = jax.random.permutation(epoch_key, len(rows["choices"]))
            parts = {
                name: array[order].reshape(count, -1, *array.shape[1:])
                for name, array in rows.items()
            }
            return jax.lax.scan(train_minibatch, carry, parts)

        keys = jax.random.split(key, self.settings.n_epochs)
        (networks, adam), _ = jax.lax.scan(train_epoch, (networks, adam), keys)
        return networks, adam

    def loss(self, networks: Networks, minibatch: dict[str, Array], left: Array) -> Array:
        """Clipped surrogate loss, value loss and entropy bonus."""
        clip = self.settings.clip_range
        log_probs = log_policy(networks.actor, minibatch["features"], minibatch["masks"])
        ratio = jnp.exp(pick(log_probs, minibatch["choices"]) - minibatch["log_probs"])
        advantages = minibatch["advantages"]
        normalized = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
        surrogate = jnp.minimum(ratio * normalized, clipped * normalized).mean()
        targets = advantages + minibatch["values"]
        values = apply_mlp(networks.critic, minibatch["features"])[:, 0]
        entropy = -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1).mean()
        value_loss = 0.5 * jnp.square(values - targets).mean()
        return value_loss - surrogate - self.settings.ent_coef * left * entropy

    def apply_gradient(
        self, networks: Networks, adam: Adam, gradient: Networks, left: Array
    ) -> tuple[Networks, Adam]:
        """Clip the norm of the gradient and take a step of Adam."""
        norm = jnp.sqrt(sum(jnp.square(leaf).sum() for leaf in jax.tree.leaves(gradient)))
        scale = jnp.minimum(1.0, self.settings.max_grad_norm / (norm + 1e-6))
        gradient = jax.tree.map(lambda g: g * scale, gradient)
        step = adam.step + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, adam.mean, gradient)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, adam.square, gradient)
        rate = self.settings.learning_rate * left / (1 - 0.9**step)

        def moved(weights: Array, m: Array, s: Array) -> Array:
            return weights - rate * m / (jnp.sqrt(s / (1 - 0.999**step)) + 1e-5)

        return jax.tree.map(moved, networks, mean, square), Adam(mean, square, step)


def train_seeds(settings: Settings) -> tuple[Networks, Array]:
    """Train all seeds in one program; the first axis of the results is the seed."""
    keys = jax.vmap(jax.random.PRNGKey)(settings.seed + jnp.arange(settings.seeds))
    networks, returns = jax.block_until_ready(jax.jit(jax.vmap(Ppo(settings).train))(keys))
    return networks, returns


def save_run(path: Path, settings: Settings, actor: Layers) -> None:
    """Write a run folder with the actor, as `cagepool evaluate` reads it."""
    env = {"id": "cagepool/CAGE2-v0", "red_agent": settings.red, "edition": settings.edition}
    groups: dict[str, dict[str, Any]] = {
        "env": {**env, "max_steps": settings.max_steps},
        "ppo": {"activation": "tanh"},
        "features": asdict(Features().config),
    }
    run = runs.create(path, groups, version("cagepool"))
    arrays = {}
    for number, (weights, biases) in enumerate(actor):
        arrays[f"actor.{2 * number}.weight"] = np.ascontiguousarray(weights, np.float32)
        arrays[f"actor.{2 * number}.bias"] = np.asarray(biases, np.float32)
    run.save_checkpoint("best", arrays, {"update": settings.updates})


def main() -> None:
    """Parse the command line, train, and write the best seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in asdict(Settings()).items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=type(value), default=value, help=f"default: {value}")
    parser.add_argument("--out", type=Path, help="run folder to write; default: none")
    arguments = vars(parser.parse_args())
    out = arguments.pop("out")
    settings = Settings(**arguments)
    start = perf_counter()
    networks, returns = train_seeds(settings)
    seconds = perf_counter() - start
    steps = settings.seeds * settings.updates * settings.n_envs * settings.n_steps
    last = np.asarray(returns)[:, -1]
    for seed, value in enumerate(last, settings.seed):
        print(f"seed {seed}: mean return {value:.2f} in the last update")
    print(f"{steps:,} steps in {seconds:.0f} s with compilation: {steps / seconds:,.0f} steps/s")
    if out is not None:
        best = int(last.argmax())
        save_run(out, settings, jax.tree.map(lambda x: x[best], networks.actor))
        print(f"run folder of seed {settings.seed + best}: {out}")


if __name__ == "__main__":
    main()
