"""A reward function of the user replaces the official reward and nothing else."""

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import cagepool
from cagepool import make_vec
from cagepool.envs import FeatureVectorEnv, RewardStep
from cagepool.sim.encoder import FeatureConfig
from cagepool.sim.names import HOSTS, action_index
from cagepool.sim.rewards import REWARD_PARTS
from cagepool.types import Float64s
from tests.envs import reward_functions
from tests.envs.contract import BACKENDS, HORIZON, MODES, actions_for, assert_same, play, sync


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_gives_the_same_rewards_and_infos(backend: str, mode: Any) -> None:
    settings: Any = {
        "max_steps": HORIZON, "red": "RedMeanderAgent", "reward": reward_functions.mixed,
        "order": "critical_first",
    }  # fmt: skip
    envs, reference = BACKENDS[backend](4, mode, **settings), sync(4, mode, **settings)
    actions = actions_for(4, 4 * HORIZON)
    assert_same(envs.reset(seed=3), reference.reset(seed=3))
    assert_same(play(envs, actions), play(reference, actions))
    envs.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("edition", ["2.1", "leaderboard"])
def test_the_parts_add_up_to_the_official_reward_exactly(mode: Any, edition: str) -> None:
    steps: list[Float64s] = []

    def check(step: RewardStep) -> Float64s:
        assert tuple(step.parts) == REWARD_PARTS
        assert step.part_tenths.shape == (len(step), len(REWARD_PARTS))
        np.testing.assert_array_equal(step.part_tenths.sum(axis=1) / 10, step.reward)
        for name, tenths in zip(REWARD_PARTS, step.part_tenths.T, strict=True):
            np.testing.assert_array_equal(step.parts[name], tenths / 10)
        steps.append(step.part_tenths.sum(axis=0))
        return step.reward

    envs = make_vec(40, red="b_line", max_steps=60, edition=edition, autoreset=mode, reward=check)
    envs.reset(seed=1)
    rng = np.random.default_rng(0)
    restores = action_index(f"Restore {HOSTS[0]}") + rng.integers(0, 13, (130, 40))
    play(envs, np.where(rng.random((130, 40)) < 0.05, restores, 0))
    assert (np.sum(steps, axis=0)[:4] < 0).all()  # all but `other`, which no red agent reaches


def test_a_function_sees_the_last_state_of_an_episode_and_the_state_before() -> None:
    seen: dict[str, Any] = {}

    def look(step: RewardStep) -> Float64s:
        seen["after"] = step.true_state.access.copy()
        seen["before"] = step.true_state_before.access.copy()
        seen["ended"] = step.ended.copy()
        return step.reward

    envs = make_vec(3, max_steps=[5, 6, 30], autoreset="same_step", reward=look)
    single = make_vec(3, max_steps=30, autoreset="disabled")
    envs.reset(seed=2)
    single.reset(seed=2)
    for number in range(1, 7):
        before = single.true_state.access.copy()
        envs.step([0, 0, 0])
        single.step([0, 0, 0])
        playing = np.array([number <= 5, True, True])
        np.testing.assert_array_equal(seen["after"][playing], single.true_state.access[playing])
        np.testing.assert_array_equal(seen["before"][playing], before[playing])
        assert seen["ended"].tolist() == [number == 5, number == 6, False]


def test_a_step_that_only_resets_has_no_reward_and_does_not_ask_the_function() -> None:
    asked: list[list[int]] = []

    def one(step: RewardStep) -> Float64s:
        asked.append(step.ids.tolist())
        return np.ones(len(step))

    envs = make_vec(2, max_steps=[1, 2], reward=one)
    envs.reset(seed=0)
    rewards = [envs.step([0, 0])[1].tolist() for _ in range(3)]
    assert rewards == [[1, 1], [0, 1], [1, 0]]
    assert asked == [[0, 1], [1], [0]]


def test_a_restored_game_that_was_over_is_reset_without_a_reward() -> None:
    envs = make_vec(2, max_steps=2, reward=lambda step: np.ones(len(step)))
    envs.reset(seed=0)
    envs.step([0, 0])
    running = envs.save([0])
    envs.step([0, 0])
    over = envs.save([1])
    envs.reset()
    envs.restore([0, 1], [*running, *over])
    assert envs.step([0, 0])[1].tolist() == [1, 0]
    assert envs.step([0, 0])[1].tolist() == [0, 1]


@pytest.mark.parametrize("mode", MODES)
def test_the_return_of_an_episode_is_that_of_the_function_beside_the_official_one(
    mode: Any,
) -> None:
    envs = make_vec(2, max_steps=[20, 30], autoreset=mode, reward=reward_functions.twice)
    envs.reset(seed=0)
    for row in actions_for(2, 30):
        *_, truncations, infos = envs.step(row)
        if truncations[1]:
            break
        if mode == "disabled" and truncations.any():
            envs.reset(options={"reset_mask": truncations})
    official = (infos["final_info"] if mode == "same_step" else infos)["official_return"]
    assert official[1] < 0
    # A sum of 30 tenths.
    np.testing.assert_allclose(infos["episode"]["r"][1], 2 * official[1], atol=1e-9)


