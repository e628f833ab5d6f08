"""No process, shared memory or open file remains, however a pool ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cagepool import make_vec
from cagepool.envs import WorkerVectorEnv, workers
from cagepool.errors import EnvironmentFault
from tests.environment import LIMIT_S
from tests.envs.workers.process_resources import all_end, used_resources
from tests.envs.workers.toy_envs import FAULTS, HANGS, Checksummed, Faulty

pytestmark = pytest.mark.slow

# A leak of one resource per repetition shows after two; rarer ones need the soak test.
FEW, MANY = 2, 20
AT_ONCE = 4
IN_STEPS = ("exception", "exit", "kill", "loop", "unpicklable info", "wrong shape")
IN_RESETS = ("exit", "wrong shape")
AT_START = ("exception", "exit")
FAIL = Faulty.FAIL


def make_envs(fault: str = "exception", **settings: Any) -> WorkerVectorEnv:
    envs = WorkerVectorEnv([partial(Faulty, fault)] * 2, workers=1, **settings)
    envs.reset(seed=0)
    return envs


def close_twice() -> None:
    envs = make_envs()
    envs.close()
    envs.close()


def forget() -> None:
    make_envs()


def raise_inside() -> None:
    with suppress(KeyboardInterrupt), make_envs() as envs:
        envs.send([0, 0])
        raise KeyboardInterrupt


def fail(envs: WorkerVectorEnv, at: str) -> None:
    if at == "step":
        envs.step([FAIL, 0])
    else:
        envs.reset(seed=0, options={"fail": 0})


def fail_once(fault: str, at: str) -> None:
    envs = make_envs(fault, timeout=0.1 if fault in HANGS else 60)
    with pytest.raises(EnvironmentFault, match="environment 0"):
        fail(envs, at)


def fail_at_start(fault: str) -> None:
    with pytest.raises(EnvironmentFault, match="environment 0"):
        WorkerVectorEnv([partial(Faulty, fault, at_start=True)], workers=1)


def interrupt(hangs: Path) -> None:
    """Interrupt a step once its environment hangs."""
    envs = make_envs("loop")
    (worker,) = envs.worker_pids
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(raise_alarm, hangs / str(worker))
            with pytest.raises(KeyboardInterrupt):
                envs.step([FAIL, 0])
    finally:
        signal.signal(signal.SIGALRM, previous)


def raise_alarm(hang: Path) -> None:
    """Send SIGALRM to the main thread once the file exists."""
    while not hang.exists():
        time.sleep(0.001)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)


ENDS: dict[str, Callable[[], None]] = {
    "close": close_twice,
    "garbage": forget,
    "error": raise_inside,
    **{f"{fault} at the start": partial(fail_at_start, fault) for fault in AT_START},
    **{f"{fault} in a reset": partial(fail_once, fault, "reset") for fault in IN_RESETS},
    **{f"{fault} in a step": partial(fail_once, fault, "step") for fault in IN_STEPS},
}


def repeated(cases: Iterable[str], often: Iterable[str]) -> pytest.MarkDecorator:
    """Case and repetitions: few for the cases that stand for others, many in a soak test."""
    many = [pytest.param(case, MANY, marks=pytest.mark.soak) for case in cases]
    return pytest.mark.parametrize(("case", "times"), [*((case, FEW) for case in often), *many])


@repeated(
    ENDS, ["close", "garbage", "error", "exit at the start", "exit in a reset", "loop in a step"]
)
def test_nothing_is_left_however_often_it_ends_so(
    case: str, times: int, request: pytest.FixtureRequest
) -> None:
    if case.startswith(HANGS):
        request.getfixturevalue("hang_clock")
    ENDS[case]()
    before = used_resources()
    with ThreadPoolExecutor(AT_ONCE) as pool:  # most of the time is the start of processes
        for ended in [pool.submit(ENDS[case]) for _ in range(times)]:
            ended.result(LIMIT_S)
    assert used_resources() == before


@pytest.mark.parametrize("times", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])
def test_nothing_is_left_however_often_it_is_interrupted(times: int, hangs: Path) -> None:
    before = used_resources()
    for _ in range(times):  # signals reach only the main thread
        interrupt(hangs)
    assert used_resources() == before


@repeated(FAULTS, ["exception", "kill", "loop"])
def test_an_environment_can_fail_and_be_replaced_many_times_in_a_row(
    case: str, times: int, request: pytest.FixtureRequest
) -> None:
    if case in HANGS:
        request.getfixturevalue("hang_clock")
    before = used_resources()
    timeout = 0.1 if case in HANGS else 60
    with make_envs(case, on_fault="restart", timeout=timeout) as envs:
        for _ in range(times):
            *_, truncations, infos = envs.step([FAIL, 0])
            assert truncations[0]
            assert infos["restarted"][0]
            envs.step([0, 0])  # starts the next episode
        assert envs.restarts[0] == times
    assert used_resources() == before


PROGRAM = """
import sys
import numpy as np
from contextlib import suppress
from functools import partial
from cagepool import make_vec
from tests.envs.workers.toy_envs import Faulty
envs = make_vec(4, env=partial(Faulty, "loop"), backend="workers", workers=2)
envs.reset(seed=0)
envs.send([0, Faulty.FAIL], [0, 1])
print(*(worker.process.pid for worker in envs._pool.workers), flush=True)
{then}
"""


@pytest.mark.parametrize(
    ("then", "number", "code"),
    [
        ("sys.exit(0)", None, 0),
        ("raise SystemExit(7)", None, 7),
        ("del envs; import gc; gc.collect()", None, 0),
        ("sys.stdin.read()", signal.SIGKILL, -signal.SIGKILL),
        ("sys.stdin.read()", signal.SIGTERM, -signal.SIGTERM),
        ("envs.recv(2)", signal.SIGINT, -signal.SIGINT),
        ("import os; os._exit(5)", None, 5),
    ],
    ids=["exit", "SystemExit", "garbage", "kill -9", "terminate", "Ctrl-C", "_exit"],
)
def test_workers_end_with_their_caller(then: str, number: int | None, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-W", "error", "-c", PROGRAM.format(then=then)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(workers) == 2
    if number is not None:
        process.send_signal(number)
    try:
        _, said = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # faulthandler prints where it waits
        pytest.fail(process.communicate()[1])
    assert process.returncode == code
    assert all_end(workers)
    said = "" if number == signal.SIGINT else said  # the caller's own traceback
    assert said == ""


def test_a_fork_of_the_caller_leaves_its_workers_alone() -> None:
    with make_vec(2, env=Checksummed, backend="workers") as envs:
        envs.reset(seed=0)
        child = os.fork()
        if child == 0:
            envs.close()
            os._exit(0)
        os.waitpid(child, 0)
        envs.step([0, 0])


def test_a_worker_uses_no_semaphores_of_multiprocessing() -> None:
    """So `used_resources` can ignore semaphores, which other programs create and remove."""
    folder = Path(workers.__file__).parent
    assert [
        path.name for path in folder.glob("*.py") if "multiprocessing" in path.read_text()
    ] == []
