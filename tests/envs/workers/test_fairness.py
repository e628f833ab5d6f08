"""No starvation: environments are served in turn, and a second caller gets an error."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import make_vec
from cagepool.envs import WorkerVectorEnv
from tests.envs.workers.toy_envs import Checksummed, Gated

ENVS = 12
WORKERS = 3
TURNS = 8


class Uneven(Checksummed):
    """Steps take longer with a higher seed."""

    def step(self, action: np.int64) -> Any:
        time.sleep(self.seed * 1e-4)
        return super().step(action)


@pytest.mark.parametrize("min_ready", [1, 3])
def test_an_environment_is_received_before_any_of_its_worker_comes_a_third_time(
    min_ready: int,
) -> None:
    received = np.zeros(ENVS, int)
    when_sent = np.zeros((ENVS, ENVS), int)  # `received` when an environment was sent
    owner = np.arange(ENVS) * WORKERS // ENVS
    with make_vec(ENVS, env=Uneven, backend="workers", workers=WORKERS) as envs:
        envs.reset(seed=0)
        envs.send(np.zeros(ENVS, int))
        for _ in range(20_000):  # a starved environment would never have its turns
            ready = envs.recv(min_ready)
            for index in ready.ids.tolist():
                others = (owner == owner[index]) & (np.arange(ENVS) != index)
                assert ((received - when_sent[index])[others] <= 2).all()
            received[ready.ids] += 1
            when_sent[ready.ids] = received
            if received.min() >= TURNS:
                break
            envs.send(ready.ids, ready.ids)
    assert received.min() >= TURNS


def test_what_is_ready_is_in_the_next_result_although_enough_others_are() -> None:
    with make_vec(3, env=Checksummed, backend="workers", workers=3) as envs:
        envs.reset(seed=0)
        envs.send([0, 0, 0])
        while not envs._pool.arrays.completion_flags.all():
            time.sleep(0.001)
        assert sorted(envs.recv(1).ids.tolist()) == [0, 1, 2]


CALLS: dict[str, Callable[[WorkerVectorEnv], object]] = {
    "reset": lambda envs: envs.reset(),
    "step": lambda envs: envs.step([0, 0]),
    "send": lambda envs: envs.send([0, 0]),
    "recv": lambda envs: envs.recv(),
    "call": lambda envs: envs.call("true_state"),
    "close": lambda envs: envs.close(),
}


def test_a_second_thread_gets_an_error_at_once_and_the_first_its_result(tmp_path: Path) -> None:
    gate = tmp_path / "open"
    with (
        make_vec(2, env=partial(Gated, gate), backend="workers", workers=1) as envs,
        ThreadPoolExecutor(1) as pool,
    ):
        envs.reset(seed=0)
        first = pool.submit(envs.step, [3, 4])
        while not envs.call_lock.locked():
            time.sleep(0.001)
        for call in CALLS.values():
            with pytest.raises(RuntimeError, match="one thread at a time"):
                call(envs)
        gate.touch()
        assert first.result()[0][:, 1].tolist() == [3, 4]
        envs.step([0, 0])
