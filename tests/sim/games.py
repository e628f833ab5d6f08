"""Helpers of the simulator's tests: strategies, starting and playing games, visible state."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim import Batch, BatchConfig, dtypes
from cagepool.sim.names import ACTIONS, action_index, red_action_index

GOLDEN = Path(__file__).parents[1] / "golden"
ORDER = "op_server>enterprise>op_host>user>defender"
USER0 = 8

SEEDS = st.integers(0, 2**64 - 1)
# Half of the actions are on hosts that red attacks early, so that short games have effects.
ACTION_INDICES = st.integers(0, _core.ACTION_COUNT - 1) | st.sampled_from(
    [
        index
        for index, name in enumerate(ACTIONS)
        if name.endswith(("User1", "User3", "Enterprise0", "Enterprise1"))
    ]
)
ACTION_LISTS = st.lists(ACTION_INDICES, min_size=1, max_size=40)
RED_AGENTS = st.sampled_from(["B_lineAgent", "RedMeanderAgent", "SleepAgent"])
SETTINGS = st.fixed_dictionaries(
    {
        "red": RED_AGENTS | st.just("mix"),
        "edition": st.sampled_from(["2.1", "leaderboard"]),
        "green": st.booleans(),
        "max_steps": st.integers(1, 30),
        "autoreset": st.sampled_from(["next_step", "same_step"]),
        "order": st.sampled_from([None, ORDER]),
    }
)


def int64s(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)


def seed_range(first: int, games: int) -> NDArray[np.uint64]:
    return np.array([(first + game) % 2**64 for game in range(games)], np.uint64)


def start_batch(games: int = 1, seed: int = 0, **settings: Any) -> Batch:
    """Create a batch and reset it with the seeds that Gymnasium would use."""
    batch = Batch(games, BatchConfig(**settings))
    batch.reset(seed_range(seed, games))
    return batch


def play_step(batch: Batch, action: int | str, red: str | None = None) -> None:
    """Play the same actions, by index or name, in all games."""
    blue = action_index(action) if isinstance(action, str) else action
    red_actions = None if red is None else np.full(batch.games, red_action_index(red))
    batch.step(np.full(batch.games, blue), red_actions)


def trace_rows(batch: Batch) -> NDArray[np.void]:
    """State of every game as trace rows, with the hosts of the largest scenario."""
    result = np.zeros(batch.games, dtypes.TRACE_ROW)
    batch.core.write_trace_rows(dtypes.as_bytes(result))
    return result.view(dtypes.trimmed(dtypes.TRACE_ROW, batch.true_state["access"].shape[1]))


def visible_state(batch: Batch) -> list[bytes]:
    """All output of each game as bytes; results of an episode only if it has just ended."""
    state: list[NDArray[Any]] = [
        batch.observations,
        batch.rewards,
        batch.truncations,
        batch.moves,
        batch.true_state,
        trace_rows(batch),
    ]
    results: list[NDArray[Any]] = [batch.episode_returns, batch.episode_lengths]
    if batch.config.order:
        state += [batch.counters, batch.alignment]
        results += [batch.episode_counters]
    return [
        b"".join(array[game].tobytes() for array in state + results * int(batch.truncations[game]))
        + batch.core.session_log(game)
        for game in range(batch.games)
    ]


def play_actions(batch: Batch, actions: Iterable[int]) -> list[list[bytes]]:
    """Play the same actions in all games; returns the visible state after each step."""
    history = []
    for action in actions:
        play_step(batch, action)
        history.append(visible_state(batch))
    return history


@contextmanager
def refused_without_change(batch: Batch, error: type[Exception], match: str) -> Iterator[None]:
    """Expect an error that changes no game."""
    all_games = int64s(range(batch.games))
    before = visible_state(batch), batch.save(all_games)
    with pytest.raises(error, match=match):
        yield
    assert (visible_state(batch), batch.save(all_games)) == before
