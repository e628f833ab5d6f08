"""Memory is that of all processes, and its slope that of a line through them."""

import os
import time

from cagepool.bench import processes
from cagepool.bench.dummy_envs import Probe
from cagepool.bench.memory import Held, MemoryResult, held_by
from cagepool.envs import WorkerVectorEnv


def test_the_family_holds_this_process_and_its_workers() -> None:
    with WorkerVectorEnv([Probe] * 2, workers=2) as envs:
        family = set(processes.family())
        assert {os.getpid(), *envs.worker_pids} <= family
        assert processes.memory_bytes(envs.worker_pids) > 2**20
    assert processes.memory_bytes([os.getpid()], "Rss") >= processes.memory_bytes([os.getpid()])


def test_processor_time_is_counted_while_it_is_used_and_not_while_we_wait() -> None:
    def busy(calls: int, /) -> float:
        until_s = time.thread_time() + 0.02 * calls
        while time.thread_time() < until_s:
            pass
        return 0.0

    def idle(calls: int, /) -> float:
        time.sleep(0.02 * calls)
        return 0.0

    clocks = [processes.BothClocks(clock) for clock in (busy, idle)]
    for clock in clocks:
        clock(2)
    (used,), (waited,) = (clock.processor_s for clock in clocks)
    assert used > 0.019  # of one call; the system counts in steps
    assert waited < used / 2


def held(count: int, grown: int = 0) -> Held:
    return Held(
        environments=count,
        workers=0,
        bytes=1000 + 7 * count,
        resident_bytes=0,
        shared_bytes=3 * count,
        processes=1,
        grown_bytes=grown,
    )


def test_figures_are_bytes_for_one_more_and_what_has_grown() -> None:
    rows = ("native", "sync", "pipes", "workers, by environments", "workers, by workers")
    result = MemoryResult(
        machine={},
        load_after=0,
        groups={},
        held={
            **{row: [held(count) for count in (1, 10, 100)] for row in rows},
            "growth, native": [held(100, grown=0)],
            "growth, workers": [held(100, grown=4096)],
        },
        steps=1000,
    )
    figures = result.ratios
    assert figures["bytes of one more native game"] == 7
    assert figures["bytes of one more worker"] == 7
    assert figures["of these, in the shared block"] == 3
    assert figures["bytes grown in 1,000 steps, workers"] == 4096


def test_memory_is_that_of_a_fresh_process_and_its_workers() -> None:
    found = held_by("workers", 2, 2, 100)
    assert found.processes == 1 + 2
    assert found.resident_bytes >= found.bytes > 3 * 2**20
    assert 0 < found.shared_bytes < found.bytes
