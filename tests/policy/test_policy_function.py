"""Policies of a user: a function or an object that maps observations to actions."""

from typing import Any

import numpy as np
import pytest

import cagepool
from cagepool.evaluate import Trial, score_table
from cagepool.evaluate.rollout import episode_totals
from cagepool.policy import scripted_defender
from cagepool.policy.defenders import Defender, FunctionDefender, as_defender
from cagepool.sim.names import action_index
from cagepool.types import Bools, Float32s, Int64s
from tests.scenarios.files import sample
from tests.sim.games import start_batch

FEW = Trial(episodes=40, max_steps=30, seed=3)
RED = "B_lineAgent"
SLEEP = action_index("Sleep")
DECOY = action_index("DecoyApache Op_Server0")


def sleep(observations: Float32s) -> Int64s:
    assert observations.shape[1:] == (52,)
    assert observations.dtype == np.float32
    return np.full(len(observations), SLEEP)


class Counting:
    """Restores User1 in every third step of an episode: it needs its memory."""

    def reset(self, mask: Bools) -> None:
        assert mask.all()
        self.steps = np.zeros(len(mask), np.int64)

    def __call__(self, observations: Float32s) -> Int64s:
        self.steps += 1
        assert len(observations) == len(self.steps)
        return np.where(self.steps % 3, SLEEP, action_index("Restore User1"))


def played(policy: Any) -> list[float]:
    totals: list[float] = episode_totals(as_defender(policy, "mine:p"), FEW, RED).ravel().tolist()
    return totals


def test_a_function_plays_as_the_scripted_defender_that_it_copies() -> None:
    expected = episode_totals(scripted_defender("sleep"), FEW, RED).ravel().tolist()

    assert played(sleep) == expected
    assert (
        played(lambda observations: np.eye(1, 145, SLEEP).repeat(len(observations), 0)) == expected
    )


def test_a_policy_with_memory_is_reset_at_the_start_of_every_batch() -> None:
    class Own(Defender):
        def begin(self, _games: object) -> None:
            self.step = 0

        def act(self, observations: Any) -> Int64s:
            self.step += 1
            action = SLEEP if self.step % 3 else action_index("Restore User1")
            return np.full(len(observations), action)

    assert played(Counting) == played(Counting()) == played(Own()) == played(Own)
    score_table(as_defender(Counting(), "mine"), Trial(episodes=300), [RED])


@pytest.mark.parametrize("by_actions", [False, True])
def test_action_masks_are_those_of_the_environment(by_actions: bool) -> None:
    envs = cagepool.make_vec(2, red="SleepAgent")
    envs.reset(seed=1)
    seen: list[Bools] = []
    moves = [DECOY, SLEEP, action_index("Restore Op_Server0"), SLEEP]

    def policy(observations: Float32s, masks: Bools) -> Int64s:
        seen.append(masks.copy())
        return np.full(len(observations), moves[len(seen) - 1])

    defender = FunctionDefender(policy, "mine")
    defender.begin(2 if by_actions else envs.batch)
    for move in moves:
        assert (defender.act(envs.observations) == move).all()
        np.testing.assert_array_equal(seen[-1], envs.action_masks())
        envs.step(np.full(2, move))
    assert seen[0][0, DECOY]
    assert not seen[1][0, DECOY]
    assert seen[3][0, DECOY]


def test_masks_are_passed_by_name_or_as_a_second_required_argument() -> None:
    def by_name(observations: Float32s, action_masks: Bools | None = None) -> Int64s:
        assert action_masks is not None
        return sleep(observations)

    def with_another_default(observations: Float32s, temperature: float = 1.0) -> Int64s:
        assert temperature == 1.0
        return sleep(observations)

    assert played(by_name) == played(with_another_default) == played(sleep)


def test_what_load_returns_is_a_policy() -> None:
    defender = cagepool.load("zoo:b_line")

    assert played(cagepool.load("zoo:b_line")) == played(defender)


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            np.zeros((40, 2)),
            r"integers of shape \(40,\) or scores of shape \(40, 145\), got float64",
        ),
        (np.zeros(40), r"got float64 of shape \(40,\)"),
        (0, r"got int64 of shape \(\)"),
        (np.full(40, 145), "must return actions from 0 to 144, got 145 to 145"),
        (np.full(40, -1), "must return actions from 0 to 144, got -1 to -1"),
    ],
)
def test_what_is_not_actions_is_refused(output: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        played(lambda _observations: output)
    assert str(caught.value).startswith("mine:p must return ")


def test_an_error_in_the_policy_keeps_its_traceback() -> None:
    def fails(_observations: Float32s) -> Int64s:
        raise ValueError("mine")

    with pytest.raises(RuntimeError, match="the policy mine:p raised ValueError") as caught:
        played(fails)
    assert str(caught.value.__cause__) == "mine"


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"must be a function of observations or .*, mine is a int",
    ):
        as_defender(7, "mine")


@pytest.mark.parametrize("scenario", ["tiny", "wide40"])
def test_a_function_gets_the_masks_and_actions_of_the_scenario_that_is_played(
    scenario: str,
) -> None:
    batch = start_batch(3, scenario=sample(scenario))
    count = len(sample(scenario).actions)

    def policy(observations: Float32s, masks: Bools) -> Float32s:
        assert observations.shape == batch.observations.shape
        assert masks.shape == (3, count)
        return np.where(masks, np.arange(count), -1.0).astype(np.float32)

    defender = as_defender(policy, "mine")
    defender.begin(batch)
    for _ in range(5):
        actions = defender.act(batch.observations)
        assert (actions < count).all()
        batch.step(actions)
