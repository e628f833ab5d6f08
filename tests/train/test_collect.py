"""What a collector stores, with environments that tell from an observation what happened."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cagepool.train.config import PpoConfig
from cagepool.train.learner import Learner
from cagepool.train.networks import Networks
from cagepool.train.passes import Forward
from cagepool.train.rollout import Collector, Finished, PlainInputs
from cagepool.train.rollout_buffer import Rollout, Shape
from tests.train.scripted import CHOICES, LENGTHS, Counting, paid

NUMBER, EPISODE, STEP, LAST = range(4)


class Playing(NamedTuple):
    """All that is needed to collect."""

    collector: Collector
    networks: Networks
    rollout: Rollout

    def rollouts(self) -> Iterator[tuple[Rollout, Finished]]:
        """Collect until all episodes were played."""
        rng = np.random.default_rng(0)
        actor = Forward(self.networks.actor)
        while not self.collector.is_over:
            self.rollout.begin()
            yield self.rollout, self.collector.collect(actor, self.rollout, rng)


def playing(games: int, total: int, steps: int) -> Playing:
    envs = SyncVectorEnv([Counting] * games, autoreset_mode=AutoresetMode.SAME_STEP)
    collector = Collector(envs, PlainInputs(4, CHOICES), total, reward_scale=0.5)
    rollout = Rollout(Shape(steps, games, 4, CHOICES, masked=False))
    collector.start(0, rollout)
    return Playing(collector, Networks(4, CHOICES, (4,), "tanh", 0), rollout)


def test_row_t_holds_what_was_seen_before_choice_t_and_what_came_of_it() -> None:
    rollouts = playing(games=3, total=1000, steps=25).rollouts()

    for _ in range(2):
        rollout, _ = next(rollouts)
        for step, game in np.ndindex(25, 3):
            before, after = rollout.inputs[step : step + 2, game]
            choice = rollout.choices[step, game]
            assert rollout.rewards[step, game] == 0.5 * paid(before, int(choice))
            if rollout.ends[step, game]:
                assert after.tolist() == [game, before[EPISODE] + 1, 0, -1]
            else:
                assert after.tolist() == [game, before[EPISODE], before[STEP] + 1, choice]
        assert rollout.ends.sum() > 10


def test_the_stored_probabilities_are_those_of_the_stored_choices() -> None:
    play = playing(games=3, total=1000, steps=25)
    rollout, _ = next(play.rollouts())

    weights = [array.astype(np.float64) for array in play.networks.arrays().values()][:4]
    hidden = np.tanh(rollout.inputs[:-1] @ weights[0].T + weights[1])
    logits = hidden @ weights[2].T + weights[3]
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = np.take_along_axis(logits, rollout.choices[..., None], -1)[..., 0]

    np.testing.assert_allclose(rollout.log_probabilities, expected, rtol=1e-5)


def test_the_last_state_is_kept_of_an_episode_that_was_cut_off_and_of_no_other() -> None:
    rollout, _ = next(playing(games=3, total=1000, steps=25).rollouts())

    kept = {
        (final.step, int(game)): row.tolist()
        for final in rollout.finals
        for game, row in zip(final.games, final.inputs, strict=True)
    }
    expected = {
        (int(step), int(game)): [
            game,
            rollout.inputs[step, game, EPISODE],
            rollout.inputs[step, game, STEP] + 1,
            rollout.choices[step, game],
        ]
        for step, game in np.argwhere(rollout.ends)
        if rollout.inputs[step, game, EPISODE] % 2 == 1
    }
    assert kept == expected
    assert 3 < len(kept) < rollout.ends.sum()


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_time_limit_counts_the_value_of_the_last_state_and_an_end_counts_none(
    bootstrap: bool,
) -> None:
    play = playing(games=3, total=1000, steps=25)
    rollout, _ = next(play.rollouts())
    config = PpoConfig(gamma=0.9, gae_lambda=0.0, bootstrap=bootstrap, normalize_advantage=False)
    learner = Learner(play.networks, config, np.random.default_rng(0))

    rows, _ = learner.rows(rollout)

    found = rows.advantages.reshape(25, 3)
    for step, game in np.ndindex(25, 3):
        seen, choice = rollout.inputs[step, game], int(rollout.choices[step, game])
        is_cut_off = seen[EPISODE] % 2 == 1
        last_value = value(play.networks, [seen[NUMBER], seen[EPISODE], seen[STEP] + 1, choice])
        goes_on = not rollout.ends[step, game] or (is_cut_off and bootstrap)
        error = 0.5 * paid(seen, choice) + 0.9 * last_value * goes_on - value(play.networks, seen)
        assert found[step, game] == pytest.approx(error, rel=1e-4, abs=1e-3)


def value(networks: Networks, seen: list[float] | NDArray[np.float32]) -> float:
    weights = list(networks.arrays().values())[4:]
    hidden = np.tanh(weights[0] @ np.array(seen, np.float32) + weights[1])
    return float((weights[2] @ hidden + weights[3])[0])


@settings(max_examples=50)
@given(games=st.integers(1, 6), total=st.integers(1, 30), steps=st.integers(1, 9))
def test_exactly_the_episodes_that_were_asked_for_are_counted(
    games: int, total: int, steps: int
) -> None:
    play = playing(games, total, steps)
    learner = Learner(play.networks, PpoConfig(), np.random.default_rng(0))
    counted: list[list[float]] = []
    returns: list[float] = []
    lengths: list[int] = []
    for rollout, finished in play.rollouts():
        rows, _ = learner.rows(rollout)
        counted += [
            [*row, end] for row, end in zip(rows.inputs.tolist(), ends(rollout), strict=True)
        ]
        returns += finished.returns
        lengths += finished.lengths

    assert len(returns) == len(lengths) == play.collector.done == total
    assert len(counted) == sum(lengths) == play.collector.played_steps
    # What was learned from are whole episodes, each step of them once.
    episodes: dict[tuple[float, ...], list[float]] = {}
    for row in counted:
        episodes.setdefault((row[NUMBER], row[EPISODE]), []).append(row[STEP])
    for (game, episode), seen_steps in episodes.items():
        assert seen_steps == [*range(LENGTHS[int(game + episode) % len(LENGTHS)])]
    assert len(episodes) == total
    assert sum(row[-1] for row in counted) == total


def ends(rollout: Rollout) -> list[bool]:
    """Whether an episode ended, of the rows that are learned from."""
    taken = rollout.counted[: rollout.steps]
    return [bool(end) for end in rollout.ends[: rollout.steps][taken]]


def test_returns_and_lengths_are_those_of_whole_episodes() -> None:
    play = playing(games=2, total=12, steps=5)
    rows: list[tuple[tuple[float, float], float]] = []
    found: list[tuple[int, float]] = []
    for rollout, finished in play.rollouts():
        for step, game in np.argwhere(rollout.counted[: rollout.steps]):
            number, episode = rollout.inputs[step, game, [NUMBER, EPISODE]].tolist()
            rows.append(((number, episode), 2 * float(rollout.rewards[step, game])))
        found += zip(finished.lengths, finished.returns, strict=True)

    whole: dict[tuple[float, float], list[float]] = {}
    for key, reward in rows:
        whole.setdefault(key, []).append(reward)
    assert sorted(found) == sorted((len(rewards), sum(rewards)) for rewards in whole.values())
