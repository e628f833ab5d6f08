"""Replay of recorded games."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool.sim import replay
from tests.sim.games import GOLDEN

Trace = dict[str, NDArray[Any]]

FILES = ("traces_dev", "traces_dev_leaderboard")
INPUTS = (
    *("ep_red", "ep_green", "ep_edition", "blue_action"),
    *("green_host", "red_target", "exploit", "detected", "esc_pick"),
)
FIELDS = (
    *("ep_red", "ep_policy", "ep_green", "blue_action", "blue_success", "green_host", "red_kind"),
    *("red_target", "exploit", "detected", "esc_pick", "red_success", "obs", "reward_tenths"),
    *("s_priv", "s_user_seen", "s_user_unseen", "s_decoys", "s_malware", "s_red_ports"),
    *("s_known_ip", "s_known_host", "s_known_net", "s_ot", "s_bline_pos", "s_meander"),
)


def recorded(name: str) -> Trace:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def trace() -> Trace:
    """A few short games of each red, only what a replay needs."""
    whole = recorded("traces_dev")
    picked = [np.flatnonzero(whole["ep_red"] == red)[0] for red in range(3)]
    picked += [np.flatnonzero(whole["ep_green"] == 1)[0]]
    few = {name: whole[name][picked] for name in INPUTS if name in whole}
    return {name: values[:, :40] if values.ndim > 1 else values for name, values in few.items()}


def changed(trace: Trace, name: str, at: tuple[int, ...], value: int) -> Trace:
    values = trace[name].copy()
    values[at] = value
    return trace | {name: values}


@pytest.fixture(scope="module")
def replays() -> dict[str, tuple[Trace, Trace]]:
    """Each recording, and what becomes of its inputs alone."""
    found = {}
    for name in FILES:
        whole = recorded(name)
        inputs = {field: whole[field] for field in INPUTS if field in whole}
        found[name] = whole, replay(inputs | {"ep_policy": whole["ep_policy"]})
    return found


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", FILES)
def test_every_field_of_a_recording_is_reproduced(
    name: str, field: str, replays: dict[str, tuple[Trace, Trace]]
) -> None:
    expected, result = replays[name]

    assert result[field].dtype == expected[field].dtype
    np.testing.assert_array_equal(result[field], expected[field])


def test_no_field_of_a_recording_is_left_out(replays: dict[str, tuple[Trace, Trace]]) -> None:
    for expected, result in replays.values():
        assert expected.keys() | {"ep_edition"} == result.keys()
        assert set(FIELDS) == expected.keys() - {"meta", "ep_edition"}


def test_a_recording_on_disk_can_be_replayed_as_it_is() -> None:
    with np.load(GOLDEN / "traces_dev_leaderboard.npz") as file:
        result = replay(file)
        np.testing.assert_array_equal(result["obs"], file["obs"])
        meta = json.loads(str(file["meta"]))

    names = json.loads(str(result["meta"]))
    assert {name: meta[name] for name in names} == names
    assert (result["ep_edition"] == 1).all()


def test_a_replay_is_a_recording_itself(trace: Trace) -> None:
    once = replay(trace)
    twice = replay(once)

    assert once.keys() == twice.keys()
    for name, values in once.items():
        np.testing.assert_array_equal(values, twice[name])


def test_the_policy_is_unknown_unless_it_is_given(trace: Trace) -> None:
    assert replay(trace)["ep_policy"].tolist() == [-1] * 4
    assert replay(trace | {"ep_policy": np.arange(4)})["ep_policy"].tolist() == [0, 1, 2, 3]


def test_any_type_of_integers_will_do(trace: Trace) -> None:
    expected = replay(trace)
    result = replay({name: values.astype(np.int64).tolist() for name, values in trace.items()})

    for name, values in expected.items():
        assert result[name].dtype == values.dtype
        np.testing.assert_array_equal(result[name], values)


def test_what_is_given_is_neither_written_nor_handed_back(trace: Trace) -> None:
    frozen = {name: values.copy() for name, values in trace.items()}
    for values in frozen.values():
        values.flags.writeable = False

    result = replay(frozen)

    assert all(values.flags.writeable for values in result.values())
    assert not any(np.shares_memory(result[name], frozen[name]) for name in frozen)


@pytest.mark.parametrize("episode", range(4))
def test_one_episode_alone_is_the_same(trace: Trace, episode: int) -> None:
    expected = replay(trace)
    alone = replay({name: values[episode : episode + 1] for name, values in trace.items()})

    for name in alone.keys() - {"meta"}:
        np.testing.assert_array_equal(alone[name][0], expected[name][episode])


@pytest.mark.parametrize(
    "program",
    [
        "import cagepool; replay = cagepool.sim.replay",
        "from cagepool.sim import replay",
        "from cagepool import sim; replay = sim.replay",
        "import cagepool.sim.trace; replay = cagepool.sim.replay",
        "from cagepool.sim.trace import replay as r; from cagepool.sim import replay",
        "import cagepool.sim.batch, cagepool.sim.trace; from cagepool.sim import replay",
    ],
)
def test_replay_is_the_function_however_it_is_imported(program: str) -> None:
    """Its module has the same name."""
    subprocess.run([sys.executable, "-c", f"{program}; assert callable(replay)"], check=True)


def test_the_names_of_the_reds_decide_what_their_numbers_mean(trace: Trace) -> None:
    names = ["Sleep", "RedMeanderAgent", "b_line"]
    turned = {"ep_red": 2 - trace["ep_red"], "meta": np.array(json.dumps({"red_names": names}))}

    result = replay(trace | turned)

    np.testing.assert_array_equal(result["obs"], replay(trace)["obs"])
    np.testing.assert_array_equal(result["ep_red"], turned["ep_red"])
    assert json.loads(str(result["meta"]))["red_names"] == names


def test_the_edition_of_the_meta_counts_where_episodes_name_none(trace: Trace) -> None:
    meta = np.array(json.dumps({"edition": "leaderboard"}))
    asleep = {name: values[2:3] for name, values in trace.items()}

    assert replay(asleep | {"meta": meta})["ep_edition"].tolist() == [1]
    assert replay(asleep)["ep_edition"].tolist() == [0]


def test_a_recording_of_the_other_edition_does_not_agree() -> None:
    whole = recorded("traces_dev_leaderboard")
    older = {name: whole[name] for name in INPUTS} | {"ep_edition": 0 * whole["ep_edition"]}

    with pytest.raises(ValueError, match="must be among"):
        replay(older)


@pytest.mark.parametrize(
    ("field", "kind", "value"),
    [
        ("red_target", 2, 0),
        ("exploit", 3, 5),
        ("detected", None, -1),
        ("esc_pick", None, 3),
    ],
)
def test_a_pick_that_is_no_candidate_is_refused(
    trace: Trace, field: str, kind: int | None, value: int
) -> None:
    """Meander scans a host that it does not know, chooses an exploit without a port, and so on."""
    meander = 1
    drawn = trace[field][meander] >= 0
    if kind is not None:
        drawn &= replay(trace)["red_kind"][meander] == kind
    step = int(np.flatnonzero(drawn)[0])

    sentence = f"^{field} of episode 1, step {step} must be among .* got {value}$"
    with pytest.raises(ValueError, match=sentence):
        replay(changed(trace, field, (meander, step), value))


def test_a_host_that_green_never_scans_is_refused(trace: Trace) -> None:
    step = int(np.flatnonzero(trace["green_host"][3] >= 0)[0])

    with pytest.raises(ValueError, match=f"^green_host of episode 3, step {step} must .* got 7$"):
        replay(changed(trace, "green_host", (3, step), 7))


def test_another_pick_among_the_candidates_is_another_game(trace: Trace) -> None:
    first_scan = int(np.flatnonzero(replay(trace)["red_kind"][0] == 2)[0])
    picked = trace["red_target"][0, first_scan]
    other = changed(trace, "red_target", (0, first_scan), 9 + (picked - 9 + 1) % 4)
    until = first_scan + 1

    result = replay({k: v[:1, :until] if v.ndim > 1 else v[:1] for k, v in other.items()})

    assert not np.array_equal(result["obs"][0], replay(trace)["obs"][0, :until])


@pytest.mark.parametrize("name", [name for name in INPUTS if name != "ep_edition"])
def test_a_field_that_is_missing_is_named(trace: Trace, name: str) -> None:
    with pytest.raises(ValueError, match=f"without {name}$"):
        replay({field: values for field, values in trace.items() if field != name})


@pytest.mark.parametrize("name", [name for name in INPUTS if name != "ep_edition"])
def test_a_field_of_the_wrong_type_is_named(trace: Trace, name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} must be of integers, got float64$"):
        replay(trace | {name: trace[name].astype(np.float64)})


@pytest.mark.parametrize("name", [name for name in INPUTS if name != "ep_edition"])
def test_a_field_of_the_wrong_shape_is_named(trace: Trace, name: str) -> None:
    # The shape of the actions is the measure of the others.
    wrong = "green_host" if name == "blue_action" else name
    with pytest.raises(ValueError, match=rf"^{wrong} must have shape \(.*\), got \("):
        replay(trace | {name: trace[name][1:]})


def test_actions_without_steps_are_refused(trace: Trace) -> None:
    with pytest.raises(ValueError, match=r"^blue_action must have shape \(episodes, steps\), got"):
        replay(trace | {"blue_action": trace["blue_action"][0]})


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("blue_action", 145, "blue_action of episode 1, step 2 must be below 145, got 145"),
        ("blue_action", 300, "blue_action must be from 0 to 255, got .* to 300"),
        ("blue_action", -1, "blue_action must be from 0 to 255, got -1 to"),
        ("exploit", 200, "exploit must be from -128 to 127, got -1 to 200"),
    ],
)
def test_a_value_out_of_range_is_named(trace: Trace, name: str, value: int, sentence: str) -> None:
    wide = trace | {name: trace[name].astype(np.int64)}
    with pytest.raises(ValueError, match=f"^{sentence}"):
        replay(changed(wide, name, (1, 2), value))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("ep_red", 3, "ep_red of episode 1 must be below 3, got 3"),
        ("ep_red", -1, "ep_red of episode 1 must be below 3, got -1"),
        ("ep_green", 2, "ep_green of episode 1 must be below 2, got 2"),
        ("ep_edition", 2, "ep_edition of episode 1 must be below 2, got 2"),
    ],
)
def test_an_episode_of_no_kind_is_named(trace: Trace, name: str, value: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        replay(changed(trace | {"ep_edition": np.zeros(4, np.int8)}, name, (1,), value))


@pytest.mark.parametrize(
    ("meta", "sentence"),
    [
        ("[1, 2]", "meta must be a JSON object, got"),
        ("{", "meta must be a JSON object, got '{'"),
        ('{"red_names": ["A", "B", "C"]}', "red must be one of B_lineAgent.*; got 'a'"),
        ('{"edition": "3"}', "edition in meta must be one of 2.1, leaderboard; got '3'"),
        ('{"edition_names": ["2.1", "x"]}', "edition must be one of 2.1, leaderboard; got 'x'"),
        ("[" * 100_000, "meta must be a JSON object, got"),
        ('{"red_names": 3}', "red_names in meta must be a list of names, got 3"),
        ('{"red_names": [null]}', "red_names in meta must be a list of names, got"),
        ('{"edition": ["2.1"]}', "edition in meta must be a name, got"),
    ],
    ids=["list", "broken", "reds", "edition", "editions", "deep", "number", "null", "list of one"],
)
def test_a_meta_that_says_nothing_is_refused(trace: Trace, meta: str, sentence: str) -> None:
    episodes = {"ep_edition": np.ones(4, np.int8)} if "edition_names" in meta else {}
    with pytest.raises(ValueError, match=sentence):
        replay(trace | episodes | {"meta": np.array(meta)})
