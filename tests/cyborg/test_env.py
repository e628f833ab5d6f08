"""CybORG as a Gymnasium environment; tests marked parity need CybORG."""

import random

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from cagepool.cyborg import CybORGEnv
from cagepool.cyborg.env import IsolatedRandom
from cagepool.sim import dtypes
from cagepool.sim.names import ACTIONS, EDITIONS, action_index

STEPS = 25


@pytest.fixture(scope="module")
def env() -> CybORGEnv:
    return CybORGEnv(red="RedMeanderAgent", green=True, max_steps=STEPS)


def play_episode(env: CybORGEnv, seed: int | None) -> list[NDArray[np.generic]]:
    """Observations, rewards and true states of an episode with a random blue."""
    results: list[NDArray[np.generic]] = [env.reset(seed=seed)[0]]
    draw = random.Random(1)
    for _ in range(env.max_steps):
        observation, reward, *_ = env.step(draw.randrange(len(ACTIONS)))
        results += [observation, np.array(reward), env.true_state()]
    return results


def is_same(one: list[NDArray[np.generic]], other: list[NDArray[np.generic]]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.mark.parity
def test_the_environment_is_what_gymnasium_expects(env: CybORGEnv) -> None:
    check_env(env, skip_render_check=True)


@pytest.mark.parity
def test_an_episode_is_truncated_at_the_horizon_and_never_terminated(env: CybORGEnv) -> None:
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(STEPS)]

    assert ends == [(False, False)] * (STEPS - 1) + [(False, True)]
    with pytest.raises(RuntimeError, match=r"^the game is over; reset it before the next step$"):
        env.step(0)


@pytest.mark.parity
def test_the_first_step_needs_a_reset() -> None:
    with pytest.raises(RuntimeError, match=r"^reset must come before step$"):
        CybORGEnv().step(0)


@pytest.mark.parity
@pytest.mark.parametrize("action", [-1, 145])
def test_an_action_out_of_range_is_refused(env: CybORGEnv, action: int) -> None:
    env.reset(seed=0)
    with pytest.raises(IndexError, match=f"^an action must be below 145, got {action}$"):
        env.step(action)


@pytest.mark.parity
def test_an_edition_that_cyborg_does_not_play_is_refused(env: CybORGEnv) -> None:
    (other,) = {*EDITIONS} - {env.edition}
    with pytest.raises(ValueError, match=f"^edition must be that of the CybORG found, .*{other}"):
        CybORGEnv(edition=other)
    assert CybORGEnv(edition=env.edition).edition == env.edition


@pytest.mark.parity
def test_a_seed_decides_the_game(env: CybORGEnv) -> None:
    first = play_episode(env, 5)

    assert is_same(play_episode(env, 5), first)
    assert is_same(play_episode(CybORGEnv(red="meander", green=True, max_steps=STEPS), 5), first)
    assert not is_same(play_episode(env, 6), first)
    assert not is_same(play_episode(env, None), play_episode(env, None))


@pytest.mark.parity
def test_environments_of_one_process_do_not_share_random_numbers(env: CybORGEnv) -> None:
    other = CybORGEnv(red="meander", green=True, max_steps=STEPS)
    alone = play_episode(other, 9)

    results: list[NDArray[np.generic]] = [other.reset(seed=9)[0]]
    env.reset(seed=1)
    draw = random.Random(1)
    for _ in range(STEPS):
        env.step(0)
        random.random()
        observation, reward, *_ = other.step(draw.randrange(len(ACTIONS)))
        results += [observation, np.array(reward), other.true_state()]

    assert is_same(results, alone)


@pytest.mark.parity
def test_the_callers_random_state_is_unchanged(env: CybORGEnv) -> None:
    before = random.getstate()
    CybORGEnv(red="sleep")
    play_episode(env, 2)
    assert random.getstate() == before


@pytest.mark.parity
def test_a_seed_gives_the_episode_of_cyborgs_own_seed(env: CybORGEnv) -> None:
    env.reset(seed=11)
    ours = dict(env.cyborg.get_ip_map())
    before = random.getstate()
    env.cyborg.set_seed(11)
    env.cyborg.reset(agent="Blue")
    random.setstate(before)

    assert env.cyborg.get_ip_map() == ours


@pytest.mark.parity
def test_the_true_state_has_the_native_layout_and_is_a_copy(env: CybORGEnv) -> None:
    env.reset(seed=0)
    true_state = env.true_state()
    copy = true_state.copy()
    env.step(action_index("DecoyApache Defender"))

    assert (true_state.shape, true_state.dtype) == ((), dtypes.true_state(13))
    assert true_state == copy
    assert env.true_state()["decoys"][0] == 1
    assert env.true_state_dict()["Defender"]["System info"]["Hostname"] == "Defender"


def draws(state: IsolatedRandom, count: int) -> list[float]:
    with state:
        return [random.random() for _ in range(count)]


def test_the_same_seed_gives_the_same_numbers_whoever_draws_between() -> None:
    one, other = IsolatedRandom(), IsolatedRandom()
    one.seed(7)
    other.seed(7)

    halves = draws(one, 3)
    random.random()
    whole = draws(other, 6)
    halves += draws(one, 3)

    assert halves == whole
    assert whole[0] == random.Random(7).random()


def test_an_unseeded_state_is_random() -> None:
    assert draws(IsolatedRandom(), 3) != draws(IsolatedRandom(), 3)


def test_the_global_generator_is_left_as_it_was_even_after_an_error() -> None:
    state = IsolatedRandom()
    before = random.getstate()

    def fail() -> None:
        with state:
            random.random()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert random.getstate() == before
