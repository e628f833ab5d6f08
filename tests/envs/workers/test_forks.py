"""A pool and the forked children of its process do not disturb each other."""

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cagepool import make_vec
from cagepool.envs import WorkerVectorEnv
from tests.envs.workers.forks import FORKS, fork_in_python, forked_child
from tests.envs.workers.process_resources import all_end
from tests.envs.workers.toy_envs import Checksummed, Gated

pytestmark = pytest.mark.slow

CALLS: dict[str, Any] = {
    "reset": lambda envs: envs.reset(),
    "step": lambda envs: envs.step([0, 0]),
    "send": lambda envs: envs.send([0, 0]),
    "recv": lambda envs: envs.recv(),
    "call": lambda envs: envs.call("true_state"),
    "true_state": lambda envs: envs.true_state,
}
REFUSAL = "an environment must be used by the process that made it, not by a process forked from it"


def errors_in_child(envs: WorkerVectorEnv) -> str:
    """Messages that the calls raise in a forked child, one per line."""
    reader, writer = os.pipe()
    child = fork_in_python()
    if child == 0:
        for name, call in CALLS.items():
            try:
                call(envs)
                os.write(writer, f"{name} returned\n".encode())
            except BaseException as error:  # noqa: BLE001 - the child must not return to pytest
                os.write(writer, f"{error}\n".encode())
        envs.close()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as messages:
        said = messages.read()
    os.waitpid(child, 0)
    return said


def test_a_child_cannot_use_the_environments_of_its_parent() -> None:
    with make_vec(2, env=Checksummed, backend="workers", true_state="every") as envs:
        envs.reset(seed=0)
        assert errors_in_child(envs) == (REFUSAL + "\n") * len(CALLS)
        assert envs.step([0, 0])[0][:, 0].tolist() == [1, 1]


def test_a_child_forked_during_a_step_is_told_the_same(tmp_path: Path) -> None:
    gate = tmp_path / "open"
    with make_vec(2, env=partial(Gated, gate), backend="workers", workers=1) as envs:
        envs.reset(seed=0)
        stepping = threading.Thread(target=envs.step, args=([0, 0],))
        stepping.start()
        while not envs.call_lock.locked():
            time.sleep(0.001)
        said = errors_in_child(envs)
        gate.touch()
        stepping.join()
    assert said == (REFUSAL + "\n") * len(CALLS)


def test_a_child_holds_no_pipe_and_no_memory_of_the_pool() -> None:
    with make_vec(2, env=Checksummed, backend="workers", workers=1) as envs:
        envs.reset(seed=0)
        ours = {str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in pool_descriptors(envs)}
        with forked_child("os.fork") as child:
            theirs = {str(path.readlink()) for path in Path(f"/proc/{child}/fd").iterdir()}
            assert not {name for name in ours & theirs if name.startswith(("pipe", "/memfd"))}
            assert "memfd:cagepool" not in Path(f"/proc/{child}/maps").read_text()


def pool_descriptors(envs: WorkerVectorEnv) -> list[int]:
    pool = envs._pool
    pipes = [end for worker in pool.workers for end in (worker.requests, worker.reader.pipe)]
    return [pool._memory, *pool._life_pipe, *pipes]


@pytest.mark.parametrize("how", FORKS)
def test_workers_are_replaced_again_and_again_beside_a_child(how: str) -> None:
    with make_vec(2, env=Checksummed, backend="workers", workers=1, on_fault="restart") as envs:
        envs.reset(seed=0)
        with forked_child(how):
            for _ in range(3):
                os.kill(envs.worker_pids[0], signal.SIGKILL)
                assert envs.step([0, 0])[3].all()
                envs.step([0, 0])


@pytest.mark.parametrize("how", FORKS)
def test_environments_are_closed_and_not_killed_beside_a_child(how: str, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    envs = make_vec(1, env=partial(ClosingFile, closed), backend="workers")
    envs.reset(seed=0)
    workers = envs.worker_pids
    with forked_child(how):
        envs.close()
        assert closed.exists()
        assert all_end(workers)


class ClosingFile(Checksummed):
    """Creates a file when it is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def close(self) -> None:
        self.path.touch()
