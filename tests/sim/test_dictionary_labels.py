"""Labels and counts in the dictionary of the true state, in any game."""

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cagepool.cyborg.dict_state import true_state_dict
from cagepool.sim.names import HOSTS, host_index
from tests.sim.games import SEEDS, play, started


@given(seed=SEEDS, policy=st.integers(0, 100))
def test_sessions_and_processes_agree_with_the_counts(seed: int, policy: int) -> None:
    batch = started(2, seed, red=["b_line", "meander"])
    rng = np.random.default_rng(policy)
    for _ in range(40):
        batch.step(rng.integers(0, 145, 2))
    for game in range(2):
        state = true_state_dict(batch, game)
        truth = batch.true_state[game]
        for host in HOSTS:
            red = [s for s in state[host]["Sessions"] if s["Agent"] == "Red"]
            privileged = [s for s in red if s["Username"] in ("root", "SYSTEM")]
            seen, unseen = (truth[kind][host_index(host)] for kind in ("user_seen", "user_unseen"))
            assert len(privileged) == truth["privileged"][host_index(host)]
            assert len(red) - len(privileged) == seen + unseen
            assert [s["ID"] for s in red] == sorted(s["ID"] for s in red)
            owners = [(s["PID"], s["Username"]) for s in state[host]["Sessions"]]
            processes = state[host]["Processes"]
            assert [(p["PID"], p["Username"]) for p in processes[-len(owners) :]] == owners
            pids = [p["PID"] for p in processes]
            assert len(set(pids)) == len(pids)
            assert all(1 <= pid <= 32767 for pid in pids)


def labels(state: dict[str, Any]) -> list[tuple[IPv4Address, list[int]]]:
    return [
        (state[host]["Interface"][-1]["IP Address"], [s["PID"] for s in state[host]["Sessions"]])
        for host in HOSTS
    ]


def test_addresses_and_process_ids_last_for_an_episode() -> None:
    batch = started(2, red="sleep", max_steps=3, autoreset="same_step")
    first, neighbour = (labels(true_state_dict(batch, game)) for game in range(2))
    play(batch, "DecoyTomcat User1")
    play(batch, "Restore User1")
    assert labels(true_state_dict(batch, 0)) == first
    play(batch, "Sleep")  # the episode ends
    again = labels(true_state_dict(batch, 0))
    assert first != neighbour
    assert first != again


@given(seed=SEEDS)
def test_subnets_are_three_small_networks_and_hosts_live_in_theirs(seed: int) -> None:
    state = true_state_dict(started(1, seed), 0)
    networks: dict[IPv4Network, set[str]] = {}
    for host in HOSTS:
        loopback, own = state[host]["Interface"][-2:]
        assert loopback["IP Address"] == IPv4Address("127.0.0.1")
        assert own["IP Address"] in list(own["Subnet"].hosts())
        assert own["Subnet"].prefixlen == 28
        assert own["Subnet"].subnet_of(IPv4Network("10.0.0.0/16"))
        networks.setdefault(own["Subnet"], set()).add(host[:2])
    assert sorted(map(sorted, networks.values())) == [["De", "En"], ["Op"], ["Us"]]
    assert len({state[host]["Interface"][-1]["IP Address"] for host in HOSTS}) == len(HOSTS)


def test_each_call_builds_the_dictionary_anew() -> None:
    batch = started()
    first = true_state_dict(batch, 0)
    expected = true_state_dict(batch, 0)
    first["User1"]["Sessions"].clear()
    first["User1"]["Processes"][0]["Connections"].clear()
    assert true_state_dict(batch, 0) == expected


@pytest.mark.parametrize("game", [-1, 1])
def test_a_game_that_does_not_exist_is_refused(game: int) -> None:
    with pytest.raises(IndexError, match=f"index must be below 1, got {game}"):
        true_state_dict(started(), game)
