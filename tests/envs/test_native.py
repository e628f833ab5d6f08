"""The native vector environment beyond the contract: settings, threads, ownership."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from cagepool import make_vec
from cagepool.envs import NativeVectorEnv
from cagepool.sim import TrueState
from cagepool.sim.names import RED_AGENTS, red_action_index, scenario_names
from tests.envs.contract import HORIZON, MODES, actions_for, assert_same, everything, started

TASKS = Path("/proc/self/task")


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_goes_by_our_name_and_by_gymnasiums(mode: Any) -> None:
    gymnasiums = AutoresetMode[mode.upper()]
    assert make_vec(1, autoreset=mode).metadata["autoreset_mode"] is gymnasiums
    assert make_vec(1, autoreset=gymnasiums).batch.config.autoreset == mode


def test_bytes_are_the_same_observations() -> None:
    played = actions_for(4, 30)
    floats, as_bytes = started(), started(observation_dtype="uint8")
    for row in played:
        seen = as_bytes.step(row)[0]
        assert seen.dtype == np.uint8
        np.testing.assert_array_equal(floats.step(row)[0], seen)
    assert as_bytes.single_observation_space.dtype == np.uint8


@pytest.mark.parametrize("dtype", ["uint8", np.uint8, np.dtype("uint8")], ids=str)
def test_the_type_of_observations_goes_by_its_name_and_as_numpys(dtype: Any) -> None:
    assert started(observation_dtype=dtype).observations.dtype == np.uint8


def test_games_of_a_vector_may_differ() -> None:
    envs = started(3, red=["b_line", "meander", "sleep"], max_steps=[2, 3, 4], autoreset="disabled")
    names = [list(RED_AGENTS)[red] for red in envs.true_state.red]
    assert names == ["B_lineAgent", "RedMeanderAgent", "SleepAgent"]
    envs.step([0, 0, 0])
    assert list(envs.step([0, 0, 0])[3]) == [True, False, False]


def test_any_integers_will_do_for_actions() -> None:
    reference = everything(played_with(np.array([5, 6, 7, 8])))
    wide = np.zeros((4, 2), np.int64)
    wide[:, 0] = [5, 6, 7, 8]
    for same in ([5, 6, 7, 8], (5, 6, 7, 8), np.array([5, 6, 7, 8], np.uint8), wide[:, 0]):
        assert everything(played_with(same)) == reference


def played_with(row: Any) -> NativeVectorEnv:
    envs = started()
    envs.step(row)
    return envs


def test_red_plays_the_actions_it_is_given() -> None:
    envs = started(2, red="given")
    envs.step([0, 0], [red_action_index("DiscoverRemoteSystems User"), 0])
    moves = [
        scenario_names().red_move(0, move["red_kind"], move["red_target"])
        for move in envs.batch.moves
    ]
    assert moves == ["DiscoverRemoteSystems User", "Sleep"]
    with pytest.raises(ValueError, match="red_actions must be given"):
        envs.step([0, 0])
    with pytest.raises(IndexError, match="the red action of game 1 must be below 44, got 44"):
        envs.step([0, 0], [0, 44])
    with pytest.raises(TypeError, match="red_actions must be integers, got float64"):
        envs.step([0, 0], [0.5, 0.5])


def test_threads_do_not_change_the_games() -> None:
    one, two = (started(2000, red="mix", threads=threads) for threads in (1, 2))
    for row in actions_for(2000, 5):
        assert_same(one.step(row), two.step(row))


@pytest.mark.skipif(not TASKS.exists(), reason="the system does not list threads")
def test_closing_ends_the_threads() -> None:
    others = {task.name for task in TASKS.iterdir()}
    envs = started(4096, threads=3)
    helpers = {task.name for task in TASKS.iterdir()} - others
    assert len(helpers) == 2
    envs.step(actions_for(4096, 1)[0])
    envs.close()
    assert not helpers & {task.name for task in TASKS.iterdir()}


def test_a_program_may_end_without_closing() -> None:
    program = """
import cagepool, numpy
envs = cagepool.make_vec(4096, threads=2)
envs.reset(seed=0)
envs.step(numpy.zeros(4096, int))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# Ownership


def test_an_array_that_is_held_is_left_to_its_holder() -> None:
    envs = started()
    rows, copies = [], []
    for row in actions_for(4, 10):
        seen = envs.step(row)[0]
        rows.append(seen[2])  # a view keeps the whole array
        copies.append(seen[2].copy())
        del seen
    assert_same(rows, copies)


def test_an_array_that_nobody_holds_is_used_again() -> None:
    envs = started()
    places = {envs.step(row)[0].ctypes.data for row in actions_for(4, 50)}
    assert len(places) == 2


def test_snapshots_leave_what_was_returned_alone() -> None:
    envs = started()
    blobs = everything(envs)
    for row in actions_for(4, 10):
        seen = envs.step(row)[0]
    then = seen.copy()
    assert then.any()
    envs.restore(range(4), blobs)
    np.testing.assert_array_equal(seen, then)
    assert not envs.observations.any()


def test_without_copies_the_same_arrays_come_back() -> None:
    envs = make_vec(4, copy=False, max_steps=HORIZON)
    owned = started(max_steps=HORIZON)
    first = envs.reset(seed=1)[0]
    results = None
    for row in actions_for(4, 2 * HORIZON):
        before, results = results, envs.step(row)[:4]
        assert results[0] is first
        assert before is None or all(map(np.shares_memory, results, before))
        assert_same(results, owned.step(row)[:4])


def test_the_latest_observations_can_be_read_but_not_written() -> None:
    envs = started()
    for row in actions_for(4, 10):
        seen = envs.step(row)[0]
    np.testing.assert_array_equal(envs.observations, seen)
    with pytest.raises(ValueError, match="read-only"):
        envs.observations[0] = 1


def test_render_gives_a_picture_of_each_game() -> None:
    pictures = started(3, render_mode="ansi").render()
    assert len(pictures) == 3
    assert all("Op_Server0" in picture for picture in pictures)


def test_render_needs_its_mode() -> None:
    with pytest.raises(RuntimeError, match="made with render_mode='ansi'"):
        started().render()


def test_the_last_true_state_of_an_episode_stays_after_an_autoreset() -> None:
    envs = make_vec(3, max_steps=[4, 9, 9], autoreset="same_step", red="RedMeanderAgent")
    reference = make_vec(3, max_steps=20, red="RedMeanderAgent")
    envs.reset(seed=0)
    reference.reset(seed=0)
    for step in range(1, 10):
        *_, truncations, _ = envs.step([30, 31, 32])
        reference.step([30, 31, 32])
        ended = truncations & (step == np.array([4, 9, 9]))
        for name in TrueState.__annotations__:
            final = getattr(envs.final_true_state, name)
            np.testing.assert_array_equal(final[ended], getattr(reference.true_state, name)[ended])
    assert ended[1:].all()
    assert (envs.final_true_state.access[1:] != envs.true_state.access[1:]).any()
    with pytest.raises(ValueError, match="read-only"):
        envs.final_true_state.access[0] = 1


@pytest.mark.parametrize("mode", ["next_step", "disabled"])
def test_other_modes_need_no_last_true_state(mode: Any) -> None:
    assert make_vec(3, autoreset=mode).final_true_state.access.shape == (0, 13)
