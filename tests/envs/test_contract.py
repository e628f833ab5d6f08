"""Every backend is the same vector environment: same seeds, same actions, same trajectory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from cagepool.envs.settings import EnvKeywords
from tests.envs.contract import (
    BACKENDS,
    HORIZON,
    MODES,
    AnyVectorEnv,
    actions_for,
    assert_same,
    play,
    sync,
)

Make = Callable[..., AnyVectorEnv]


@pytest.fixture(params=BACKENDS)
def make(request: pytest.FixtureRequest) -> Make:
    return BACKENDS[request.param]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("red", ["B_lineAgent", "RedMeanderAgent", "mix"])
@pytest.mark.parametrize("order", [None, "critical_first"], ids=["unjudged", "judged"])
def test_the_trajectory_is_that_of_single_environments(
    make: Make, mode: str, red: str, order: str | None
) -> None:
    settings: EnvKeywords = {"red": red, "order": order, "max_steps": HORIZON, "green": True}
    actions = actions_for(5, 4 * HORIZON)
    envs, reference = make(5, mode, **settings), sync(5, mode, **settings)

    assert_same(envs.reset(seed=3), reference.reset(seed=3))
    assert_same(play(envs, actions), play(reference, actions))


def test_the_next_episodes_are_those_of_single_environments(make: Make, mode: str) -> None:
    envs, reference = make(3, mode, red="mix"), sync(3, mode, red="mix")
    actions = actions_for(3, 10)
    seeds: list[Any] = [5, None, None, [8, None, 2]]
    for seed in seeds:
        assert_same(envs.reset(seed=seed), reference.reset(seed=seed))
        assert_same(play(envs, actions), play(reference, actions))


def test_a_mask_resets_only_the_games_that_it_names(make: Make, mode: str) -> None:
    envs, reference = make(4, mode), sync(4, mode)
    mask = np.array([True, False, True, False])
    actions = actions_for(4, 12)
    for one in (envs, reference):
        one.reset(seed=1)
        play(one, actions[:6])

    seeds: Any = [7, 8, 9, 10]
    assert_same(
        envs.reset(seed=seeds, options={"reset_mask": mask.copy()}),
        reference.reset(seed=seeds, options={"reset_mask": mask.copy()}),
    )
    assert_same(play(envs, actions[6:]), play(reference, actions[6:]))


def test_spaces_and_metadata_are_as_gymnasium_wants_them(make: Make, mode: str) -> None:
    envs = make(3, mode)
    assert envs.num_envs == 3
    assert envs.metadata["autoreset_mode"] is AutoresetMode[mode.upper()]
    assert envs.single_observation_space.shape == (52,)
    assert envs.observation_space.shape == (3, 52)
    assert envs.single_action_space == sync(3, mode).single_action_space
    assert envs.action_space == sync(3, mode).action_space
    assert envs.observation_space == sync(3, mode).observation_space


def test_what_is_returned_is_in_its_space(make: Make, mode: str) -> None:
    envs = make(3, mode, max_steps=HORIZON)
    observations, infos = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert infos == {}
    envs.action_space.seed(0)
    for _ in range(HORIZON):
        observations, rewards, terminations, truncations, _ = envs.step(envs.action_space.sample())
        assert observations in envs.observation_space
        assert (rewards.dtype, rewards.shape) == (np.float64, (3,))
        assert (terminations.dtype, terminations.shape) == (np.bool_, (3,))
        assert (truncations.dtype, truncations.shape) == (np.bool_, (3,))
        assert not terminations.any()
    assert truncations.all()


def test_what_was_returned_is_never_changed_by_a_later_call(make: Make, mode: str) -> None:
    envs = make(4, mode, max_steps=HORIZON)
    kept = [envs.reset(seed=0)[0]]
    then = [kept[0].copy()]
    for row in actions_for(4, HORIZON):
        results = envs.step(row)[:4]
        kept += results
        then += [result.copy() for result in results]
        assert all(result.flags.writeable for result in results)
    envs.reset(options={"reset_mask": np.array([True, False, True, False])})
    envs.reset()
    assert_same(kept, then)


def test_games_without_a_seed_differ_from_run_to_run(make: Make) -> None:
    actions = actions_for(20, 30)
    outcomes = []
    for _ in range(2):
        envs = make(20, "next_step", red="RedMeanderAgent")
        envs.reset()
        outcomes.append(np.stack([step[0] for step in play(envs, actions)]))
    assert (outcomes[0] != outcomes[1]).any()


def test_a_seed_of_a_game_is_that_of_the_vector_plus_its_place(make: Make) -> None:
    wide, narrow = make(4, "next_step", red="mix"), make(2, "next_step", red="mix")
    wide.reset(seed=10)
    narrow.reset(seed=12)
    for row in actions_for(4, 30):
        assert_same(wide.step(row)[0][2:], narrow.step(row[2:])[0])


def test_closing_twice_is_harmless(make: Make) -> None:
    envs = make(2, "next_step")
    envs.reset(seed=0)
    envs.close()
    envs.close()
    assert envs.closed
