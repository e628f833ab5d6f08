"""Plays the same games in the core and in JAX and compares every field after every step."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cagepool import _core
from cagepool.jax import Cage2
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.masks import action_masks

UNUSED_KEY = jnp.zeros(2, jnp.uint32)
CHUNK = 50  # steps that one program plays


class Lockstep:
    """Games of the core and of JAX from the same seeds, with resets in the same step."""

    def __init__(self, env: Cage2, games: int, *, horizon: int = 30, seed: int = 7) -> None:
        self.env = env
        self.games = games
        self.params = env.default_params.replace(max_steps_in_episode=horizon)
        self.batch = Batch(
            games,
            BatchConfig(
                red=env.red,
                edition=env.edition,
                green=env.green,
                order=env.order,
                knowledge=env.knowledge,
                max_steps=horizon,
                autoreset="same_step",
                observation_dtype=env.observation_dtype,
            ),
        )
        self.batch.reset(np.arange(seed, seed + games, dtype=np.uint64))
        self.rng = np.random.default_rng(seed)
        keys = jnp.stack([jax.random.PRNGKey(seed + game) for game in range(games)])
        _, self.states = jax.vmap(lambda key: env.reset(key, self.params))(keys)
        self.program = jax.jit(self._play_chunk)

    def play(self, steps: int) -> int:
        """Play random actions, and compare; returns the number of steps of all games."""
        for _ in range(steps // CHUNK):
            actions, red_actions = self._random_actions()
            given = self.env.red == "given"
            moves = (actions, red_actions) if given else actions
            self.states, rows = self.program(self.states, moves)
            rows = jax.tree.map(np.asarray, rows)
            for step in range(CHUNK):
                self.batch.step(actions[step], red_actions[step] if given else None)
                self._compare(jax.tree.map(lambda values, step=step: values[step], rows))
        return steps * self.games

    def _random_actions(self) -> tuple[Any, Any]:
        shape = (CHUNK, self.games)
        actions = self.rng.integers(0, _core.ACTION_COUNT, shape)
        actions[self.rng.random(shape) < 0.4] = 0  # let red get further
        return actions, self.rng.integers(0, _core.RED_ACTION_COUNT, shape)

    def _play_chunk(self, states: Any, moves: Any) -> tuple[Any, Any]:
        def step(states: Any, moves: Any) -> tuple[Any, Any]:
            play = jax.vmap(self.env.step, in_axes=(None, 0, 0, None))
            observations, states, rewards, _, truncations, infos = play(
                UNUSED_KEY, states, moves, self.params
            )
            return states, {
                "observations": observations,
                "rewards": rewards,
                "truncations": truncations,
                "final_observations": infos["final_observation"],
                "episode_returns": infos["episode_return"],
                "moves": infos["moves"],
                "true_state": jax.vmap(self.env.true_state)(states),
                "masks": jax.vmap(self.env.action_mask)(states),
                "counters": infos.get("counters", 0),
            }

        return jax.lax.scan(step, states, moves)

    def _compare(self, row: dict[str, Any]) -> None:
        batch, ended = self.batch, self.batch.truncations
        np.testing.assert_array_equal(batch.observations, row["observations"])
        np.testing.assert_array_equal(batch.rewards.astype(np.float32), row["rewards"])
        np.testing.assert_array_equal(batch.truncations, row["truncations"])
        np.testing.assert_array_equal(
            batch.final_observations[ended], row["final_observations"][ended]
        )
        np.testing.assert_array_equal(
            batch.episode_returns[ended].astype(np.float32), row["episode_returns"][ended]
        )
        for name in batch.moves.dtype.names or ():
            np.testing.assert_array_equal(batch.moves[name], row["moves"][name], name)
        for name in batch.true_state.dtype.names or ():
            np.testing.assert_array_equal(batch.true_state[name], row["true_state"][name], name)
        np.testing.assert_array_equal(action_masks(batch.true_state["decoys"]), row["masks"])
        if self.env.order is not None:
            counters = np.where(ended[:, None], batch.episode_counters, batch.counters)
            np.testing.assert_array_equal(counters, row["counters"])
