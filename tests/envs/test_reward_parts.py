"""Parts of the official reward in the infos, and rewards with other weights of the parts."""

from typing import Any

import numpy as np
import pytest

import cagepool
from cagepool import make_vec
from cagepool.sim.names import ACTIONS, action_index
from cagepool.sim.rewards import REWARD_PARTS
from tests.envs.contract import BACKENDS, HORIZON, MODES, actions_for, assert_same, play, sync

GAMES = 64


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_puts_the_same_parts_into_its_infos(backend: str, mode: Any) -> None:
    settings: Any = {"max_steps": HORIZON, "red": "mix", "reward_parts": True}
    envs, reference = BACKENDS[backend](4, mode, **settings), sync(4, mode, **settings)
    actions = actions_for(4, 3 * HORIZON)
    assert_same(envs.reset(seed=3), reference.reset(seed=3))
    assert_same(play(envs, actions), play(reference, actions))
    envs.close()


@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_parts_sum_to_the_reward_exactly_in_random_games(mode: Any, edition: str) -> None:
    envs = make_vec(
        GAMES, red="mix", green=True, max_steps=37, edition=edition, autoreset=mode,
        reward_parts=True,
    )  # fmt: skip
    envs.reset(seed=11)
    rng = np.random.default_rng(4)
    seen = np.zeros(len(REWARD_PARTS), np.bool_)
    for _ in range(120):
        _, rewards, _, _, infos = envs.step(rng.integers(len(ACTIONS), size=GAMES))
        tenths = np.zeros((GAMES, len(REWARD_PARTS)), np.int64)
        for holder in (infos, infos.get("final_info", {})):
            parts = holder.get("reward_parts")
            if parts is not None:
                assert np.array_equal(
                    np.stack([parts[name] for name in REWARD_PARTS], axis=1), parts["tenths"] / 10
                )
                tenths += parts["tenths"]
        assert np.array_equal(tenths.sum(axis=1) / 10, rewards)
        seen |= (tenths != 0).any(axis=0)
    assert dict(zip(REWARD_PARTS, seen, strict=True)) == dict.fromkeys(REWARD_PARTS, True)


def test_without_the_setting_there_are_no_parts_and_no_hook() -> None:
    envs = make_vec(2)
    envs.reset(seed=1)
    assert envs.step(np.zeros(2, np.int64))[-1] == {}
    assert vars(envs)["_hooks"] is None


def test_a_single_game_has_its_parts_as_numbers() -> None:
    env = cagepool.make(red="sleep", reward_parts=True)
    env.reset(seed=1)
    *_, infos = env.step(action_index("Restore User1"))
    parts = infos["reward_parts"]
    assert parts.pop("tenths").tolist() == [0, 0, 0, -10, 0]
    assert parts == {"user_hosts": 0, "servers": 0, "impact": 0, "restores": -1, "other": 0}


def test_weights_change_the_reward_and_the_official_return_stays() -> None:
    weights = {"restores": 0.25, "impact": 3.0}
    game: Any = {"red": "b_line", "max_steps": 30, "autoreset": "disabled"}
    weighted = make_vec(GAMES, **game, reward_parts=True, reward_weights=weights)
    official = make_vec(GAMES, **game)
    weighted.reset(seed=5)
    official.reset(seed=5)
    rng = np.random.default_rng(0)
    returns = np.zeros(GAMES)
    for _ in range(30):
        actions = rng.integers(len(ACTIONS), size=GAMES)
        _, rewards, _, _, infos = weighted.step(actions)
        _, official_rewards, _, _, _ = official.step(actions)
        parts = infos["reward_parts"]
        by_hand = sum(parts[name] * weights.get(name, 1.0) for name in REWARD_PARTS)
        assert rewards == pytest.approx(by_hand)
        returns += official_rewards
    assert infos["official_return"] == pytest.approx(returns)


def test_weights_of_one_give_the_official_reward_to_the_bit() -> None:
    weighted = make_vec(GAMES, red="mix", reward_weights=dict.fromkeys(REWARD_PARTS, 1.0))
    official = make_vec(GAMES, red="mix")
    weighted.reset(seed=5)
    official.reset(seed=5)
    actions = np.random.default_rng(0).integers(len(ACTIONS), size=(100, GAMES))
    for row in actions:
        assert np.array_equal(weighted.step(row)[1], official.step(row)[1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reward_weights": {"hosts": 1}}, "reward_weights must be among user_hosts, .* got hosts"),
        ({"reward_weights": {"impact": np.inf}}, "must be finite"),
        ({"reward_weights": {}, "reward": len}, "got both"),
    ],
)
def test_wrong_weights_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_vec(2, **settings)
