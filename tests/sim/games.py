"""What the tests of the simulator share: making games, playing them, looking at all of them."""

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
# Half of them on hosts that matter to red early on, so that short games have something to show.
ACTION_INDICES = st.integers(0, _core.ACTION_COUNT - 1) | st.sampled_from(
    [
        index
        for index, name in enumerate(ACTIONS)
        if name.endswith(("User1", "User3", "Enterprise0", "Enterprise1"))
    ]
)
GAMES = st.lists(ACTION_INDICES, min_size=1, max_size=40)
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


def ints(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)


def seeds(first: int, games: int) -> NDArray[np.uint64]:
    return np.array([(first + game) % 2**64 for game in range(games)], np.uint64)


def started(games: int = 1, seed: int = 0, **settings: Any) -> Batch:
    """A batch whose games have begun, seeded as Gymnasium would."""
    batch = Batch(games, BatchConfig(**settings))
    batch.reset(seeds(seed, games))
    return batch


def play(batch: Batch, action: int | str, red: str | None = None) -> None:
    """Play the same step in all games, by name if you like."""
    blue = action_index(action) if isinstance(action, str) else action
    red_actions = None if red is None else np.full(batch.games, red_action_index(red))
    batch.step(np.full(batch.games, blue), red_actions)


def rows(batch: Batch) -> NDArray[np.void]:
    """The state of every game as a trace has it."""
    result = np.zeros(batch.games, dtypes.TRACE_ROW)
    batch.core.write_trace_rows(dtypes.as_bytes(result))
    return result


def shown(batch: Batch) -> list[bytes]:
    """For each game all that is to be seen; an episode's results only when it has just ended."""
    state: list[NDArray[Any]] = [
        batch.observations,
        batch.rewards,
        batch.truncations,
        batch.moves,
        batch.true_state,
        rows(batch),
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


def played(batch: Batch, games: Iterable[int]) -> list[list[bytes]]:
    """Play the same actions in all games; what is to be seen after each step."""
    history = []
    for action in games:
        play(batch, action)
        history.append(shown(batch))
    return history


@contextmanager
def refused(batch: Batch, error: type[Exception], match: str) -> Iterator[None]:
    """Expect an error that leaves all games as they are."""
    everyone = ints(range(batch.games))
    before = shown(batch), batch.save(everyone)
    with pytest.raises(error, match=match):
        yield
    assert (shown(batch), batch.save(everyone)) == before
