"""Moves in names: in the infos, and in words."""

from typing import Any

import numpy as np
import pytest

import cagepool
from cagepool import make_vec
from cagepool.sim.moves import MOVE_NAMES
from cagepool.sim.names import action_index, red_action_index
from tests.envs.contract import BACKENDS, HORIZON, MODES, actions_for, assert_same, play, sync


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_puts_the_same_moves_into_its_infos(backend: str, mode: Any) -> None:
    settings: Any = {"max_steps": HORIZON, "red": "mix", "green": True, "moves": True}
    envs, reference = BACKENDS[backend](4, mode, **settings), sync(4, mode, **settings)
    actions = actions_for(4, 3 * HORIZON)
    assert_same(envs.reset(seed=3), reference.reset(seed=3))
    assert_same(play(envs, actions), play(reference, actions))
    envs.close()


def test_moves_say_who_did_what_on_which_host_with_what_success() -> None:
    envs = make_vec(2, red="given", moves=True)
    envs.reset(seed=1)
    turns = [
        (("Sleep", "Monitor"), ("DiscoverRemoteSystems User", "Sleep")),
        (("DecoyApache Op_Host1", "Restore User2"), ("DiscoverNetworkServices User1", "Sleep")),
        (("DecoyApache Op_Host1", "Analyse User3"), ("ExploitRemoteService User1", "Sleep")),
    ]
    moves = []
    for blue, red in turns:
        *_, infos = envs.step(
            [action_index(name) for name in blue], [red_action_index(name) for name in red]
        )
        assert infos["_moves"].all()
        moves.append(infos["moves"])
    assert {*moves[0]} == {*MOVE_NAMES, *(f"_{name}" for name in MOVE_NAMES)}
    table = {name: [list(step[name]) for step in moves] for name in MOVE_NAMES}
    assert table["blue"] == [
        ["Sleep", "Monitor"],
        ["DecoyApache", "Restore"],
        ["DecoyApache", "Analyse"],
    ]
    assert table["blue_host"] == [[None, None], ["Op_Host1", "User2"], ["Op_Host1", "User3"]]
    assert table["blue_success"] == [[-1, 1], [1, 1], [0, 1]]
    assert [row[0] for row in table["red"]] == [
        "DiscoverRemoteSystems", "DiscoverNetworkServices", "ExploitRemoteService",
    ]  # fmt: skip
    assert table["red_target"] == [["User", None], ["User1", None], ["User1", None]]
    assert table["exploit"] == [[None, None], [None, None], ["FTPDirectoryTraversal", None]]
    assert table["red_success"] == [[1, -1], [1, -1], [1, -1]]
    assert envs.describe(0) == (
        "blue: DecoyApache Op_Host1, failure; "
        "red: ExploitRemoteService User1 by FTPDirectoryTraversal, success"
    )
    assert envs.describe(1) == "blue: Analyse User3, success; red: Sleep"


def test_without_moves_infos_stay_empty() -> None:
    envs = make_vec(2)
    envs.reset(seed=0)
    assert envs.step([0, 0])[4] == {}
    env = cagepool.make()
    env.reset(seed=0)
    assert env.step(0)[4] == {}


def test_moves_of_games_that_were_sent_are_those_of_their_steps() -> None:
    envs = make_vec(3, moves=True)
    envs.reset(seed=0)
    envs.send([action_index("Remove User1"), action_index("Monitor")], [2, 0])
    ready = envs.recv(2)
    by_game = dict(zip(ready.ids.tolist(), ready.infos["moves"]["blue"], strict=True))
    assert by_game == {2: "Remove", 0: "Monitor"}


def test_a_description_follows_the_game() -> None:
    envs = make_vec(1, max_steps=1, red="sleep", autoreset="same_step")
    single = cagepool.make(max_steps=1, red="sleep")
    assert envs.describe(0) == single.describe() == "no move yet"
    envs.reset(seed=0)
    single.reset(seed=0)
    assert envs.describe(0) == single.describe() == "no move yet"
    envs.step([action_index("Restore User1")])
    single.step(action_index("Restore User1"))
    assert envs.describe(0) == single.describe() == "blue: Restore User1, success; red: Sleep"
    with pytest.raises(IndexError):
        envs.describe(1)


def test_green_is_named_when_it_scans() -> None:
    envs = make_vec(30, green=True, red="sleep", moves=True)
    envs.reset(seed=0)
    hosts = envs.step(np.zeros(30, int))[4]["moves"]["green_host"]
    scanned = [host is not None for host in hosts]
    assert 0 < sum(scanned) < 30
    for game, host in enumerate(hosts):
        assert (f"; green: PortScan {host};" in envs.describe(game)) == scanned[game]
