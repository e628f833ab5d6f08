"""All that a resumed run needs to go on as if it had never stopped."""

from typing import Any, TypeAlias

import numpy as np

from cagepool.envs.native import NativeVectorEnv
from cagepool.sim.features import FeatureEncoder
from cagepool.train.rollout import Collector
from cagepool.train.rollout_buffer import Rollout
from cagepool.types import Arrays

State: TypeAlias = dict[str, Any]  # plain values, fit for JSON


def collector_state(collector: Collector, rng: np.random.Generator) -> tuple[Arrays, State]:
    """Where the collector stands, as arrays and plain values."""
    arrays: Arrays = {
        "collector.returns": collector.returns.copy(),
        "collector.lengths": collector.lengths.copy(),
        "collector.active": collector.active.copy(),
    }
    if isinstance(collector.inputs, FeatureEncoder):
        arrays["collector.memories"] = collector.inputs.history.copy()
    if isinstance(collector.envs, NativeVectorEnv):
        games = collector.envs.save(np.arange(collector.envs.num_envs))
        arrays["collector.games"] = np.frombuffer(b"".join(games), np.uint8)
        arrays["collector.game_sizes"] = np.array([len(game) for game in games])
    state = {
        "episodes": collector.done,
        "begun": collector.begun,
        "steps": collector.played_steps,
        "choice_rng": rng.bit_generator.state,
    }
    if collector.order_rng is not None:
        state["order_rng"] = collector.order_rng.bit_generator.state
    return arrays, state


def restore_collector(
    collector: Collector, rng: np.random.Generator, rollout: Rollout, arrays: Arrays, state: State
) -> None:
    """Let a new collector go on from there; its first inputs are written to the rollout.

    Environments that can't be saved begin new episodes, with other luck than any before, in the
    place of those that were under way.
    """
    rng.bit_generator.state = state["choice_rng"]
    collector.done = state["episodes"]
    collector.played_steps = state["steps"]
    if not isinstance(collector.envs, NativeVectorEnv):
        left = collector.total - collector.done
        collector.begun = collector.done + min(collector.envs.num_envs, left)
        collector.active[:] = np.arange(collector.envs.num_envs) < left
        collector.start(int(rng.integers(2**32)), rollout)
        return
    collector.begun = state["begun"]
    if collector.order_rng is not None:
        collector.order_rng.bit_generator.state = state["order_rng"]
    collector.returns[:] = arrays["collector.returns"]
    collector.lengths[:] = arrays["collector.lengths"]
    collector.active[:] = arrays["collector.active"]
    if isinstance(collector.inputs, FeatureEncoder):
        collector.inputs.history[:] = arrays["collector.memories"]
    ends = np.cumsum(arrays["collector.game_sizes"])[:-1]
    games = [part.tobytes() for part in np.split(arrays["collector.games"], ends)]
    collector.envs.restore(np.arange(len(games)), games)
    collector.write(collector.envs.observations, rollout, 0)
