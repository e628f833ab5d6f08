"""Names and indices of actions and hosts."""

import pytest

from cagepool import _core
from cagepool.sim.names import (
    ACTIONS,
    HOSTS,
    RED_ACTIONS,
    action_index,
    action_name,
    host_index,
    red_action_index,
    red_action_name,
    red_shares,
    red_weights,
)


def test_every_action_is_found_by_its_name() -> None:
    assert [action_index(name) for name in ACTIONS] == list(range(_core.ACTION_COUNT))
    assert [action_name(index) for index in range(_core.ACTION_COUNT)] == list(ACTIONS)


def test_every_red_action_is_found_by_its_name() -> None:
    assert [red_action_index(name) for name in RED_ACTIONS] == list(range(44))
    assert [red_action_name(index) for index in range(44)] == list(RED_ACTIONS)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("Sleep", 0),
        ("Monitor", 1),
        ("Analyse Defender", 2),
        ("Remove Defender", 15),
        ("DecoyApache User3", 39),
        ("DecoyFemitter Defender", 41),
        ("DecoyHarakaSMPT Defender", 54),
        ("DecoySmss Defender", 67),
        ("DecoySSHD Defender", 80),
        ("DecoySvchost Defender", 93),
        ("DecoyTomcat Defender", 106),
        ("DecoyVsftpd User4", 131),
        ("Restore User3", 143),
        ("Restore User4", 144),
    ],
)
def test_actions_stand_where_the_rules_put_them(name: str, index: int) -> None:
    assert action_index(name) == index


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("Sleep", 0),
        ("DiscoverRemoteSystems User", 3),
        ("DiscoverNetworkServices Defender", 4),
        ("ExploitRemoteService User4", 29),
        ("PrivilegeEscalate Op_Server0", 37),
        ("Impact Op_Server0", 43),
    ],
)
def test_red_actions_go_by_the_names_of_cyborg(name: str, index: int) -> None:
    assert red_action_index(name) == index


def test_an_unknown_action_is_answered_with_those_like_it() -> None:
    with pytest.raises(ValueError, match=r"such as Restore User.*; got 'Restore User9'"):
        action_index("Restore User9")
    with pytest.raises(ValueError, match=r"such as Impact Op_Server0.*'Impact User0'"):
        red_action_index("Impact User0")


@pytest.mark.parametrize("index", [-1, 145])
def test_an_index_without_an_action_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=f"an action must be below 145, got {index}"):
        action_name(index)


@pytest.mark.parametrize("index", [-1, 44])
def test_an_index_without_a_red_action_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=f"a red action must be below 44, got {index}"):
        red_action_name(index)


def test_every_host_is_found_by_its_name() -> None:
    assert [host_index(name) for name in HOSTS] == list(range(_core.HOST_COUNT))


def test_a_host_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one of Defender, .* User4; got 'User5'"):
        host_index("User5")


@pytest.mark.parametrize(
    ("red", "weights"),
    [
        ("sleep", {"SleepAgent": 1.0}),
        ("b_line+sleep", {"B_lineAgent": 0.5, "SleepAgent": 0.5}),
        ("b_line:3+meander:1", {"B_lineAgent": 0.75, "RedMeanderAgent": 0.25}),
        ("sleep:0.2+b_line:0.8", {"SleepAgent": 0.2, "B_lineAgent": 0.8}),
    ],
)
def test_the_weights_of_reds_are_relative_to_their_sum(red: str, weights: dict[str, float]) -> None:
    assert red_weights(red) == pytest.approx(weights)
    assert sum(red_weights(red).values()) == pytest.approx(1)


def test_shares_are_cumulative_in_the_order_of_the_core() -> None:
    assert red_shares("mix") == (0, 0, 0)
    assert red_shares("sleep:0.25+b_line:0.5+meander:0.25") == (32768, 49152, 65535)
    assert red_shares("sleep:0.25+b_line:0.75") == (49152, 49152, 65535)
