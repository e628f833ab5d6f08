"""True states of workers are queried when due, and have an age."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cagepool import make_vec
from tests.envs.contract import actions_for
from tests.envs.workers.toy_envs import Checksummed

HORIZON = 4
# By mode: ages after the reset and each of ten steps, and the steps in the episode at those times.
AGES: dict[tuple[Any, str], list[int]] = {
    ("every", "next_step"): [0] * 11,
    ("every", "same_step"): [0] * 11,
    (3, "next_step"): [0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 0],
    ("end", "next_step"): [0, 1, 2, 3, 0, 1, 2, 3, 4, 0, 1],
    ("end", "same_step"): [0, 1, 2, 3, 1, 2, 3, 4, 1, 2, 3],
}


@pytest.mark.parametrize(("asked", "mode"), AGES)
def test_its_age_is_told_and_at_0_it_is_that_of_a_fresh_query(asked: Any, mode: Any) -> None:
    with make_vec(
        3,
        env=partial(Checksummed, HORIZON),
        backend="workers",
        workers=2,
        autoreset=mode,
        true_state=asked,
    ) as envs:
        envs.reset(seed=10)
        ages = []
        for step in range(11):
            if step:
                envs.step([0, 0, 0])
            assert len(set(envs.true_state_age.tolist())) == 1
            ages.append(int(envs.true_state_age[0]))
            assert envs.true_state[:, 1].tolist() == [10, 11, 12]
            if ages[-1] == 0:
                assert (envs.true_state == np.array(envs.call("true_state"))).all()
        assert ages == AGES[asked, mode]


def test_the_state_at_the_end_stays_after_an_automatic_reset() -> None:
    with make_vec(
        1,
        env=partial(Checksummed, HORIZON),
        backend="workers",
        autoreset="same_step",
        true_state="end",
    ) as envs:
        envs.reset(seed=1)
        for _ in range(HORIZON):
            *_, truncations, _ = envs.step([0])
        assert truncations.all()
        assert envs.true_state.tolist() == [[HORIZON, 1]]


def test_records_are_those_of_the_native_games() -> None:
    native = make_vec(4, red="RedMeanderAgent", max_steps=20)
    workers = make_vec(
        4, red="RedMeanderAgent", max_steps=20, backend="workers", true_state="every"
    )
    native.reset(seed=2)
    workers.reset(seed=2)
    for row in actions_for(4, 30):
        native.step(row)
        workers.step(row)
        state: Any = workers.true_state
        np.testing.assert_array_equal(state.access, native.true_state.access)
        np.testing.assert_array_equal(state.decoys, native.true_state.decoys)
    workers.close()


def test_in_free_mode_rows_that_were_received_are_current() -> None:
    with make_vec(4, env=Checksummed, backend="workers", workers=2, true_state="every") as envs:
        envs.reset(seed=0)
        envs.send([0, 0, 0, 0])
        for _ in range(200):
            ready = envs.recv()
            assert (envs.true_state[ready.ids, 0] == ready.observations[:, 0]).all()
            envs.send(ready.ids, ready.ids)


def test_it_cannot_be_written() -> None:
    with make_vec(2, env=Checksummed, backend="workers", true_state="every") as envs:
        with pytest.raises(ValueError, match="read-only"):
            envs.true_state[0] = 1
        with pytest.raises(ValueError, match="read-only"):
            envs.true_state_age[0] = 1


def test_nobody_is_asked_who_need_not_be() -> None:
    envs = make_vec(2, env=Checksummed, backend="workers")
    with pytest.raises(RuntimeError, match="made with true_state='every'"):
        envs.true_state  # noqa: B018 - looking is the mistake


class Bashful(Checksummed):
    """Has no true state before its first reset."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.begun = True
        return super().reset(seed=seed, options=options)

    def true_state(self) -> Any:
        if not self.begun:
            raise gym.error.ResetNeeded
        return super().true_state()


def test_an_environment_without_one_before_its_reset_is_understood() -> None:
    with make_vec(2, env=Bashful, backend="workers", true_state="every") as envs:
        envs.reset(seed=5)
        assert envs.true_state.tolist() == [[0, 5], [0, 6]]


@pytest.mark.parametrize("mode", [0, -1, True, "sometimes", 1.5])
def test_a_mode_that_is_none_is_refused(mode: Any) -> None:
    with pytest.raises(ValueError, match="true_state must be 'every', 'end', 'never' or"):
        make_vec(2, env=Checksummed, backend="workers", true_state=mode)
