"""Frequencies of the random draws in networks of many hosts, in played games with fixed seeds."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from cagepool import _core
from cagepool.scenarios import Scenario
from tests.scenarios.files import sample
from tests.sim.games import start_batch, trace_rows

# Seeds are fixed, so a test fails always or never; a true game would fail one seed in ten thousand.
UNLIKELY = 1e-4
GAMES = 2000
WIDE = sample("wide64")
SCANNED, EXPLOITED, ESCALATED, MAPPED = range(4)


def steps(
    scenario: Scenario, red: str, count: int, **settings: object
) -> Iterator[tuple[NDArray[np.void], NDArray[np.void], NDArray[np.void]]]:
    """State before, moves and state after each step of games against a random defender."""
    batch = start_batch(GAMES, seed=3, scenario=scenario, red=red, max_steps=count, **settings)
    rng = np.random.default_rng(3)
    for _ in range(count):
        before = trace_rows(batch)
        batch.step(rng.integers(0, len(scenario.actions), GAMES))
        yield before, batch.moves.copy(), trace_rows(batch)


def assert_uniform(counts: NDArray[np.int64]) -> None:
    assert counts.sum() > 500, "too few draws to judge"
    assert chisquare(counts).pvalue > UNLIKELY


def candidates(
    kind: _core.RedKind, before: NDArray[np.void], after: NDArray[np.void]
) -> NDArray[np.bool_]:
    """Hosts among which Meander drew, (draws, hosts), but for the one that it drew."""
    lists = after["s_meander"].reshape(-1, 4, _core.MAX_HOSTS).astype(bool)
    known: NDArray[np.bool_] = before["s_known_ip"].astype(bool)
    tried = SCANNED if kind == _core.RedKind.SCAN else EXPLOITED
    among: NDArray[np.bool_] = known & ~lists[:, tried]
    if kind == _core.RedKind.ESCALATE:
        among = before["s_known_host"].astype(bool) & ~lists[:, ESCALATED]
        among &= ~lists[:, MAPPED] | lists[:, EXPLOITED]
    return among


@pytest.fixture(scope="module")
def meander_ranks() -> dict[_core.RedKind, dict[int, list[int]]]:
    """By kind of action and number of candidates: ranks of the drawn hosts among them."""
    found: dict[_core.RedKind, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    highest = 0
    for before, moves, after in steps(WIDE, "meander", 90):
        for kind in (_core.RedKind.SCAN, _core.RedKind.EXPLOIT, _core.RedKind.ESCALATE):
            games = np.flatnonzero(moves["red_kind"] == kind)
            targets = moves["red_target"][games]
            among = candidates(kind, before[games], after[games])
            among[np.arange(len(games)), targets] = True
            ranks = (among & (np.arange(_core.MAX_HOSTS) < targets[:, None])).sum(1)
            for count, rank in zip(among.sum(1).tolist(), ranks.tolist(), strict=True):
                found[kind][count].append(rank)
            highest = max(highest, int(targets.max(initial=0)))
    assert highest == _core.MAX_HOSTS - 1
    return found


@pytest.mark.parametrize("kind", ["SCAN", "EXPLOIT"])
def test_meander_draws_uniformly_among_any_number_of_hosts(
    kind: str, meander_ranks: dict[_core.RedKind, dict[int, list[int]]]
) -> None:
    judged = {
        count: ranks
        for count, ranks in meander_ranks[_core.RedKind[kind]].items()
        if count > 1 and len(ranks) > max(500, 10 * count)
    }
    assert judged
    for count, ranks in judged.items():
        assert_uniform(np.bincount(ranks, minlength=count))


def test_meander_never_has_two_hosts_to_escalate(
    meander_ranks: dict[_core.RedKind, dict[int, list[int]]],
) -> None:
    assert meander_ranks[_core.RedKind.ESCALATE].keys() == {1}


def test_b_line_draws_any_user_of_the_subnet_of_user0() -> None:
    moves = [m for _, m, _ in steps(WIDE, "b_line", 2)][1]
    assert (moves["red_kind"] == _core.RedKind.SCAN).all()
    users = [
        host
        for host in WIDE.members[WIDE.subnet_of[WIDE.host_index("User0")]]
        if WIDE.hosts[host] != "User0"
    ]
    counts = np.bincount(moves["red_target"], minlength=_core.MAX_HOSTS)
    assert_uniform(counts[users])
    assert counts[users].sum() == GAMES
    assert max(users) == _core.MAX_HOSTS - 1
    assert counts[_core.MAX_HOSTS - 1] > 0


def test_green_draws_each_of_eight_names_alike() -> None:
    scanned = np.concatenate([m["green_host"] for _, m, _ in steps(WIDE, "sleep", 6, green=True)])
    hosts = [host for host in WIDE.green_hosts if host is not None]
    counts = np.bincount(scanned + 1, minlength=_core.MAX_HOSTS + 1)
    assert len(hosts) == 8
    assert_uniform(np.array([counts[0], counts[1:].sum()]))
    assert_uniform(counts[1:][hosts])
    assert counts[1:][hosts].sum() == counts[1:].sum()


def test_misinform_draws_uniformly_among_the_decoys_whose_port_is_free() -> None:
    scenario = sample("cage1_misinform")
    batch = start_batch(GAMES, seed=4, scenario=scenario, red="sleep")
    misinform = scenario.action_index("Misinform Op_Server0")  # listens on port 22 only
    batch.step(np.full(GAMES, misinform))
    first = np.bincount(batch.moves["decoy_pick"], minlength=10)
    assert set(np.flatnonzero(first)) == {0, 6, 8, 9}
    assert_uniform(first[[0, 6, 8, 9]])
    placed_before = batch.moves["decoy_pick"].copy()
    batch.step(np.full(GAMES, misinform))
    assert (batch.moves["decoy_pick"] != placed_before).all()
    for _ in range(2):
        batch.step(np.full(GAMES, misinform))
    assert (batch.moves["blue_success"] == 1).all()
    batch.step(np.full(GAMES, misinform))
    assert (batch.moves["blue_success"] == 0).all()
    assert (batch.moves["decoy_pick"] == -1).all()
