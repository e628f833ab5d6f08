"""Names of actions and hosts, both ways."""

import pytest

from cagepool import _core
from cagepool.sim import actions, hosts


def test_every_action_is_found_by_its_name() -> None:
    assert [actions.index(name) for name in actions.ACTIONS] == list(range(_core.ACTION_COUNT))
    assert [actions.name(index) for index in range(_core.ACTION_COUNT)] == list(actions.ACTIONS)


def test_every_red_action_is_found_by_its_name() -> None:
    assert [actions.red_index(name) for name in actions.RED_ACTIONS] == list(range(44))
    assert [actions.red_name(index) for index in range(44)] == list(actions.RED_ACTIONS)


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
    assert actions.index(name) == index


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
    assert actions.red_index(name) == index


def test_an_unknown_action_is_answered_with_those_like_it() -> None:
    with pytest.raises(ValueError, match=r"such as Restore User.*; got 'Restore User9'"):
        actions.index("Restore User9")
    with pytest.raises(ValueError, match=r"such as Impact Op_Server0.*'Impact User0'"):
        actions.red_index("Impact User0")


@pytest.mark.parametrize("index", [-1, 145])
def test_an_index_without_an_action_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=f"an action must be below 145, got {index}"):
        actions.name(index)


@pytest.mark.parametrize("index", [-1, 44])
def test_an_index_without_a_red_action_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=f"a red action must be below 44, got {index}"):
        actions.red_name(index)


def test_every_host_is_found_by_its_name() -> None:
    assert [hosts.index(name) for name in hosts.HOSTS] == list(range(_core.HOST_COUNT))
    assert [hosts.name(index) for index in range(_core.HOST_COUNT)] == list(hosts.HOSTS)


def test_a_host_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one of Defender, .* User4; got 'User5'"):
        hosts.index("User5")
    with pytest.raises(IndexError, match="below 13, got 13"):
        hosts.name(13)
