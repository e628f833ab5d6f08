"""Invalid arguments of a batch raise errors and change nothing."""

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cagepool.sim import Batch, BatchConfig
from tests.sim.games import (
    ORDER,
    int64s,
    play_actions,
    play_step,
    refused_without_change,
    seed_range,
    start_batch,
)


@pytest.fixture
def batch() -> Batch:
    batch = start_batch(3, red="meander", max_steps=20)
    play_actions(batch, [0] * 7)
    return batch


@pytest.mark.parametrize("action", [-1, 145, 2**40, -(2**63)])
def test_an_action_out_of_range_names_game_and_value(batch: Batch, action: int) -> None:
    with refused_without_change(
        batch, IndexError, f"^the action of game 1 must be below 145, got {action}$"
    ):
        batch.step(int64s([0, action, 0]))
    with refused_without_change(
        batch, IndexError, f"^the action of game 2 must be below 145, got {action}$"
    ):
        batch.step(int64s([0, action]), ids=int64s([0, 2]))


@pytest.mark.parametrize("action", [-1, 44])
def test_a_red_action_out_of_range_names_game_and_value(action: int) -> None:
    batch = start_batch(2, red="given")
    with refused_without_change(
        batch, IndexError, f"^the red action of game 1 must be below 44, got {action}$"
    ):
        batch.step(int64s([0, 0]), int64s([0, action]))


@pytest.mark.parametrize("game", [-1, 3])
@pytest.mark.parametrize(
    "call",
    [
        lambda batch, ids: batch.step(int64s([0]), ids=ids),
        lambda batch, ids: batch.reset(ids=ids),
        lambda batch, ids: batch.reseed(ids, seed_range(0, 1)),
        lambda batch, ids: batch.save(ids),
        lambda batch, ids: batch.restore(ids, batch.save(int64s([0]))),
        lambda batch, ids: batch.core.session_log(int(ids[0])),
        lambda batch, ids: batch.core.steps(int(ids[0])),
        lambda batch, ids: batch.core.stream_key(int(ids[0])),
    ],
    ids=["step", "reset", "reseed", "save", "restore", "session_log", "steps", "stream_key"],
)
def test_a_game_that_does_not_exist_is_refused(
    batch: Batch, call: Callable[[Batch, Any], object], game: int
) -> None:
    with refused_without_change(batch, IndexError, f"^a game's index must be below 3, got {game}$"):
        call(batch, int64s([game]))


def test_a_game_may_be_named_once(batch: Batch) -> None:
    with refused_without_change(batch, ValueError, "^each game may be named once, got 1 twice$"):
        batch.step(int64s([0, 0, 0]), ids=int64s([1, 2, 1]))
    with refused_without_change(batch, ValueError, "^each game may be named once, got 0 twice$"):
        batch.reset(ids=int64s([0, 0]))


@pytest.mark.parametrize(
    "actions",
    [
        np.zeros(3, np.int32),
        np.zeros(3, np.float64),
        np.zeros(3, np.uint64),
        np.zeros((3, 1), np.int64),
        np.zeros(6, np.int64)[::2],
        [0, 0, 0],
        0,
        None,
    ],
    ids=["int32", "float64", "uint64", "column", "strided", "list", "number", "none"],
)
def test_actions_must_be_a_row_of_int64(batch: Batch, actions: Any) -> None:
    with refused_without_change(
        batch, TypeError, "^actions must be a contiguous int64 array of one dimension"
    ):
        batch.step(actions)
    with refused_without_change(
        batch, TypeError, "^ids must be a contiguous int64 array of one dimension"
    ):
        batch.restore(actions, [])


@pytest.mark.parametrize("count", [0, 2, 4])
def test_there_must_be_one_action_a_game(batch: Batch, count: int) -> None:
    with refused_without_change(
        batch, ValueError, f"^there must be one action per game, got {count} for 3 games$"
    ):
        batch.step(np.zeros(count, np.int64))
    with refused_without_change(
        batch, ValueError, "^there must be one action per game, got 3 for 2 games$"
    ):
        batch.step(int64s([0, 0, 0]), ids=int64s([0, 1]))


