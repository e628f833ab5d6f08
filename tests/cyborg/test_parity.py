"""Comparison of CybORG with the native game; tests marked parity need CybORG."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.dict_state import true_state_dict
from cagepool.parity import (
    FUZZ_POLICIES,
    Cell,
    CellResult,
    Mismatch,
    ParityConfig,
    RecordedEpisode,
    concatenate_traces,
    parity_cells,
    record_episode,
    replay_mismatches,
    run_parity,
)
from cagepool.parity.fuzz_policies import random_red
from cagepool.parity.lockstep import NativeFollower
from cagepool.parity.recorder import TraceRowReader, dictionary_sessions
from cagepool.scenarios import CAGE2, Scenario
from cagepool.sim import dtypes, replay
from cagepool.sim.names import ACTIONS, EDITIONS, action_index
from cagepool.sim.trace import Trace, trace_row_dtype
from tests.cli.command import cagepool
from tests.sim.games import GOLDEN, play_step, start_batch

SCENARIOS = GOLDEN / "scenarios"
STEPS = 40
CYBORG_STEPS = 25
RED_NAMES = ["B_lineAgent", "RedMeanderAgent", "SleepAgent"]
DRAWS = ("green_host", "red_target", "exploit", "detected", "esc_pick")
with np.load(GOLDEN / "traces_dev.npz") as file:
    OUTPUTS = [name for name in file if file[name].ndim > 1 and name not in DRAWS]
OUTPUTS.remove("blue_action")


def golden(name: str, episodes: "NDArray[np.intp] | slice") -> Trace:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {field: file[field] if field == "meta" else file[field][episodes] for field in file}


@pytest.fixture(scope="module")
def trace() -> Trace:
    """All fields of a few recorded episodes."""
    return golden("traces_dev", slice(0, 198, 30))


def with_value(trace: Trace, field: str, index: tuple[int, ...], value: int) -> Trace:
    values = trace[field].copy()
    assert values[index] != value
    values[index] = value
    return trace | {field: values}


def native_recording(red: str, *, green: bool = False, seed: int = 0) -> RecordedEpisode:
    """A native episode in the form of a recording of CybORG."""
    batch = start_batch(seed=seed, red=red, green=green, max_steps=STEPS, autoreset="disabled")
    moves = np.zeros(STEPS, dtypes.MOVES)
    true_states = np.zeros(STEPS, dtypes.true_state(13))
    sessions = {}
    draw = Random(seed)
    for step in range(STEPS):
        play_step(batch, draw.randrange(len(ACTIONS)))
        moves[step], true_states[step] = batch.moves[0], batch.true_state[0]
        sessions[step] = dictionary_sessions(true_state_dict(batch, 0))
    drawn = {name: moves[name][np.newaxis] for name in DRAWS if name != "esc_pick"}
    trace = replay(
        {
            "ep_red": [RED_NAMES.index(red)],
            "ep_green": [int(green)],
            "blue_action": moves["blue_action"][np.newaxis],
            "esc_pick": np.zeros((1, STEPS), np.int8),
            **drawn,
        }
    )
    return RecordedEpisode(trace, true_states[np.newaxis], reused_pid=False, sessions=sessions)


@pytest.fixture(scope="module")
def recording() -> RecordedEpisode:
    return native_recording("RedMeanderAgent", green=True)


@pytest.fixture(scope="module")
def follower() -> NativeFollower:
    return NativeFollower(red="RedMeanderAgent", green=True, max_steps=STEPS)


@pytest.mark.parametrize("name", ["traces_dev", "traces_dev_leaderboard"])
def test_recorded_games_agree_with_their_replay(name: str) -> None:
    assert replay_mismatches(golden(name, slice(0, None, 5))) == []


@pytest.mark.parametrize("field", OUTPUTS)
def test_a_changed_field_is_reported_with_episode_and_step(trace: Trace, field: str) -> None:
    index = (2, 17, 1)[: trace[field].ndim]
    value = int(trace[field][index])

    found = replay_mismatches(with_value(trace, field, index, value + 1))

    name = f"{field}[1]" if len(index) == 3 else field
    assert found == [Mismatch(2, 17, name, str(value + 1), str(value))]
    where = f"episode 2, step 17, {name}"
    assert str(found[0]) == f"{where}: CybORG {value + 1}, native {value}"


def test_changes_of_several_episodes_are_reported_in_order(trace: Trace) -> None:
    doctored = with_value(trace, "reward_tenths", (3, 5), 1)
    doctored = with_value(doctored, "obs", (1, 9, 0), 7)
    doctored = with_value(doctored, "s_ot", (1, 2, 0), 7)

    places = [
        (mismatch.episode, mismatch.step, mismatch.field)
        for mismatch in replay_mismatches(doctored)
    ]

    assert places == [(1, 2, "s_ot[0]"), (1, 9, "obs[0]"), (3, 5, "reward_tenths")]


def test_a_draw_that_the_native_game_cannot_make_is_reported(trace: Trace) -> None:
    b_line = int(np.flatnonzero(trace["ep_red"] == 0)[-1])

    (found,) = replay_mismatches(with_value(trace, "red_target", (b_line, 1), 0))

    assert found[:4] == (b_line, 1, "red_target", "0")
    assert found.native.startswith("must be among the")


def test_an_episode_of_the_other_edition_is_noticed() -> None:
    trace = golden("traces_dev_leaderboard", slice(None))

    found = replay_mismatches(trace | {"ep_edition": np.zeros_like(trace["ep_edition"])})

    assert {mismatch.field for mismatch in found} >= {"exploit", "detected"}


@pytest.mark.parametrize("red", RED_NAMES)
@pytest.mark.parametrize("green", [False, True], ids=["alone", "green"])
def test_the_follower_can_follow_any_native_game(red: str, green: bool) -> None:
    follower = NativeFollower(red=red, green=green, max_steps=STEPS)
    for seed in range(2):
        assert list(follower.mismatches(native_recording(red, green=green, seed=seed))) == []


@pytest.mark.parametrize("field", dtypes.TRUE_STATE.names or ())
def test_a_changed_true_state_is_reported_with_its_step(
    recording: RecordedEpisode, follower: NativeFollower, field: str
) -> None:
    true_states = recording.true_states.copy()
    true_states[field][0, 23] += 1

    (found,) = follower.mismatches(replace(recording, true_states=true_states))

    assert found[:3] == (0, 23, f"true_state {field}")
    assert found.cyborg != found.native


def test_a_changed_session_is_reported_with_its_step(
    recording: RecordedEpisode, follower: NativeFollower
) -> None:
    others = recording.sessions[30] | {"User0": []}

    (found,) = follower.mismatches(replace(recording, sessions=recording.sessions | {30: others}))

    assert found[:4] == (0, 30, "sessions User0", "[]")
    assert "RED_ABSTRACT_SESSION" in found.native


def test_draws_that_the_follower_cannot_make_are_an_error(
    recording: RecordedEpisode, follower: NativeFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cagepool.parity.lockstep.ATTEMPTS", 3)
    impossible = with_value(recording.trace, "red_target", (0, 0), 0)

    with pytest.raises(RuntimeError, match=r"must be able to draw .*'red_target': 0"):
        list(follower.mismatches(replace(recording, trace=impossible)))


def test_a_result_counts_and_numbers_its_episodes(
    recording: RecordedEpisode, follower: NativeFollower
) -> None:
    wrong = replace(recording, trace=with_value(recording.trace, "reward_tenths", (0, 4), 1))
    result = CellResult()
    for episode in (recording, wrong, recording):
        result.add(episode, follower)

    assert (result.episodes, result.steps, result.set_aside) == (3, 3 * STEPS, 0)
    assert [mismatch[:3] for mismatch in result.mismatches] == [(1, 4, "reward_tenths")]


def test_an_episode_with_a_reused_process_id_is_set_aside(
    recording: RecordedEpisode, follower: NativeFollower
) -> None:
    wrong = with_value(recording.trace, "reward_tenths", (0, 4), 1)
    result = CellResult()
    result.add(replace(recording, trace=wrong, reused_pid=True), follower)

    assert result == CellResult(episodes=0, steps=0, set_aside=1, mismatches=[])
    assert result.recorded == 1


def test_concatenated_recordings_are_one_trace(recording: RecordedEpisode) -> None:
    trace = concatenate_traces([recording.trace, native_recording("SleepAgent").trace])

    assert trace["obs"].shape == (2, STEPS, 52)
    assert trace["ep_red"].tolist() == [1, 2]
    assert replay_mismatches(trace) == []


@pytest.mark.parametrize("name", ["cage2_rebuilt", "cage1_misinform", "no_decoys", "wide40"])
@pytest.mark.parametrize("make_policy", FUZZ_POLICIES.values(), ids=FUZZ_POLICIES)
def test_a_fuzz_policy_draws_the_same_actions_from_the_same_seed(
    make_policy: Callable[[Random, Scenario], Any], name: str
) -> None:
    scenario = Scenario.load(SCENARIOS / f"{name}.yaml")
    draw = Random(1)
    targets = [draw.randrange(-1, len(scenario.hosts)) for _ in range(200)]
    first, second = (
        [policy(target) for target in targets]
        for policy in (make_policy(Random(5), scenario), make_policy(Random(5), scenario))
    )

    assert first == second
    assert all(0 <= action < len(scenario.actions) for action in first)


def test_the_fuzz_policies_play_every_kind_of_action_that_a_scenario_has() -> None:
    scenario = Scenario.load(SCENARIOS / "cage1_misinform.yaml")
    policies = [make(Random(0), scenario) for make in FUZZ_POLICIES.values()]

    played = {scenario.actions[policy(3)].split()[0] for policy in policies for _ in range(300)}

    assert played == {"Sleep", "Monitor", "Analyse", "Remove", "Misinform", "Restore"}


def test_a_random_red_acts_on_what_it_knows_and_sometimes_on_the_unknown() -> None:
    scenario = Scenario.load(SCENARIOS / "tiny.yaml")
    knowledge = np.zeros((), trace_row_dtype(scenario))
    entry = scenario.entry
    knowledge["s_known_ip"][entry] = knowledge["s_known_host"][entry] = 1
    knowledge["s_known_net"][scenario.subnet_of[entry]] = 1
    red = random_red(Random(0), scenario, scenario.red_actions)
    name = scenario.hosts[entry]
    known = {
        f"DiscoverRemoteSystems {scenario.subnets[scenario.subnet_of[entry]]}",
        *(f"{kind} {name}" for kind in ("DiscoverNetworkServices", "PrivilegeEscalate")),
        "Impact Op_Server0",  # the only host with OTService
    }

    played = [scenario.red_actions[red(knowledge)] for _ in range(1000)]

    unknown = [action for action in played if action not in known]
    assert {*played} >= known
    assert 50 < len(unknown) < 150


def test_a_red_that_cannot_play_a_scenario_is_left_out_there() -> None:
    files = tuple(str(SCENARIOS / f"{name}.yaml") for name in ("tiny", "odd_gates"))
    config = ParityConfig(scenario=files, red=("b_line", "given"), greens=(False,))

    cells = [(cell.scenario.name, cell.red) for cell in parity_cells(config)]

    assert cells == [("tiny", "B_lineAgent"), ("tiny", "given"), ("odd_gates", "given")]


def test_a_folder_gives_all_its_files() -> None:
    cells = parity_cells(ParityConfig(scenario=(str(SCENARIOS),), red=("sleep",), greens=(True,)))

    assert [cell.file for cell in cells] == sorted(SCENARIOS.glob("*.yaml"))
    assert [cell.scenario.name for cell in cells] == [cell.file.stem for cell in cells if cell.file]


def test_the_cells_are_every_red_with_green_and_without() -> None:
    cells = parity_cells(ParityConfig(red=("b_line", "SleepAgent")))

    assert cells == [
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
        ({"generate": -1}, "generate must be at least 0, got -1"),
        ({"red": ()}, "red must be one or more of .*; got none"),
        ({"edition": "3"}, "edition must be one of 2.1, leaderboard; got '3'"),
    ],
)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        ParityConfig(**settings)


@pytest.fixture(scope="module")
def env() -> CybORGEnv:
    return CybORGEnv(red="RedMeanderAgent", green=True, max_steps=CYBORG_STEPS)


@pytest.mark.parity
@pytest.mark.parametrize("red", RED_NAMES)
@pytest.mark.parametrize("green", [False, True], ids=["alone", "green"])
def test_no_field_differs(red: str, green: bool) -> None:
    result = run_parity(ParityConfig(episodes=5, red=(red,), greens=(green,), max_steps=60))

    (cell,) = result.cells.values()
    assert cell.mismatches == []
    assert cell.steps == 60 * cell.episodes
    assert cell.recorded == 5


@pytest.mark.parity
def test_the_comparison_can_fail() -> None:
    env = CybORGEnv()
    trace = concatenate_traces([record_episode(env, "decoys", seed).trace for seed in range(5)])
    (other,) = {*EDITIONS} - {env.edition}
    wrong = np.full_like(trace["ep_edition"], list(EDITIONS).index(other))

    assert replay_mismatches(trace) == []
    assert replay_mismatches(trace | {"ep_edition": wrong}) != []


@pytest.mark.parity
def test_the_follower_notices_another_edition(env: CybORGEnv) -> None:
    (other,) = {*EDITIONS} - {env.edition}
    follower = NativeFollower(red=env.red, green=True, edition=other, max_steps=CYBORG_STEPS)

    found = list(follower.mismatches(record_episode(env, "sleep", 3)))

    assert {mismatch.field for mismatch in found} == {"true_state edition"}


@pytest.mark.parity
@pytest.mark.parametrize("suspects", [range(0), range(1, 32768)], ids=["none", "all"])
def test_a_process_that_gets_the_id_of_a_suspect_is_noticed(
    env: CybORGEnv, suspects: range
) -> None:
    env.reset(seed=0)
    blue = env.cyborg.environment_controller.state.sessions["Blue"][0]
    blue.sus_pids["Defender"] = list(suspects)
    reader = TraceRowReader(env)
    for action in ("Sleep", "DecoyApache Defender"):
        assert not reader.reused_pid
        reader.before_step()
        env.step(action_index(action))
        reader.after_step(env.true_state(), np.zeros(1, trace_row_dtype(CAGE2))[0])

    assert reader.reused_pid == (len(suspects) > 0)


@pytest.mark.parity
def test_the_command_writes_a_trace_that_replays(tmp_path: Path) -> None:
    out = tmp_path / "few.npz"
    settings = ("--episodes", "2", "--max-steps", "20", "--red", "b_line", "--green", "off")
    done = cagepool("parity", *settings, "--out", str(out))

    assert done.returncode == 0, done.stderr
    assert ["B_lineAgent", "off", "1", "2", "40", "0", "0"] in [
        line.split() for line in done.stdout.splitlines()
    ]
    with np.load(out) as file:
        assert file["obs"].shape == (2, 20, 52)
        assert replay_mismatches(dict(file)) == []