def test_gymnasiums_statistics_agree() -> None:
    ours = make_vec(2, max_steps=5, reward="tests.envs.reward_functions:mixed")
    plain = make_vec(2, max_steps=5, reward=reward_functions.mixed, statistics=False)
    theirs = RecordEpisodeStatistics(plain)
    for envs in (ours, theirs):
        envs.reset(seed=0)
    for row in actions_for(2, 20):
        own, wrapped = ours.step(row)[4], theirs.step(row)[4]
        assert own.keys() == wrapped.keys()
        if own:
            np.testing.assert_array_equal(own["episode"]["r"], wrapped["episode"]["r"])


def test_send_and_recv_give_the_rewards_of_the_function() -> None:
    envs = make_vec(4, max_steps=3, reward=reward_functions.mixed, autoreset="same_step")
    reference = make_vec(4, max_steps=3, reward=reward_functions.mixed, autoreset="same_step")
    envs.reset(seed=0)
    reference.reset(seed=0)
    for row in actions_for(4, 7):
        expected = reference.step(row)
        envs.send(row[[2, 0]], [2, 0])
        envs.send(row[[1, 3]], [1, 3])
        ready = envs.recv(4)
        np.testing.assert_array_equal(ready.rewards, expected[1][ready.ids])
        if expected[3].any():
            returns = expected[4]["final_info"]["official_return"]
            received = ready.infos["final_info"]["official_return"]
            np.testing.assert_array_equal(received, returns[ready.ids])


def test_a_single_environment_gives_the_function_arrays_of_length_one() -> None:
    env = gym.make("cagepool/CAGE2-v0", reward=reward_functions.mixed, max_steps=10)
    envs = make_vec(1, reward=reward_functions.mixed, max_steps=10, autoreset="disabled")
    env.reset(seed=4)
    envs.reset(seed=4)
    for action in actions_for(1, 10)[:, 0]:
        single, many = env.step(int(action)), envs.step([action])
        assert type(single[1]) is float
        assert single[1] == many[1][0]
    assert single[4]["official_return"] == many[4]["official_return"][0]


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copied_environment_keeps_its_function(twin_of: Any) -> None:
    env = cagepool.make(reward=reward_functions.mixed)
    env.reset(seed=0)
    env.step(5)
    twin = twin_of(env)
    assert_same([twin.step(3) for _ in range(20)], [env.step(3) for _ in range(20)])


def test_features_and_masks_stay() -> None:
    envs, plain = (
        FeatureVectorEnv(
            make_vec(3, max_steps=5, autoreset="same_step", reward=reward), FeatureConfig()
        )
        for reward in (reward_functions.twice, None)
    )
    for one in (envs, plain):
        one.reset(seed=0)
    for row in actions_for(3, 12) % 40:
        shaped, official = envs.step(row), plain.step(row)
        np.testing.assert_array_equal(shaped[0], official[0])
        np.testing.assert_array_equal(shaped[1], 2 * official[1])
        np.testing.assert_array_equal(envs.action_masks(), plain.action_masks())


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("raising", r"raising raised KeyError: 2 \(reward_functions.py, line \d+\)$"),
        ("too_short", r"too_short must return an array of 2 finite numbers, got shape \(1,\)$"),
        ("scalar", r"scalar must return an array of 2 finite numbers, got shape \(\)$"),
        ("words", "words must return an array of 2 finite numbers, got type <U4$"),
        ("nothing", "nothing must return an array of 2 finite numbers, got NoneType$"),
        ("not_a_number", "not_a_number must return an array of 2 finite numbers, got nan$"),
        ("ragged", "ragged must return an array of 2 finite numbers, got list$"),
        ("writing", "writing raised ValueError: assignment destination is read-only"),
    ],
)
def test_a_function_that_fails_gets_a_sentence(function: str, sentence: str) -> None:
    envs = make_vec(2, reward=getattr(reward_functions, function))
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=f"^reward function {sentence}"):
        envs.step([0, 0])
    envs.reset(seed=0)  # the environment can still be used


@pytest.mark.parametrize(
    ("reward", "error", "sentence"),
    [
        (7, TypeError, "reward must be a function or module:function, got 7"),
        ("shaped", ValueError, "reward must be module:attribute, got 'shaped'"),
        ("no_such_module:f", ValueError, "reward names the module 'no_such_module', which does"),
        (
            "tests.envs.reward_functions:twise",
            ValueError,
            "reward names 'twise', which the module .* does not have, did you mean twice",
        ),
        (
            "tests.envs.reward_functions:NOT_A_FUNCTION",
            ValueError,
            "reward must name a function, tests.envs.reward_functions:NOT_A_FUNCTION is 3",
        ),
    ],
)
@pytest.mark.parametrize("make", [cagepool.make, lambda **keywords: make_vec(2, **keywords)])
def test_a_function_that_cannot_be_found_gets_a_sentence(
    make: Any, reward: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        make(reward=reward)
