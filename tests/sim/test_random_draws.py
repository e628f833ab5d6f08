"""Frequencies of all random draws (docs/rules.md, section 12), in played games with fixed seeds."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from cagepool import _core
from cagepool.sim.names import host_index
from tests.sim.games import play_step, start_batch, trace_rows

# Seeds are fixed, so a test fails always or never; a true game would fail one seed in ten thousand.
UNLIKELY = 1e-4
GAMES = 4000
GREEN_HOSTS = ["Enterprise0", "Enterprise1", "Enterprise2", *(f"User{i}" for i in range(5))]
WEIGHTS = np.array([2.0, 1.0, 3.0, 4.0, 0.1, 5.0, 6.0, 7.0])


@dataclass
class Step:
    """What was known before one step of many games, and what was done in it."""

    before: NDArray[np.void]
    moves: NDArray[np.void]
    after: NDArray[np.void]

    def of(self, kind: _core.RedKind) -> NDArray[np.intp]:
        return np.flatnonzero(self.moves["red_kind"] == kind)


def steps(red: str, count: int, *, green: bool = False) -> Iterator[Step]:
    """Games against a defender that places decoys and restores hosts at random."""
    batch = start_batch(GAMES, seed=7, red=red, green=green, max_steps=count)
    rng = np.random.default_rng(7)
    for _ in range(count):
        before = trace_rows(batch)
        batch.step(rng.integers(0, _core.ACTION_COUNT, GAMES))
        yield Step(before, batch.moves.copy(), trace_rows(batch))


def assert_frequencies(counts: NDArray[np.int64], shares: NDArray[np.float64]) -> None:
    assert counts.sum() > 500, "too few draws to judge"
    assert chisquare(counts, shares * counts.sum()).pvalue > UNLIKELY


def assert_uniform(counts: NDArray[np.int64]) -> None:
    assert_frequencies(counts, np.full(len(counts), 1 / len(counts)))


def test_green_scans_in_half_of_the_steps_each_of_eight_hosts_alike() -> None:
    scanned = np.concatenate([s.moves["green_host"] for s in steps("sleep", 10, green=True)])
    counts = np.bincount(scanned + 1, minlength=14)
    assert_uniform(np.array([counts[0], counts[1:].sum()]))
    assert_uniform(counts[[1 + host_index(name) for name in GREEN_HOSTS]])
    assert counts[1:].sum() == counts[[1 + host_index(name) for name in GREEN_HOSTS]].sum()


def test_green_scans_nothing_unless_it_is_asked_to() -> None:
    assert all((step.moves["green_host"] == -1).all() for step in steps("sleep", 3))


def test_b_line_draws_one_of_four_user_hosts_for_the_whole_episode() -> None:
    targets = np.stack(
        [
            np.where(s.moves["red_kind"] == _core.RedKind.SWEEP, -1, s.moves["red_target"])
            for s in steps("b_line", 12)
        ]
    )
    users = np.where(targets >= host_index("User0"), targets, -1)
    drawn = users.max(axis=0)
    assert ((users == drawn) | (users == -1)).all()
    assert (drawn == targets[1]).all()
    counts = np.bincount(drawn, minlength=13)
    assert_uniform(counts[9:])
    assert counts[9:].sum() == GAMES


def candidates(step: Step, game: int, kind: _core.RedKind) -> int:
    """The hosts among which Meander drew its target, as bits."""
    bits = 1 << np.arange(13)
    known_ip = int(step.before["s_known_ip"][game] @ bits)
    known_host = int(step.before["s_known_host"][game] @ bits)
    drawn = 1 << int(step.moves["red_target"][game])
    lists = step.after["s_meander"][game].reshape(4, -1)
    scanned, exploited, escalated, mapped = (
        sum(1 << int(host) for host in np.flatnonzero(hosts)) for hosts in lists
    )
    if kind == _core.RedKind.SCAN:
        return known_ip & ~(scanned ^ drawn)
    if kind == _core.RedKind.ESCALATE:
        return known_host & ~(escalated ^ drawn) & (~mapped | exploited)
    return known_ip & ~(exploited ^ drawn)


def meander_ranks(kind: _core.RedKind) -> dict[int, NDArray[np.int64]]:
    """By number of candidates, how often the first, second, ... of them was drawn."""
    ranks: dict[int, list[int]] = {}
    for step in steps("meander", 60):
        for game in step.of(kind):
            among = candidates(step, game, kind)
            drawn = 1 << int(step.moves["red_target"][game])
            assert among & drawn
            ranks.setdefault(among.bit_count(), []).append((among & (drawn - 1)).bit_count())
    return {count: np.bincount(found, minlength=count) for count, found in ranks.items()}


@pytest.mark.parametrize(
    ("kind", "most"), [(_core.RedKind.SCAN, 5), (_core.RedKind.EXPLOIT, 8)], ids=["scan", "exploit"]
)
def test_meander_draws_each_candidate_alike(kind: _core.RedKind, most: int) -> None:
    ranks = meander_ranks(kind)
    for count in range(2, most + 1):
        assert_uniform(ranks[count])


def test_meander_never_has_two_hosts_to_escalate() -> None:
    assert meander_ranks(_core.RedKind.ESCALATE).keys() == {1}


def test_red_takes_its_best_exploit_three_times_in_four_else_any_other_alike() -> None:
    chosen: dict[int, list[int]] = {}  # by known ports
    for red in ("b_line", "meander"):
        for step in steps(red, 40):
            for game in step.of(_core.RedKind.EXPLOIT):
                ports = int(step.before["s_red_ports"][game, step.moves["red_target"][game]])
                chosen.setdefault(ports, []).append(int(step.moves["exploit"][game]))
    judged = 0
    for ports, exploits in chosen.items():
        options = np.array([exploit for exploit in range(8) if ports >> exploit & 1], np.int64)
        options = options[np.argsort(WEIGHTS[options])]
        counts = np.bincount(np.add(exploits, 1), minlength=9)[1:]
        if ports == 0:
            assert not counts.any()
        elif len(options) == 1:
            assert counts[options[0]] == len(exploits)
        elif len(exploits) > 500:
            others = len(options) - 1
            assert_frequencies(counts[options], np.array([0.25 / others] * others + [0.75]))
            assert counts[options].sum() == len(exploits)
            judged += 1
    assert judged >= 6


def test_a_reverse_shell_is_detected_nineteen_times_in_twenty() -> None:
    detected = np.concatenate([step.moves["detected"] for step in steps("meander", 40)])
    counts = np.bincount(detected + 1, minlength=3)
    assert_frequencies(counts[1:], np.array([0.05, 0.95]))


def test_red_escalates_each_of_several_sessions_alike() -> None:
    batch = start_batch(GAMES, seed=7, red="given")
    play_step(batch, "Sleep", "DiscoverRemoteSystems User")
    play_step(batch, "Sleep", "DiscoverNetworkServices User3")
    for _ in range(4):  # the first may fail
        play_step(batch, "Sleep", "ExploitRemoteService User3")
    play_step(batch, "Sleep", "PrivilegeEscalate User3")
    play_step(batch, "Sleep", "DiscoverNetworkServices Enterprise0")
    for _ in range(3):
        play_step(batch, "Sleep", "ExploitRemoteService Enterprise0")
    play_step(batch, "Sleep", "PrivilegeEscalate Enterprise0")

    escalated = [
        batch.session_log(game)["privileged"][-3:].tolist()
        for game in range(GAMES)
        if batch.moves["red_success"][game] == 1
    ]
    assert len(escalated) > 0.99 * GAMES
    assert {sum(sessions) for sessions in escalated} == {1}
    assert_uniform(np.sum(escalated, axis=0))


@pytest.mark.parametrize(
    ("red", "shares"),
    [
        ("mix", [1 / 3, 1 / 3, 1 / 3]),
        ("b_line+sleep", [1 / 2, 0, 1 / 2]),
        ("RedMeanderAgent+B_lineAgent", [1 / 2, 1 / 2, 0]),
    ],
)
def test_red_is_drawn_from_its_mix_for_every_episode(red: str, shares: list[float]) -> None:
    batch = start_batch(GAMES, seed=7, red=red, max_steps=1, autoreset="same_step")
    drawn = []
    for _ in range(3):
        drawn.append(batch.true_state["red"].copy())
        play_step(batch, "Sleep")
    for episode in drawn:
        counts = np.bincount(episode, minlength=3)
        possible = np.array(shares) > 0
        assert counts[~possible].sum() == 0
        assert_frequencies(counts[possible], np.array(shares)[possible])
    if red == "mix":
        pairs = np.bincount(3 * drawn[0].astype(int) + drawn[1], minlength=9)
        assert_uniform(pairs)  # one episode says nothing of the next


def test_games_with_seeds_in_a_row_are_not_alike() -> None:
    first = next(steps("sleep", 1, green=True)).moves["green_host"]
    pairs = (first[:-1] >= 0) * 2 + (first[1:] >= 0)
    assert_uniform(np.bincount(pairs, minlength=4))


def test_weighted_reds_are_drawn_by_their_weights() -> None:
    batch = start_batch(20 * GAMES, seed=7, red="sleep:0.1+b_line:0.6+meander:0.3")
    assert_frequencies(np.bincount(batch.true_state["red"]), np.array([0.6, 0.3, 0.1]))
    batch = start_batch(GAMES, seed=7, red="sleep:0.25+meander:0.75")
    assert_frequencies(np.bincount(batch.true_state["red"])[1:], np.array([0.75, 0.25]))


def test_a_snapshot_keeps_the_weights_of_reds() -> None:
    seeds = np.arange(GAMES, dtype=np.uint64)
    batch, other = (start_batch(GAMES, red=red) for red in ("b_line:0.9+sleep:0.1", "b_line+sleep"))
    ids = np.arange(GAMES)
    other.restore(ids, batch.save(ids))
    for games in (batch, other):
        games.reset(seeds)
    np.testing.assert_array_equal(batch.true_state["red"], other.true_state["red"])
    assert np.mean(batch.true_state["red"] == 0) > 0.85
