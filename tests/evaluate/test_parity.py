"""How CybORG's games are compared with ours; none of it needs CybORG."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool.cyborg.dict_state import true_state_dict
from cagepool.cyborg.parity import (
    BLUES,
    Cell,
    Mismatch,
    ParityTrial,
    Recording,
    Tally,
    cells,
    joined,
    mismatches,
)
from cagepool.cyborg.parity.recorder import sessions_of
from cagepool.cyborg.parity.twin import Twin
from cagepool.sim import dtypes, replay
from cagepool.sim.names import ACTIONS
from cagepool.sim.trace import Trace
from tests.sim.games import GOLDEN, play, started

STEPS = 40
RED_NAMES = ["B_lineAgent", "RedMeanderAgent", "SleepAgent"]
DRAWS = ("green_host", "red_target", "exploit", "detected", "esc_pick")
OUTPUTS = [name for name in dtypes.TRACE_ROW.names or () if name not in DRAWS]


def golden(name: str, episodes: "NDArray[np.intp] | slice") -> Trace:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {field: file[field] if field == "meta" else file[field][episodes] for field in file}


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Some recorded games, every field of them."""
    return golden("traces_dev", slice(0, 198, 30))


def altered(trace: Trace, field: str, place: tuple[int, ...], value: int) -> Trace:
    values = trace[field].copy()
    assert values[place] != value
    values[place] = value
    return trace | {field: values}


def native_recording(red: str, *, green: bool = False, seed: int = 0) -> Recording:
    """A game of our own, written down as if it were CybORG's."""
    batch = started(seed=seed, red=red, green=green, max_steps=STEPS, autoreset="disabled")
    moves = np.zeros(STEPS, dtypes.MOVES)
    truths = np.zeros(STEPS, dtypes.TRUE_STATE)
    sessions = {}
    draw = Random(seed)
    for step in range(STEPS):
        play(batch, draw.randrange(len(ACTIONS)))
        moves[step], truths[step] = batch.moves[0], batch.true_state[0]
        sessions[step] = sessions_of(true_state_dict(batch, 0))
    drawn = {name: moves[name][np.newaxis] for name in DRAWS if name != "esc_pick"}
    whole = replay(
        {
            "ep_red": [RED_NAMES.index(red)],
            "ep_green": [int(green)],
            "blue_action": moves["blue_action"][np.newaxis],
            "esc_pick": np.zeros((1, STEPS), np.int8),
            **drawn,
        }
    )
    return Recording(whole, truths[np.newaxis], reused_pid=False, sessions=sessions)


@pytest.fixture(scope="module")
def recording() -> Recording:
    return native_recording("RedMeanderAgent", green=True)


@pytest.fixture(scope="module")
def twin() -> Twin:
    return Twin(red="RedMeanderAgent", green=True, max_steps=STEPS)


@pytest.mark.parametrize("name", ["traces_dev", "traces_dev_leaderboard"])
def test_recorded_games_agree_with_their_replay(name: str) -> None:
    assert mismatches(golden(name, slice(0, None, 5))) == []


@pytest.mark.parametrize("field", OUTPUTS)
def test_a_changed_field_is_reported_with_episode_and_step(trace: Trace, field: str) -> None:
    place = (2, 17, 1)[: trace[field].ndim]
    value = int(trace[field][place])

    found = mismatches(altered(trace, field, place, value + 1))

    name = f"{field}[1]" if len(place) == 3 else field
    assert found == [Mismatch(2, 17, name, str(value + 1), str(value))]
    where = f"episode 2, step 17, {name}"
    assert str(found[0]) == f"{where}: CybORG {value + 1}, native {value}"


def test_changes_of_several_episodes_are_reported_in_order(trace: Trace) -> None:
    doctored = altered(trace, "reward_tenths", (3, 5), 1)
    doctored = altered(doctored, "obs", (1, 9, 0), 7)
    doctored = altered(doctored, "s_ot", (1, 2, 0), 7)

    places = [(fault.episode, fault.step, fault.field) for fault in mismatches(doctored)]

    assert places == [(1, 2, "s_ot[0]"), (1, 9, "obs[0]"), (3, 5, "reward_tenths")]


def test_a_draw_that_the_native_game_cannot_make_is_reported(trace: Trace) -> None:
    b_line = int(np.flatnonzero(trace["ep_red"] == 0)[-1])

    (found,) = mismatches(altered(trace, "red_target", (b_line, 1), 0))

    assert found[:4] == (b_line, 1, "red_target", "0")
    assert found.native.startswith("must be among the")


