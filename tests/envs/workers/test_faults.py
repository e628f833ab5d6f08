"""Environments that raise, die or hang are detected, reported and replaced."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError

from cagepool import make_vec
from cagepool.envs import WorkerVectorEnv
from cagepool.errors import EnvironmentFault
from tests.envs.workers.forks import FORKS, forked_child
from tests.envs.workers.toy_envs import FAULTS, HANGS, Checksummed, Faulty

pytestmark = pytest.mark.slow

ENVS = 4
BAD = 2
FAIL = Faulty.FAIL
WORDS = {
    "exception": "environment 2 raised while being {}: ValueError: a mistake in the environment",
    "exit": "worker 1 exited with code 3 while environment 2 was being {}; it had environments 2",
    "kill": "worker 1 was ended by SIGKILL while environment 2 was being {}",
    "loop": "environment 2 did not answer within 1 s while being {}",
    "SystemExit": "environment 2 raised while being {}: SystemExit: 4",
    "unpicklable info": "environment 2 raised while being {}: .*pickle",
    "list as info": "environment 2 raised while being {}: .*info must be a dict, got list",
    "info in itself": "environment 2 raised while being {}: .*info must not contain itself",
    "info that exits": "environment 2 raised while being {}: .*SystemExit: 4",
    "info for workers only": "environment 2 returned an info that can't be unpickled: ValueError",
    "closed pipes": "worker 1 closed its pipes without exiting while environment 2 was being {}",
    "GIL held": "environment 2 did not answer within 1 s while being {}",
    "wrong shape": r"environment 2 raised while being {}: .* must have shape \(64,\), got \(65,\)",
}


LOSE_THE_PROCESS = ("exit", "kill", "closed pipes", "info for workers only", *HANGS)
BESIDE = ["no fork", *(pytest.param(how, marks=pytest.mark.soak) for how in FORKS)]

Maker: TypeAlias = Callable[..., WorkerVectorEnv]


@pytest.fixture(params=BESIDE)
def make_envs(request: pytest.FixtureRequest) -> Iterator[Maker]:
    """Makes environments that can fail; then a forked child of this process lives, or none."""
    with ExitStack() as children:

        def make(fault: str, **settings: Any) -> WorkerVectorEnv:
            if fault in HANGS:
                request.getfixturevalue("hang_clock")
            settings = {"timeout": 1.0 if fault in HANGS else 60.0, **settings}
            envs = WorkerVectorEnv([partial(Faulty, fault)] * ENVS, workers=2, **settings)
            if request.param in FORKS:
                children.enter_context(forked_child(request.param))
            return envs

        yield make


@pytest.fixture
def started(make_envs: Maker) -> Maker:
    """Makes environments that can fail, and resets them."""

    def start(fault: str, **settings: Any) -> WorkerVectorEnv:
        envs = make_envs(fault, **settings)
        envs.reset(seed=0)
        return envs

    return start


def failing() -> Any:
    actions = np.arange(ENVS)
    actions[BAD] = FAIL
    return actions


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_step_is_reported_with_its_environment(fault: str, started: Maker) -> None:
    envs = started(fault)
    with pytest.raises(EnvironmentFault, match=WORDS[fault].format("stepped")) as caught:
        envs.step(failing())
    assert caught.value.index == BAD
    assert caught.value.worker == 1
    if fault == "exception":
        assert "in raise_an_exception" in caught.value.trace
    with pytest.raises(ClosedEnvironmentError):
        envs.step(failing())
    envs.close()


class Unplugged(Faulty):
    """Closes the pipes of its worker and goes on."""

    def step(self, action: np.int64) -> Any:
        if action == FAIL:
            os.closerange(3, 256)
        return Checksummed.step(self, action)


def test_a_worker_that_closed_its_pipes_and_goes_on_is_named() -> None:
    envs = WorkerVectorEnv([partial(Unplugged, "exit")] * ENVS, workers=2)
    envs.reset(seed=0)
    ends = "exited with code .|closed its pipes without exiting"
    # The worker may be in its next environment, or in none, when its end is noticed.
    with pytest.raises(EnvironmentFault, match=f"worker 1 ({ends}).*; it had environments 2 to 3"):
        envs.step(failing())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_free_mode_is_reported_with_its_environment(fault: str, started: Maker) -> None:
    envs = started(fault)
    envs.send([1, FAIL], [0, BAD])
    with pytest.raises(EnvironmentFault, match=WORDS[fault].format("stepped")):
        envs.recv(min_ready=2)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_reset_is_reported_with_its_environment(fault: str, make_envs: Maker) -> None:
    envs = make_envs(fault)
    with pytest.raises(EnvironmentFault, match=WORDS[fault].format("asked to reset")):
        envs.reset(seed=0, options={"fail": BAD})


@pytest.mark.parametrize("fault", ["exception", "exit", "kill", "SystemExit"])
def test_a_fault_at_the_start_is_reported_with_its_environment(fault: str) -> None:
    makers: Any = [Checksummed] * ENVS
    makers[BAD] = partial(Faulty, fault, at_start=True)
    with pytest.raises(EnvironmentFault, match=WORDS[fault].format("made")):
        WorkerVectorEnv(makers, workers=2, on_fault="restart")


@pytest.mark.usefixtures("hang_clock")
def test_a_start_that_hangs_is_given_up() -> None:
    makers: Any = [Checksummed, partial(Faulty, "loop", at_start=True)]
    with pytest.raises(EnvironmentFault, match="environment 1 did not answer within 3 s"):
        WorkerVectorEnv(makers, workers=1, timeout=3)


@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_restart_the_others_have_stepped_as_usual(fault: str, started: Maker) -> None:
    with started(fault, on_fault="restart") as envs:
        envs.step(np.arange(ENVS))
        observations, rewards, terminations, truncations, infos = envs.step(failing())
        ended = truncations.tolist()
        # An exception ends one environment; the end of a process, all of its environments.
        lost = [2, 3] if fault in LOSE_THE_PROCESS else [2]
        assert ended == [index in lost for index in range(ENVS)]
        assert infos["_restarted"].tolist() == ended
        assert infos["restarted"].tolist() == ended
        assert "environment" in infos["fault"][2] or "Traceback" in infos["fault"][2]
        assert envs.restarts.tolist() == [int(end) for end in ended]
        assert not terminations.any()
        healthy = [index for index in range(ENVS) if index not in lost]
        assert observations[healthy, 0].tolist() == [2] * len(healthy)
        if len(lost) > 1:  # it may have been half written
            assert not observations[BAD].any()
        assert rewards.tolist() == [0.0 if end else 2.0 for end in ended]

        observations, _, _, truncations, infos = envs.step(np.arange(ENVS))
        assert observations[:, 0].tolist() == [0 if end else 3 for end in ended]
        assert not truncations.any()
        assert infos == {}


@pytest.mark.parametrize("mode", ["same_step", "disabled"])
def test_after_a_restart_episodes_begin_as_the_mode_says(mode: Any, started: Maker) -> None:
    with started("kill", on_fault="restart", autoreset=mode) as envs:
        observations, _, _, truncations, infos = envs.step(failing())
        assert truncations.tolist() == [False, False, True, True]
        if mode == "same_step":
            assert observations[:, 0].tolist() == [1, 1, 0, 0]
            assert infos["_final_obs"].tolist() == truncations.tolist()
        else:
            envs.reset(options={"reset_mask": truncations})
        assert envs.step(np.arange(ENVS))[0][:, 0].tolist() == [2, 2, 1, 1]


def test_after_a_restart_in_free_mode_the_lost_are_told_when_they_are_next_sent(
    started: Maker,
) -> None:
    with started("kill", on_fault="restart") as envs:
        envs.send([FAIL], [BAD])
        ready = envs.recv()
        assert ready.ids.tolist() == [BAD]
        assert ready.truncations.tolist() == [True]
        assert ready.infos["restarted"].tolist() == [True]
        envs.send(np.arange(ENVS))
        ready = envs.recv(ENVS)
        rows = np.argsort(ready.ids)
        assert ready.truncations[rows].tolist() == [False, False, False, True]
        assert ready.observations[rows, 0].tolist()[:3] == [1, 1, 0]


@pytest.mark.parametrize("fault", ["exception", "kill"])
def test_a_reset_that_fails_again_and_again_is_given_up(fault: str, started: Maker) -> None:
    envs = started(fault, on_fault="restart", max_restarts=2)
    words = WORDS[fault].format("asked to reset")
    with pytest.raises(EnvironmentFault, match=words):
        envs.reset(seed=0, options={"fail": BAD})


def test_a_worker_killed_between_steps_is_replaced(started: Maker) -> None:
    with started("exception", on_fault="restart") as envs:
        os.kill(envs._pool.workers[0].process.pid, signal.SIGKILL)
        *_, truncations, infos = envs.step(np.arange(ENVS))
        assert truncations.tolist() == [True, True, False, False]
        assert infos["_restarted"].tolist() == truncations.tolist()


def test_a_worker_killed_between_steps_is_reported(started: Maker) -> None:
    envs = started("exception")
    os.kill(envs._pool.workers[0].process.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match=r"worker 0 was ended by SIGKILL.* 0 to 1"):
        envs.step(np.arange(ENVS))


def test_a_fault_after_the_last_restart_is_an_error(started: Maker) -> None:
    envs = started("exception", on_fault="restart", max_restarts=2)
    envs.step(failing())
    envs.step(np.arange(ENVS))
    envs.step(failing())
    envs.step(np.arange(ENVS))
    with pytest.raises(EnvironmentFault, match="environment 2 raised") as caught:
        envs.step(failing())
    assert caught.value.__notes__ == ["after 2 restarts, the most allowed"]


def test_a_reset_with_a_restart_is_a_reset(started: Maker) -> None:
    with started("exception", on_fault="restart") as envs:
        os.kill(envs._pool.workers[1].process.pid, signal.SIGKILL)
        observations, infos = envs.reset(seed=5)
        assert observations[:, 2].tolist() == [5, 6, 7, 8]
        assert infos["_restarted"].tolist() == [False, False, True, True]
        assert envs.step(np.arange(ENVS))[0][:, 0].tolist() == [1] * ENVS


class Flaky(Checksummed):
    """Raises or exits if the action says so."""

    def step(self, action: np.int64) -> Any:
        if action == FAIL:
            raise ValueError("by chance")
        if action == FAIL - 1:
            os._exit(1)
        return super().step(action)


@pytest.mark.parametrize("steps", [120, pytest.param(500, marks=pytest.mark.soak)])
def test_many_steps_with_crashes_lose_nothing_of_the_healthy(steps: int) -> None:
    count = 20
    chance = np.random.default_rng(0)
    expected = np.zeros(
        count, np.int64
    )  # steps in the episode; -1: the next step starts an episode
    crashes = 0
    with make_vec(
        count, env=Flaky, backend="workers", workers=4, on_fault="restart", max_restarts=1000
    ) as envs:
        envs.reset(seed=0)
        for step in range(steps):
            actions = np.full(count, step)
            raising = chance.random(count) < 0.01
            actions[raising] = FAIL
            if step % 100 == 50:
                actions[3] = FAIL - 1
            observations, rewards, _, truncations, infos = envs.step(actions)
            restarted = infos.get("restarted", np.zeros(count, np.bool_)).astype(bool)
            renewed = expected == -1
            assert (truncations == restarted).all()
            must = raising & ~renewed
            if step % 100 == 50 and not renewed[3]:
                must[:5] = True  # all environments of its worker
            assert (restarted[~renewed] == must[~renewed]).all()
            crashes += int(restarted.sum())
            expected = np.where(restarted, -1, np.where(renewed, 0, expected + 1))
            whole = ~restarted
            assert (observations[whole, 0] == expected[whole]).all()
            assert (rewards[whole & ~renewed] == expected[whole & ~renewed]).all()
            assert not observations[whole].sum(1).any()
        assert envs.restarts.sum() == crashes
    assert crashes > 0.16 * steps
