"""Load by other processes is distinguished from the load by this process and its descendants."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from cagepool.bench import system_load
from cagepool.bench.measure import DummyEnv
from cagepool.bench.system_load import LoadMonitor, OtherLoad
from cagepool.envs import WorkerVectorEnv


class Machine:
    """CPU times, in seconds since boot, that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.user, self.idle, self.steal = 100.0, 100.0, 0.0
        self.processes: list[Any] = [_Process(50.0)]
        monkeypatch.setattr(psutil, "cpu_times", self._cpu_times)
        monkeypatch.setattr(system_load, "process_tree", lambda: self.processes)

    def _cpu_times(self) -> Any:
        return _Times(user=self.user, idle=self.idle, iowait=0.0, steal=self.steal, guest=7.0)


class _Times(SimpleNamespace):
    def __iter__(self) -> Any:
        return iter(vars(self).values())


class _Process:
    def __init__(self, user: float, ended_children: float = 0.0) -> None:
        self.user = user
        self.ended_children = ended_children

    def cpu_times(self) -> Any:
        return SimpleNamespace(
            user=self.user, system=0.0, children_user=self.ended_children, children_system=0.0
        )


class _Ended(_Process):
    def cpu_times(self) -> Any:
        raise psutil.NoSuchProcess(1)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_the_load_by_this_process_is_not_counted(machine: Machine) -> None:
    monitor = LoadMonitor()
    machine.user, machine.idle = 160.0, 140.0
    machine.processes[0].user = 110.0
    assert monitor.other_load() == OtherLoad(busy_elsewhere=0.0, stolen=0.0)


def test_descendants_count_as_this_process_alive_or_ended(machine: Machine) -> None:
    child = _Process(0.0)
    machine.processes.append(child)
    monitor = LoadMonitor()
    machine.user, machine.idle = 190.0, 110.0
    child.user, child.ended_children = 10.0, 40.0
    machine.processes += [_Process(20.0), _Ended(0.0)]
    assert monitor.other_load() == OtherLoad(busy_elsewhere=0.2, stolen=0.0)


def test_time_of_other_tenants_is_load_by_others(machine: Machine) -> None:
    monitor = LoadMonitor()
    machine.user, machine.idle, machine.steal = 110.0, 160.0, 30.0
    machine.processes[0].user = 60.0
    assert monitor.other_load() == OtherLoad(busy_elsewhere=0.3, stolen=0.3)


@pytest.mark.usefixtures("machine")
def test_without_elapsed_time_the_load_is_unknown() -> None:
    assert LoadMonitor().other_load() is None


def test_a_child_that_has_ended_is_counted_as_this_process() -> None:
    def own_seconds() -> float:
        return system_load.cpu_seconds(system_load.process_tree(), ended_children=True)

    before = own_seconds()
    work = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    assert own_seconds() - before >= 0.2


def test_cpu_time_is_counted_while_it_is_used_and_not_while_sleeping() -> None:
    def cpu_seconds() -> float:
        return system_load.cpu_seconds([psutil.Process()])

    start = cpu_seconds()
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
    computed = cpu_seconds()
    time.sleep(0.1)
    slept = cpu_seconds()
    assert computed - start >= 0.08  # the system counts in units of 10 ms
    assert slept - computed <= 0.05


@pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")
def test_the_process_tree_has_this_process_and_its_workers() -> None:
    with WorkerVectorEnv([DummyEnv] * 2, workers=2) as envs:
        pids = {process.pid for process in system_load.process_tree()}
        assert {os.getpid(), *envs.worker_pids} <= pids
        workers = [psutil.Process(pid) for pid in envs.worker_pids]
        assert system_load.memory_bytes(workers) > 2**20
    own = psutil.Process()
    assert own.memory_info().rss >= system_load.memory_bytes([own])


def test_the_machine_is_described() -> None:
    described = system_load.describe_machine()
    assert described["processor"]
    assert described["cores"] == os.cpu_count()
    assert {"python", "compiler", "numpy", "gymnasium", "commit", "load"} <= described.keys()