def test_an_episode_of_the_other_edition_is_noticed() -> None:
    trace = golden("traces_dev_leaderboard", slice(None))

    found = mismatches(trace | {"ep_edition": np.zeros_like(trace["ep_edition"])})

    assert {fault.field for fault in found} >= {"exploit", "detected"}


@pytest.mark.parametrize("red", RED_NAMES)
@pytest.mark.parametrize("green", [False, True], ids=["alone", "green"])
def test_the_twin_follows_any_game(red: str, green: bool) -> None:
    twin = Twin(red=red, green=green, max_steps=STEPS)
    for seed in range(2):
        assert list(twin.mismatches(native_recording(red, green=green, seed=seed))) == []


@pytest.mark.parametrize("field", dtypes.TRUE_STATE.names or ())
def test_a_changed_true_state_is_reported_with_its_step(
    recording: Recording, twin: Twin, field: str
) -> None:
    truths = recording.true_states.copy()
    truths[field][0, 23] += 1

    (found,) = twin.mismatches(replace(recording, true_states=truths))

    assert found[:3] == (0, 23, f"true_state {field}")
    assert found.cyborg != found.native


def test_a_changed_session_is_reported_with_its_step(recording: Recording, twin: Twin) -> None:
    others = recording.sessions[30] | {"User0": []}

    (found,) = twin.mismatches(replace(recording, sessions=recording.sessions | {30: others}))

    assert found[:4] == (0, 30, "sessions User0", "[]")
    assert "RED_ABSTRACT_SESSION" in found.native


def test_luck_that_the_twin_can_never_have_is_an_error(
    recording: Recording, twin: Twin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cagepool.cyborg.parity.twin.ATTEMPTS", 3)
    impossible = altered(recording.trace, "red_target", (0, 0), 0)

    with pytest.raises(RuntimeError, match=r"must be able to draw .*'red_target': 0"):
        list(twin.mismatches(replace(recording, trace=impossible)))


def test_a_tally_counts_and_numbers_its_episodes(recording: Recording, twin: Twin) -> None:
    wrong = replace(recording, trace=altered(recording.trace, "reward_tenths", (0, 4), 1))
    tally = Tally()
    for one in (recording, wrong, recording):
        tally.add(one, twin)

    assert (tally.episodes, tally.steps, tally.set_aside) == (3, 3 * STEPS, 0)
    assert [fault[:3] for fault in tally.faults] == [(1, 4, "reward_tenths")]


def test_an_episode_with_a_reused_process_id_is_set_aside(recording: Recording, twin: Twin) -> None:
    wrong = altered(recording.trace, "reward_tenths", (0, 4), 1)
    tally = Tally()
    tally.add(replace(recording, trace=wrong, reused_pid=True), twin)

    assert tally == Tally(episodes=0, steps=0, set_aside=1, faults=[])
    assert tally.played == 1


def test_joined_recordings_are_one_trace(recording: Recording) -> None:
    whole = joined([recording.trace, native_recording("SleepAgent").trace])

    assert whole["obs"].shape == (2, STEPS, 52)
    assert whole["ep_red"].tolist() == [1, 2]
    assert mismatches(whole) == []


@pytest.mark.parametrize("blue", BLUES.values(), ids=BLUES)
def test_a_blue_draws_the_same_actions_from_the_same_luck(blue: Callable[[Random], Any]) -> None:
    targets = [Random(1).randrange(-1, 13) for _ in range(200)]
    one, other = ([act(target) for target in targets] for act in (blue(Random(5)), blue(Random(5))))

    assert one == other
    assert all(0 <= action < len(ACTIONS) for action in one)


def test_a_trial_plays_every_red_with_green_and_without() -> None:
    played = cells(ParityTrial(red=("b_line", "SleepAgent")))

    assert played == [
        Cell("B_lineAgent", green=False),
        Cell("B_lineAgent", green=True),
        Cell("SleepAgent", green=False),
        Cell("SleepAgent", green=True),
    ]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"red": ("mix",)}, "red must be one or more of .*; got 'mix'"),
        ({"blue": "idle"}, "blue must be one of mixed, sleep, .*; got 'idle'"),
        ({"episodes": 0}, "episodes must be at least 1, got 0"),
        ({"max_steps": 0}, "max_steps must be from 1 to 65535, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"edition": "3"}, "edition must be one of 2.1, leaderboard; got '3'"),
    ],
)
def test_a_trial_that_cannot_be_played_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        ParityTrial(**settings)
