"""The belief equals a slow enumeration of all draws with exact rationals."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from cagepool import _core
from cagepool.sim import BeliefConfig, BeliefFilter
from cagepool.sim.belief import DECOY_PORTS
from cagepool.sim.names import EXPLOITS, action_index, host_index
from tests.sim.enumeration import Course, Enumeration, start
from tests.sim.games import int64s, start_batch

REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
WEIGHTS = (1, 2, 4)
ROUNDING = 1e-12  # of the doubles of the filter
STEPS = 25
# The slow enumeration merges nothing: a game ends where it has too many courses.
MAX_COURSES = 30
# Decoys and fixes on hosts that red reaches early, and anything at all.
BLUES = {
    "decoys": [
        "DecoyFemitter User2",
        "DecoySSHD User3",
        "DecoyTomcat Enterprise0",
        "DecoyFemitter Enterprise1",
        "DecoyTomcat User1",
        "DecoyVsftpd User4",
    ],
    "fixes": [
        f"{verb} {host}"
        for verb in ("Remove", "Restore", "Analyse")
        for host in ("User1", "User2", "User3", "User4", "Enterprise0", "Enterprise1")
    ],
}


def mean(courses: Sequence[Course], values: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
    """Probabilities of events, given that one of the courses is true."""
    priors = [course.probability * WEIGHTS[REDS.index(course.red)] for course in courses]
    total = sum(priors, Fraction(0))
    sums = [Fraction(0)] * values[0].size
    for prior, happens in zip(priors, values, strict=True):
        for i in np.flatnonzero(happens):
            sums[i] += prior
    return np.array([float(value / total) for value in sums])


def state_probabilities(courses: Sequence[Course]) -> dict[str, NDArray[np.float64]]:
    """What `probabilities` of a filter says of the present state."""
    rows = [course.row for course in courses]
    privileged = [row["s_priv"] > 0 for row in rows]
    return {
        "reds": mean(courses, [np.array(REDS) == course.red for course in courses]),
        "privileged": mean(courses, privileged),
        "user_seen": mean(
            courses,
            [(row["s_user_seen"] > 0) & ~p for row, p in zip(rows, privileged, strict=True)],
        ),
        "user_unseen": mean(
            courses,
            [(row["s_user_unseen"] > 0) & ~p for row, p in zip(rows, privileged, strict=True)],
        ),
        "scanned": mean(courses, [row["s_red_ports"] > 0 for row in rows]),
        "decoy_ports": mean(
            courses,
            [
                np.array(
                    [
                        bool(row["s_red_ports"][host_index(host)] >> EXPLOITS.index(exploit) & 1)
                        for host, exploit in DECOY_PORTS
                    ]
                )
                for row in rows
            ],
        ),
        "outage": mean(
            courses, [row["s_ot_running"][[host_index("Op_Server0")]] == 0 for row in rows]
        ),
    }


def next_probabilities(courses: Sequence[Course]) -> dict[str, NDArray[np.float64]]:
    """What `probabilities` says of red's next action, from the courses of one more step."""
    rows = [course.row for course in courses]
    hosts = np.arange(_core.HOST_COUNT)

    def targets(kind: _core.RedKind) -> NDArray[np.float64]:
        return mean(
            courses,
            [(hosts == row["red_target"]) & (row["red_kind"] == int(kind)) for row in rows],
        )

    return {
        "next_kind": mean(courses, [np.arange(6) == row["red_kind"] for row in rows]),
        "next_scan": targets(_core.RedKind.SCAN),
        "next_exploit": targets(_core.RedKind.EXPLOIT),
        "next_escalate": targets(_core.RedKind.ESCALATE),
        "b_line_position": mean(courses, [np.arange(15) == row["s_bline_pos"] for row in rows]),
    }


def log_likelihoods(courses: Sequence[Course]) -> list[float]:
    sums = [sum((c.probability for c in courses if c.red == red), Fraction(0)) for red in REDS]
    return [float(np.log(float(value))) if value else -np.inf for value in sums]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("blue", BLUES)
@pytest.mark.parametrize("green", [False, True], ids=["green off", "green on"])
@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
@pytest.mark.parametrize("red", REDS)
def test_a_belief_equals_the_enumeration_of_all_draws(
    red: str, edition: str, green: bool, blue: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    batch = start_batch(1, seed, red=red, edition=edition, green=green, max_steps=STEPS)
    belief = BeliefFilter(
        1, BeliefConfig(reds=REDS, weights=WEIGHTS, edition=edition, green=green, capacity=1000)
    )
    enumeration = Enumeration(edition, green)
    courses = start(REDS)
    actions: list[int] = []
    while len(courses) <= MAX_COURSES and len(actions) < STEPS - 1:
        actions.append(action_index(str(rng.choice(BLUES[blue]))) if rng.random() < 0.6 else 0)
        batch.step(int64s(actions[-1:]))
        belief.update(int64s(actions[-1:]), batch.observations)
        longer = [after for course in courses for after in enumeration.steps(course, actions)]
        seen = batch.observations[0].astype(np.uint8)
        courses = [
            course for course in longer if np.array_equal(course.row["obs"][: len(seen)], seen)
        ]
        said = belief.probabilities[0]
        for name, expected in state_probabilities(courses).items():
            np.testing.assert_allclose(said[name], expected, rtol=0, atol=ROUNDING, err_msg=name)
        np.testing.assert_allclose(
            belief.log_likelihood[0], log_likelihoods(courses), rtol=ROUNDING, atol=ROUNDING
        )
    ahead = [after for course in courses for after in enumeration.steps(course, [*actions, 0])]
    for name, expected in next_probabilities(ahead).items():
        np.testing.assert_allclose(said[name], expected, rtol=0, atol=ROUNDING, err_msg=name)
    assert belief.dropped["number"][0] == 0
