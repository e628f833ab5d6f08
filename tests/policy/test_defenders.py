"""What the scripted defenders do."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cagepool.policy.defenders import SCRIPTED, Defender, scripted_defender
from cagepool.sim import Batch, BatchConfig
from cagepool.sim.names import ACTIONS, HOSTS, action_index, action_name, host_index

GOLDEN = Path(__file__).parents[1] / "golden"
MONITOR = action_index("Monitor")


def started(defender: Defender, games: int, first_seed: int = 0) -> Batch:
    batch = Batch(games, BatchConfig(max_steps=200, autoreset="disabled"))
    batch.reset(np.arange(first_seed, first_seed + games, dtype=np.uint64))
    defender.begin(batch)
    return batch


def played(name: str, games: int, steps: int, first_seed: int = 0) -> NDArray[np.int64]:
    """The actions of a defender in real games, (step, game)."""
    defender = scripted_defender(name)
    batch = started(defender, games, first_seed)
    chosen = []
    for _ in range(steps):
        chosen.append(defender.act(batch.observations))
        batch.step(chosen[-1])
    return np.array(chosen)


@pytest.mark.parametrize("name", ["react-remove", "react-restore"])
@pytest.mark.parametrize("file", ["traces_dev.npz", "traces_dev_leaderboard.npz"])
def test_a_reacting_defender_plays_as_recorded(name: str, file: str) -> None:
    with np.load(GOLDEN / file) as trace:
        policy = json.loads(str(trace["meta"]))["policy_names"].index(name.replace("-", "_"))
        of_policy = trace["ep_policy"] == policy
        recorded = {
            field: trace[field][of_policy] for field in ("blue_action", "detected", "red_target")
        }
    games, steps = recorded["blue_action"].shape
    defender = scripted_defender(name)
    batch = started(defender, games)

    chosen = []
    for step in range(steps):
        chosen.append(defender.act(batch.observations))
        for field in ("detected", "red_target"):
            batch.moves[field] = recorded[field][:, step]

    np.testing.assert_array_equal(np.array(chosen).T, recorded["blue_action"])
    assert games > 0
    assert (recorded["blue_action"] != MONITOR).any()


@pytest.mark.parametrize(
    ("detected", "target", "expected"),
    [
        (1, "User3", "Restore User3"),
        (1, "Defender", "Restore Defender"),
        (1, "User0", "Monitor"),
        (0, "User3", "Monitor"),
        (-1, "User3", "Monitor"),
    ],
    ids=["detected", "first host", "own foothold of red", "undetected", "nothing to detect"],
)
def test_react_restore_answers_a_detected_exploit(
    detected: int, target: str, expected: str
) -> None:
    defender = scripted_defender("react-restore")
    batch = started(defender, games=1)
    assert action_name(defender.act(batch.observations)[0]) == "Monitor"
    batch.moves["detected"] = detected
    batch.moves["red_target"] = host_index(target)

    assert action_name(defender.act(batch.observations)[0]) == expected


def test_an_exploit_during_a_cure_goes_unnoticed() -> None:
    defender = scripted_defender("react-remove")
    batch = started(defender, games=1)
    defender.act(batch.observations)
    batch.moves["detected"] = 1
    batch.moves["red_target"] = host_index("User1")
    cure = defender.act(batch.observations)
    batch.moves["red_target"] = host_index("User2")

    after = defender.act(batch.observations)

    assert [action_name(cure[0]), action_name(after[0])] == ["Remove User1", "Monitor"]


def test_a_new_episode_starts_by_monitoring_whatever_happened_before() -> None:
    defender = scripted_defender("react-restore")
    batch = started(defender, games=3)
    defender.act(batch.observations)
    batch.moves["detected"] = 1
    batch.moves["red_target"] = host_index("User1")

    defender.begin(batch)

    assert (defender.act(batch.observations) == MONITOR).all()


def test_sleep_only_sleeps() -> None:
    assert (played("sleep", games=5, steps=20) == action_index("Sleep")).all()


def test_the_rotation_restores_every_host_but_user0_in_thirteen_steps() -> None:
    chosen = played("restore-rotation", games=2, steps=26)

    one_round = [action_name(action) for action in chosen[:13, 0]]
    restored = [f"Restore {host}" for host in HOSTS if host != "User0"]
    assert one_round == ["Monitor", *restored]
    np.testing.assert_array_equal(chosen[13:], chosen[:13])
    np.testing.assert_array_equal(chosen[:, 0], chosen[:, 1])


def test_random_plays_every_action_equally_often() -> None:
    chosen = played("random", games=1000, steps=100)

    counts = np.bincount(chosen.ravel(), minlength=len(ACTIONS))
    assert len(counts) == len(ACTIONS)
    assert stats.chisquare(counts).pvalue > 1e-3  # the seeds are fixed: passes always or never


def test_random_does_not_follow_from_the_step_before() -> None:
    chosen = played("random", games=1000, steps=100)

    pairs = np.histogram2d(chosen[:-1].ravel(), chosen[1:].ravel(), bins=5)[0]
    assert stats.chi2_contingency(pairs).pvalue > 1e-3  # the seeds are fixed


def test_random_shares_no_luck_with_red() -> None:
    defender = scripted_defender("random")
    batch = started(defender, games=2000)
    chosen, targets = [], []
    for _ in range(20):
        chosen.append(defender.act(batch.observations))
        batch.step(chosen[-1])
        targets.append(batch.moves["red_target"].copy())

    user_hosts = targets[1]  # B_line draws the host of its attack in the second step
    for at_step in chosen:
        table = np.histogram2d(user_hosts, at_step, bins=4)[0]
        assert stats.chi2_contingency(table).pvalue > 1e-4  # twenty tests on fixed seeds


def test_random_plays_a_game_alike_whatever_its_neighbours() -> None:
    together = played("random", games=9, steps=30)
    alone = played("random", games=1, steps=30, first_seed=4)

    np.testing.assert_array_equal(together[:, 4], alone[:, 0])


def test_an_unknown_defender_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=f"one of {', '.join(SCRIPTED)}; got 'hope'"):
        scripted_defender("hope")


def test_a_defender_that_has_not_begun_says_so() -> None:
    with pytest.raises(AttributeError, match="begin must be called before act"):
        scripted_defender("react-restore").act(np.zeros((1, 52), np.float32))
