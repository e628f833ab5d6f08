"""What others take of the machine is told apart from what we take ourselves."""

import subprocess
import sys
from pathlib import Path

import pytest

from cagepool.bench import system_load
from cagepool.bench.system_load import Busy, Watch

HEAD = "cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 0 0 0 0\n"
OWN, CHILD, GRANDCHILD, STRANGER = 10, 11, 12, 13


class System:
    """As much of /proc as is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def cores(self, user: int, idle: int, steal: int = 0) -> None:
        (self.folder / "stat").write_text(HEAD.format(user=user, idle=idle, steal=steal))

    def process(self, pid: int, parent: int, ticks: int, *, buried: int = 0) -> None:
        (self.folder / str(pid)).mkdir(exist_ok=True)
        line = f"{pid} (a ) b) S {parent} " + "0 " * 9 + f"{ticks} 0 {buried} 0 20"
        (self.folder / str(pid) / "stat").write_text(line)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    monkeypatch.setattr(system_load, "PROC", tmp_path)
    monkeypatch.setattr("os.getpid", lambda: OWN)
    made = System(tmp_path)
    made.cores(user=100, idle=100)
    made.process(OWN, 1, 50)
    return made


def test_our_own_time_is_not_that_of_others(system: System) -> None:
    watch = Watch()
    system.cores(user=160, idle=140)
    system.process(OWN, 1, 110)
    assert watch.busy() == Busy(busy_elsewhere=0.0, stolen=0.0)


def test_children_count_as_ours_while_they_live_and_when_they_are_gone(system: System) -> None:
    system.process(CHILD, OWN, 0)
    watch = Watch()
    system.cores(user=190, idle=110)
    system.process(CHILD, OWN, 10, buried=40)
    system.process(GRANDCHILD, CHILD, 20)
    system.process(STRANGER, 1, 20)
    assert watch.busy() == Busy(busy_elsewhere=0.2, stolen=0.0)


def test_what_other_tenants_take_is_elsewhere_too(system: System) -> None:
    watch = Watch()
    system.cores(user=110, idle=160, steal=30)
    system.process(OWN, 1, 60)
    assert watch.busy() == Busy(busy_elsewhere=0.3, stolen=0.3)


def test_where_the_system_does_not_tell_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(system_load, "PROC", tmp_path)
    assert Watch().busy() is None


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not tell")
def test_a_busy_child_of_ours_is_counted_as_ours() -> None:
    before = system_load.Ticks.now()
    work = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    after = system_load.Ticks.now()
    assert before is not None
    assert after is not None
    assert after.own - before.own >= 20  # of 100 a second
