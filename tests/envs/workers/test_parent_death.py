"""Workers, and what their environments started, end with a caller that is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cagepool import make_vec
from tests.environment import environ_without_coverage
from tests.envs.workers.process_resources import all_end, is_alive
from tests.envs.workers.toy_envs import Forking

pytestmark = pytest.mark.slow

# Prints the process ids that must end with the caller, then those that may live on.
PROGRAM = """
import os, signal, sys, time
from functools import partial
from cagepool import make_vec
from tests.envs.workers.forks import FORKS
from tests.envs.workers.toy_envs import Checksummed, Faulty, Forking

def make(env):
    envs = make_vec(2, env=env, backend="workers", workers=2, timeout=None)
    envs.reset(seed=0)
    return envs

def fork(how):
    reader, writer = os.pipe()
    child = FORKS[how]()
    if child == 0:
        os.write(writer, b"1")
    while child == 0:  # unlike this process, it is not killed
        time.sleep(1)
    os.read(reader, 1)
    return child

others = []
{then}
print(*envs.worker_pids, *others, flush=True)
sys.stdin.read()
"""
CASES = {
    "idle": "envs = make(Checksummed)",
    "GIL held": "envs = make(partial(Faulty, 'GIL held')); envs.send([Faulty.FAIL] * 2)",
    "stopped": "envs = make(Checksummed); [os.kill(p, signal.SIGSTOP) for p in envs.worker_pids]",
    "fork of an environment": "envs = make(Forking); others = envs.call('child_pid')",
}


@contextmanager
def killed_caller(then: str) -> Iterator[list[int]]:
    """Run the program and kill it; gives the process ids that it printed, and ends them."""
    caller = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM.replace("{then}", then)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environ_without_coverage(), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert caller.stdin is not None
    assert caller.stdout is not None
    pids = [int(pid) for pid in caller.stdout.readline().split()]
    caller.kill()
    caller.wait()
    try:
        yield pids
    finally:
        caller.stdin.close()
        caller.stdout.close()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("case", CASES)
def test_workers_end_with_a_killed_caller(case: str) -> None:
    with killed_caller(CASES[case]) as pids:
        assert len(pids) >= 2
        assert all_end(pids)


@pytest.mark.parametrize("how", ["os.fork", "fork in C"])
def test_workers_end_with_a_killed_caller_whose_forked_child_lives(how: str) -> None:
    with killed_caller(f"envs = make(Checksummed); others = [fork({how!r})]") as (*workers, child):
        assert len(workers) == 2
        assert all_end(workers)
        assert is_alive(child)
        if how == "os.fork":  # a fork in C keeps its mapping until it ends
            assert "memfd:cagepool" not in Path(f"/proc/{child}/maps").read_text()


def test_a_worker_that_never_starts_ends_with_a_killed_caller() -> None:
    then = (
        "import threading; from cagepool.envs.workers import pool\n"
        "make_hung = partial(Faulty, 'GIL held', at_start=True)\n"
        "threading.Thread(target=make, args=(make_hung,), daemon=True).start()\n"
        "is_making = lambda p: len(p.workers) == 2 and not any(w.is_importing for w in p.workers)\n"
        "while not any(is_making(p) for p in list(pool._POOLS)): time.sleep(0.01)\n"
        "class envs: worker_pids = [w.process.pid for p in pool._POOLS for w in p.workers]\n"
    )
    with killed_caller(then) as pids:
        assert len(pids) == 2
        assert all_end(pids)


def test_what_an_environment_forked_ends_with_its_worker() -> None:
    with make_vec(2, env=Forking, backend="workers", workers=2, on_fault="restart") as envs:
        envs.reset(seed=0)
        killed, other = envs.call("child_pid")
        os.kill(envs.worker_pids[0], signal.SIGKILL)
        envs.step([0, 0])
        assert all_end([killed])
        assert is_alive(other)
        remaining = envs.call("child_pid")
    assert all_end(list(remaining))
