"""The native vector environment beyond the contract: settings, ownership, faults."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from cagepool import make_vec
from cagepool.envs import NativeVectorEnv
from cagepool.sim import actions, reds
from tests.envs.contract import HORIZON, MODES, actions_for, assert_same, play


def started(num_envs: int = 4, **options: Any) -> NativeVectorEnv:
    envs = make_vec(num_envs, **options)
    envs.reset(seed=1)
    return envs


def everything(envs: NativeVectorEnv) -> list[bytes]:
    return envs.save(range(envs.num_envs))


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
    names = [list(reds.RED_AGENTS)[red] for red in envs.true_state.red]
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
    envs.step([0, 0], [actions.red_index("DiscoverRemoteSystems User"), 0])
    moves = [actions.red_move(move["red_kind"], move["red_target"]) for move in envs.batch.moves]
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


# Faults: each says what is wrong, and changes nothing


@pytest.mark.parametrize(
    ("row", "error", "sentence"),
    [
        ([0, 0, 145, 0], IndexError, "the action of game 2 must be below 145, got 145"),
        ([0, -1, 0, 0], IndexError, "the action of game 1 must be below 145, got -1"),
        ([0, 0, 0], ValueError, "one action a game, got 3 for 4 games"),
        ([[0, 0, 0, 0]], ValueError, r"actions must have one dimension, got shape \(1, 4\)"),
        (0, ValueError, r"actions must have one dimension, got shape \(\)"),
        ([], ValueError, "one action a game, got 0 for 4 games"),
        ([0.0, 0.0, 0.0, 0.0], TypeError, "actions must be integers, got float64"),
        ([True, True, True, True], TypeError, "actions must be integers, got bool"),
        (None, TypeError, "actions must be integers, got object"),
    ],
)
@pytest.mark.parametrize("copy", [True, False], ids=["copies", "same arrays"])
def test_a_wrong_action_is_refused_and_nothing_is_played(
    row: Any, error: type[Exception], sentence: str, copy: bool
) -> None:
    envs = started(copy=copy)
    play(envs, actions_for(4, 10))
    before, seen = everything(envs), envs.observations.copy()
    with pytest.raises(error, match=sentence):
        envs.step(row)
    assert everything(envs) == before
    np.testing.assert_array_equal(envs.observations, seen)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"num_envs": 0}, ValueError, "at least 1 game, got 0"),
        ({"red": "purple"}, ValueError, "red must be one of B_lineAgent, .*; got 'purple'"),
        ({"edition": "3"}, ValueError, "edition must be one of 2.1, leaderboard; got '3'"),
        ({"order": "user"}, ValueError, "an order must be one of .*; got 'user'"),
        ({"max_steps": 0}, ValueError, "max_steps must be a whole number from 1 .*, got 0"),
        ({"max_steps": [1, 2, 3]}, ValueError, "max_steps must be one value or one a game, got 3"),
        ({"autoreset": "never"}, ValueError, "autoreset must be one of next_step, .*'never'"),
        ({"observation_dtype": "int8"}, ValueError, "observation_dtype must be one of .*'int8'"),
        ({"render_mode": "human"}, ValueError, "render_mode must be 'ansi' or None, got 'human'"),
        ({"blue": "me"}, TypeError, "unexpected keyword argument 'blue'"),
    ],
)
def test_a_wrong_setting_is_refused(
    options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        make_vec(**{"num_envs": 2} | options)


@pytest.mark.parametrize(
    ("seed", "error", "sentence"),
    [
        ([1, 2], ValueError, "one seed a game, got 2 for 4 games"),
        (1.5, TypeError, "seed must be an integer, or one a game, got 1.5"),
        ("four", TypeError, "seed must be an integer, or one a game, got 'four'"),
        (-1, ValueError, r"a seed must be from 0 to 2\*\*64 - 1, got -1"),
        (2**64 - 2, ValueError, r"a seed must be from 0 to 2\*\*64 - 1, got 18446744073709551616"),
    ],
)
def test_a_wrong_seed_is_refused(seed: Any, error: type[Exception], sentence: str) -> None:
    envs = started()
    before = everything(envs)
    with pytest.raises(error, match=sentence):
        envs.reset(seed=seed)
    assert everything(envs) == before


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        ([True] * 4, "an array of 4 Booleans, got .True, True, True, True."),
        (np.ones(4), r"an array of 4 Booleans, got float64 of shape \(4,\)"),
        (np.ones(3, np.bool_), r"an array of 4 Booleans, got bool of shape \(3,\)"),
        (np.zeros(4, np.bool_), "at least one game, got none"),
    ],
)
def test_a_wrong_reset_mask_is_refused(mask: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        started().reset(options={"reset_mask": mask})


def test_the_options_of_the_caller_are_not_changed() -> None:
    options = {"reset_mask": np.array([True, False, False, True])}
    started().reset(options=options)
    assert list(options) == ["reset_mask"]


def test_reset_must_come_before_step() -> None:
    envs = make_vec(3)
    with pytest.raises(RuntimeError, match="game 0 has not been reset"):
        envs.step([0, 0, 0])
    envs.reset(options={"reset_mask": np.array([True, True, False])})
    with pytest.raises(RuntimeError, match="game 2 has not been reset"):
        envs.step([0, 0, 0])


def test_without_autoreset_a_game_that_is_over_must_be_reset() -> None:
    envs = started(2, max_steps=1, autoreset="disabled")
    envs.step([0, 0])
    with pytest.raises(RuntimeError, match="game 0 is over"):
        envs.step([0, 0])


@pytest.mark.parametrize(
    "use",
    [
        lambda envs: envs.step([0, 0]),
        lambda envs: envs.reset(),
        lambda envs: envs.save([0]),
        lambda envs: envs.restore([], []),
        lambda envs: envs.render(),
        lambda envs: envs.action_masks(),
        lambda envs: envs.true_state_dict(0),
    ],
    ids=["step", "reset", "save", "restore", "render", "action_masks", "true_state_dict"],
)
def test_nothing_works_after_close(use: Callable[[NativeVectorEnv], object]) -> None:
    with started(2, render_mode="ansi") as envs:
        envs.step([0, 0])
    assert envs.closed
    with pytest.raises(ClosedEnvironmentError, match="must not be used after it was closed"):
        use(envs)


class Interruption:
    """Actions which, while they are being read, let another thread use the environment."""

    def __init__(self, use: Callable[[], object]) -> None:
        self.use = use
        self.error: BaseException | None = None

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[np.int64]:
        with ThreadPoolExecutor(1) as pool:
            self.error = pool.submit(self.use).exception()
        return np.zeros(2, np.int64)


@pytest.mark.parametrize("method", ["step", "reset", "restore"])
def test_a_second_thread_is_refused_at_once(method: str) -> None:
    envs, alone = started(2), started(2)
    uses: dict[str, Callable[[], object]] = {
        "step": lambda: envs.step([0, 0]),
        "reset": envs.reset,
        "restore": lambda: envs.restore([], []),
    }
    interruption = Interruption(uses[method])
    envs.step(interruption)
    alone.step([0, 0])
    assert isinstance(interruption.error, RuntimeError)
    assert "used by one thread at a time" in str(interruption.error)
    assert everything(envs) == everything(alone)


def test_render_gives_a_picture_of_each_game() -> None:
    pictures = started(3, render_mode="ansi").render()
    assert len(pictures) == 3
    assert all("Op_Server0" in picture for picture in pictures)


def test_render_needs_its_mode() -> None:
    with pytest.raises(RuntimeError, match="made with render_mode='ansi'"):
        started().render()
