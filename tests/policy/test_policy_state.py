"""The memory of defenders: replaced actions, saved states, copies."""

import copy
import pickle
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cagepool.policy import Defender, load, load_run
from cagepool.policy.defenders import SCRIPTED, FunctionDefender
from cagepool.policy.native import NativeRuntime
from cagepool.sim import Batch
from cagepool.sim.names import action_index
from cagepool.types import Bools, Float32s, Int64s
from tests.evaluate.folders import make_run
from tests.sim.games import start_batch

GAMES = 6
REPLACED = action_index("Restore User1")


def first_allowed(observations: Float32s, action_masks: Bools) -> Int64s:
    """A decoy as long as one can be placed: the actions depend on the actions before."""
    assert len(observations) == len(action_masks)
    first: Int64s = action_masks[:, 40:].argmax(1) + 40
    return first


def make_defender(name: str) -> Defender:
    return FunctionDefender(first_allowed, "function") if name == "function" else load(name)


def play(defender: Defender, batch: Batch, steps: int) -> list[list[int]]:
    """Actions of the steps."""
    played = []
    for _ in range(steps):
        actions = defender.act(batch.observations)
        batch.step(actions)
        played.append(actions.tolist())
    return played


@pytest.mark.parametrize("name", ["zoo:best-2.1", "run"])
def test_the_history_of_replaced_actions_is_that_of_a_policy_that_chose_them(
    name: str, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", network=1) if name == "run" else name
    chooser, told, untold = (load_run(run) for _ in range(3))
    batch = start_batch(GAMES, red="meander")
    for step in range(10):
        actions = chooser.act(batch.observations)
        # Both sample other actions; one is told those that were played.
        for other in (told, untold):
            other.act(batch.observations, greedy=False, rng=np.random.default_rng(step))
        told.record(actions)
        np.testing.assert_array_equal(told._rows, chooser._rows)
        batch.step(actions)
    for key, array in chooser.state().items():
        np.testing.assert_array_equal(told.state()[key], array, err_msg=key)
    untold.act(batch.observations)
    chooser.act(batch.observations)
    assert (untold._rows != chooser._rows).any()


def test_the_masks_of_a_function_follow_recorded_actions() -> None:
    told, untold = make_defender("function"), make_defender("function")
    observations = np.zeros((GAMES, 52), np.float32)
    for defender in (told, untold):
        defender.begin(GAMES)
        defender.act(observations)
    told.record(np.full(GAMES, REPLACED))

    assert not told.state()["decoys"].any()
    assert untold.state()["decoys"].any()


COPIES: dict[str, Callable[[Defender], Defender]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda defender: pickle.loads(pickle.dumps(defender)),
}


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", ["zoo:minutes", "zoo:best-2.1", "random", "function"])
def test_a_copy_plays_on_by_itself(name: str, make_copy: Callable[[Defender], Defender]) -> None:
    batch, other = (start_batch(GAMES, red="b_line") for _ in range(2))
    defender = make_defender(name)
    defender.begin(GAMES)
    for actions in play(defender, batch, 7):
        other.step(np.array(actions))

    copied = make_copy(defender)

    assert play(copied, other, 7) == play(defender, batch, 7)
    assert copied.name == defender.name


@pytest.mark.parametrize("name", [*SCRIPTED, "zoo:best-2.1", "function"])
def test_a_restored_state_plays_the_same_again(name: str) -> None:
    batch = start_batch(GAMES, red="b_line")
    defender = make_defender(name)
    defender.begin(batch)
    play(defender, batch, 5)
    games = np.arange(GAMES)
    blobs, state, seen = batch.save(games), defender.state(), batch.observations.copy()
    moves = batch.moves.copy()

    first = play(defender, batch, 6)
    batch.restore(games, blobs)
    batch.observations[:], batch.moves[:] = seen, moves
    defender.restore(state)

    assert play(defender, batch, 6) == first


def test_a_state_of_other_games_is_refused() -> None:
    defender = load("zoo:minutes")
    defender.begin(3)
    state = defender.state()
    defender.begin(4)

    with pytest.raises(ValueError, match="a saved state must be of a policy in 4 games"):
        defender.restore(state)


def test_no_other_thread_works_while_an_mlp_acts() -> None:
    policy = load_run("zoo:minutes")
    assert isinstance(policy.runtime, NativeRuntime)
    observations = np.zeros((1000, 52), np.float32)
    policy.begin(1000)
    process_s, thread_s = time.process_time(), time.thread_time()

    for _ in range(20):
        policy.act(observations)

    own_s = time.thread_time() - thread_s
    # Threads of BLAS would spin as long as this one works.
    assert time.process_time() - process_s - own_s < 0.2 * own_s