def test_seeds_must_be_one_a_game(batch: Batch) -> None:
    with refused_without_change(batch, ValueError, "one seed per game, got 2 for 3 games"):
        batch.reset(seed_range(0, 2))
    with refused_without_change(batch, ValueError, "one seed per game, got 2 for 1 games"):
        batch.reseed(int64s([0]), seed_range(0, 2))
    with refused_without_change(batch, ValueError, "one seed per game, got 0 for 3 games"):
        batch.reset(seed_range(0, 0))
    with refused_without_change(batch, TypeError, "^seeds must be an aligned array of type u8 "):
        batch.reset(int64s([0, 1, 2]))  # type: ignore[arg-type]


def test_red_actions_are_for_a_red_that_is_played_from_outside(batch: Batch) -> None:
    with refused_without_change(batch, ValueError, "may be given only if red is `given`"):
        batch.step(int64s([0, 0, 0]), int64s([0, 0, 0]))
    other = start_batch(3, red=["b_line", "given", "sleep"])
    with refused_without_change(other, ValueError, "must be given, since the caller plays red"):
        other.step(int64s([0, 0, 0]))
    with refused_without_change(other, ValueError, "one red action per game, got 2 for 3 games"):
        other.step(int64s([0, 0, 0]), int64s([0, 0]))


def test_reset_must_come_before_step() -> None:
    batch = Batch(2)
    with pytest.raises(RuntimeError, match="reset must come before step; game 0 has not been"):
        batch.step(int64s([0, 0]))
    batch.reset(seed_range(0, 1), ids=int64s([0]))
    with pytest.raises(RuntimeError, match="reset must come before step; game 1 has not been"):
        batch.step(int64s([0, 0]))
    batch.step(int64s([0]), ids=int64s([0]))
    assert batch.core.steps(0) == 1


def test_a_game_that_is_over_must_be_reset_where_nothing_else_does() -> None:
    batch = start_batch(2, max_steps=[1, 2], autoreset="disabled")
    play_step(batch, "Sleep")
    with refused_without_change(
        batch, RuntimeError, "^game 0 is over; reset it before the next step$"
    ):
        play_step(batch, "Sleep")
    batch.reset(ids=int64s([0]))
    play_step(batch, "Sleep")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"red": "Red"}, "red must be one of B_lineAgent, .*meander.*mix.* got 'Red'"),
        ({"red": "b_line+x"}, "red must be one of B_lineAgent, .*; got 'x'"),
        ({"red": ["b_line"]}, "red must be one value or one per game, got 1 for 2 games"),
        ({"edition": "2.2"}, "edition must be one of 2.1, leaderboard; got '2.2'"),
        ({"order": "user"}, "order must be one of critical_first, .*missing 'defender'"),
        ({"order": ORDER + ">x"}, "order must be one of critical_first, .*unknown 'x'"),
        ({"order": ORDER + ">user"}, "order must be one of .*repeated 'user'"),
        ({"max_steps": 0}, "max_steps must be a whole number from 1 to 65535, got 0"),
        ({"max_steps": 65536}, "max_steps must be a whole number from 1 to 65535, got 65536"),
        ({"max_steps": 1.5}, "max_steps must be a whole number from 1 to 65535, got 1.5"),
        ({"max_steps": 2.0}, "max_steps must be a whole number from 1 to 65535, got 2.0"),
        ({"max_steps": None}, "max_steps must be a whole number from 1 to 65535, got None"),
        ({"green": "no"}, "green must be True or False, got 'no'"),
        ({"threads": -1}, "threads must be a whole number of at least 1, or 0 .*, got -1"),
        ({"threads": 1.5}, "threads must be a whole number of at least 1, or 0 .*, got 1.5"),
        ({"alignment": 1.0}, "alignment needs an order"),
        ({"alignment": -1.0, "order": ORDER}, "alignment must be a number of at least 0, got -1"),
        ({"alignment": float("nan"), "order": ORDER}, "alignment must be a number .*, got nan"),
        ({"alignment": "high", "order": ORDER}, "alignment must be a number .*, got 'high'"),
        ({"autoreset": "never"}, "autoreset must be one of next_step, .*; got 'never'"),
        ({"knowledge": "all"}, "knowledge must be one of true, observed; got 'all'"),
        ({"definition": "x"}, "definition must be one of host, fix-type; got 'x'"),
        ({"observation_dtype": "int8"}, "observation_dtype must be one of .*; got 'int8'"),
        ({"observation_dtype": "bits"}, "observation_dtype must be one of .*; got 'bits'"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_a_setting_that_is_not_known_lists_those_that_are(
    settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Batch(2, BatchConfig(**settings))


@pytest.mark.parametrize("setting", ["red", "edition", "order"])
@pytest.mark.parametrize("value", [2.1, [2.1, 2.1], {"sleep"}], ids=["number", "numbers", "set"])
def test_a_name_must_be_a_string(setting: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^{setting} must be a string, or one per game, got "):
        Batch(2, BatchConfig(**{setting: value}))


@pytest.mark.parametrize("games", [0, -1])
def test_a_batch_has_at_least_one_game(games: int) -> None:
    with pytest.raises(ValueError, match=f"^a batch must have at least 1 game, got {games}$"):
        Batch(games)


@pytest.mark.parametrize("games", [2.0, "3", None])
def test_games_are_counted_by_integers(games: Any) -> None:
    with pytest.raises(TypeError, match=f"^the number of games must be an integer, got {games!r}$"):
        Batch(games)


def test_a_second_thread_is_refused_at_once() -> None:
    """Two threads step without a pause until one of them meets the other inside."""
    batch = start_batch(20_000, red="meander")
    errors: list[Exception] = []
    steps = [0, 0]

    def step(thread: int) -> None:
        actions = np.zeros(batch.games, np.int64)
        while not errors and steps[thread] < 1000:
            try:
                batch.step(actions)
            except RuntimeError as error:
                errors.append(error)
            else:
                steps[thread] += 1

    threads = [threading.Thread(target=step, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [str(error) for error in errors[:1]] == [
        "a batch must be used by one thread at a time; another call is under way"
    ]
    # What was refused was not played, and the batch is as good as before.
    whole = start_batch(20_000, red="meander")
    for _ in range(sum(steps)):
        play_step(whole, "Sleep")
    for array in ("observations", "rewards", "moves", "true_state"):
        np.testing.assert_array_equal(getattr(batch, array), getattr(whole, array))


@pytest.mark.parametrize("order", [120, 255])
def test_an_order_out_of_range_names_game_and_value(order: int) -> None:
    batch = start_batch(3, order=ORDER)
    batch.orders[1] = order
    sentence = f"^the order of game 1 must be below 120, got {order}$"
    for call in (
        lambda: batch.step(int64s([0, 0, 0])),
        lambda: batch.step(int64s([0, 0]), ids=int64s([2, 1])),
        lambda: batch.save(int64s([1])),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    assert [batch.core.steps(game) for game in range(3)] == [0, 0, 0]
    batch.step(int64s([0]), ids=int64s([2]))
    batch.orders[1] = 0
    batch.step(int64s([0, 0, 0]))


@pytest.mark.parametrize("array", ["true_state", "counters"])
def test_state_that_the_rules_read_is_read_only(array: str) -> None:
    batch = start_batch(2, order=ORDER)
    with pytest.raises(ValueError, match="read-only"):
        getattr(batch, array)[0] = getattr(batch, array)[1]


def test_a_message_about_an_array_is_one_line(batch: Batch) -> None:
    for wrong in (np.zeros((40, 40)), np.zeros((3, 2, 2), np.int64), "x\ny" * 1000):
        with pytest.raises(TypeError) as error:
            batch.step(wrong)  # type: ignore[arg-type]
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 200


@pytest.mark.parametrize("setting", ["max_steps", "red", "threads", "autoreset", "order"])
def test_a_message_about_a_setting_is_one_line(setting: str) -> None:
    with pytest.raises((TypeError, ValueError)) as error:
        Batch(1, BatchConfig(**{setting: np.zeros((1, 2, 2))}))  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_unaligned_actions_are_refused(batch: Batch) -> None:
    unaligned = memoryview(bytearray(25))[1:].cast("q")
    with refused_without_change(batch, TypeError, "^actions must be a contiguous int64 array"):
        batch.step(unaligned)  # type: ignore[arg-type]


RACE = """
import threading, sys
import numpy as np
from cagepool.sim import Batch, BatchConfig

games = 4096
batch = Batch(games, BatchConfig(red="given", order="critical_first", max_steps=50, threads=1))
batch.reset(np.arange(games, dtype=np.uint64))
arrays = dict(actions=np.zeros(games, np.int64), red_actions=np.zeros(games, np.int64),
              ids=np.arange(games), orders=batch.orders)
arrays["actions"][:] = np.arange(games) % 145
target, bad = arrays[sys.argv[1]], int(sys.argv[2])
good = target.copy()
stopped = threading.Event()

def disturb():
    while not stopped.is_set():
        target[::3] = bad
        target[:] = good

thread = threading.Thread(target=disturb)
thread.start()
times, played, refused = int(sys.argv[3]), 0, 0
while min(played, refused) < times and played + refused < 1000 * times:
    try:
        batch.step(arrays["actions"], arrays["red_actions"], arrays["ids"])
        played += 1
    except (IndexError, ValueError) as error:
        assert " must be below " in str(error) or " twice" in str(error), error
        refused += 1
stopped.set()
thread.join()
print("survived" if min(played, refused) == times else (played, refused))
"""


@pytest.mark.parametrize("times", [100, pytest.param(3000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("array", "bad"), [("ids", 2**50), ("actions", 10**8), ("red_actions", 10**8), ("orders", 255)]
)
def test_a_thread_that_changes_arguments_during_a_step_cannot_crash_it(
    array: str, bad: int, times: int
) -> None:
    command = [sys.executable, "-c", RACE, array, str(bad), str(times)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout == "survived\n", (run.returncode, run.stderr)


FORK = """
import os, threading
import numpy as np
from cagepool.sim import Batch, BatchConfig

batch = Batch(200_000, BatchConfig(threads=1))
batch.reset(np.arange(200_000, dtype=np.uint64))
stopped = threading.Event()

def step():
    actions = np.zeros(batch.games, np.int64)
    while not stopped.is_set():
        batch.step(actions)

thread = threading.Thread(target=step)
thread.start()
sentences = set()
while len(sentences) == 0:  # a child of a fork between two steps says nothing
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            batch.core.steps(0)
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    if sentence := os.read(reader, 500):
        sentences.add(sentence.decode())
    os.close(reader)
    os.waitpid(child, 0)
stopped.set()
thread.join()
print(*sentences)
"""


def test_a_batch_that_was_forked_in_a_step_says_so() -> None:
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=False)
    assert run.stdout == (
        "a batch must not be in a call when the process forks; "
        "this one was, so the child needs a new batch\n"
    ), run.stderr


def test_a_batch_that_lives_until_the_end_is_no_leak() -> None:
    """A thread that never ends keeps the globals of the program alive."""
    program = (
        "import threading, time; from cagepool.sim import Batch; batch = Batch(1);"
        "threading.Thread(target=lambda: time.sleep(100), daemon=True).start()"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stderr == ""
