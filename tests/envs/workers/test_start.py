"""Workers start with any maker, path, time limit and standard streams of the caller."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import make_vec
from cagepool.envs.workers import pool
from cagepool.envs.workers.pool import PoolConfig
from cagepool.errors import EnvironmentFault
from tests.environment import LIMIT_S, environ_without_coverage
from tests.envs.workers.toy_envs import Checksummed

pytestmark = pytest.mark.slow

PAYLOAD = bytes(1 << 20)  # more than a pipe holds


class Heavy(Checksummed):
    """Has a maker that takes many bytes to send."""

    def __init__(self, payload: bytes) -> None:
        super().__init__()
        self.size = len(payload)


def slow_down_imports(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> None:
    """Run a program when a worker starts Python."""
    (folder / "sitecustomize.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_a_time_limit_shorter_than_the_imports_does_not_limit_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow_down_imports(monkeypatch, tmp_path, "import time; time.sleep(4)")
    with make_vec(1, env=partial(Heavy, PAYLOAD), backend="workers", timeout=3) as envs:
        assert envs.get_attr("size") == (len(PAYLOAD),)


# As on a machine with one core, only one worker at a time can import.
IN_TURN = """
import fcntl, time
with open({lock!r}, "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    time.sleep(5)
"""


@pytest.mark.soak  # half a minute of waiting
def test_a_worker_that_starts_late_has_as_much_time_as_the_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow_down_imports(monkeypatch, tmp_path, IN_TURN.format(lock=str(tmp_path / "lock")))
    monkeypatch.setattr(pool, "usable_cores", lambda: 1)
    monkeypatch.setattr(pool, "_START_S", 20.0)
    make_vec(6, env=Checksummed, backend="workers", workers=6, timeout=20).close()


def test_a_worker_that_never_starts_is_given_up_with_its_own_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow_down_imports(monkeypatch, tmp_path, "import time; time.sleep(60)")
    monkeypatch.setattr(pool, "_START_S", 1.5)
    with pytest.raises(EnvironmentFault, match=r"worker 0 did not start within 1.5 s"):
        make_vec(1, env=Checksummed, backend="workers", timeout=1)


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, np.float32(50), np.int64(50)])
def test_any_number_is_a_time_limit(timeout: Any) -> None:
    with make_vec(1, env=Checksummed, backend="workers", timeout=timeout) as envs:
        envs.set_attr("payload", [PAYLOAD])
        assert envs.get_attr("payload") == (PAYLOAD,)


def test_numbers_of_numpy_are_settings() -> None:
    config = PoolConfig(
        workers=np.int64(2),  # type: ignore[arg-type]
        timeout=np.float32(1),  # type: ignore[arg-type]
        max_restarts=np.int8(3),  # type: ignore[arg-type]
        true_state=np.int64(2),  # type: ignore[arg-type]
    )
    assert type(config.liveness_check_s) is float
    assert PoolConfig(timeout=None).time_limit_s == PoolConfig(timeout=float("inf")).time_limit_s


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"timeout": "5"}, "timeout must be a number of seconds or None, got '5'"),
        ({"workers": 1.5}, "workers must be an integer, got 1.5"),
        ({"max_restarts": None}, "max_restarts must be an integer, got None"),
    ],
)
def test_what_is_no_number_is_refused(settings: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make_vec(1, env=Checksummed, backend="workers", **settings)


def test_entries_of_the_path_that_python_ignores_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path, b"bytes", "x" * 200_000])
    make_vec(1, env=Checksummed, backend="workers").close()


PROGRAM = """
import sys
from cagepool import make_vec
from tests.envs.workers.toy_envs import Checksummed
envs = make_vec(2, env=Checksummed, backend="workers", workers=2)
envs.reset(seed=0)
envs.step([1, 2])
envs.close()
sys.exit(7)
"""


@pytest.mark.parametrize("streams", ["<&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_caller_may_have_closed_standard_streams(streams: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {streams}', sys.executable, PROGRAM],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**environ_without_coverage(), "PYTHONPATH": ":".join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (7, "")


def test_a_maker_that_cannot_be_loaded_is_a_sentence() -> None:
    with pytest.raises(EnvironmentFault, match="worker 0 raised before its first env") as caught:
        make_vec(1, env=Unloadable(), backend="workers")
    assert caught.value.index is None


class Unloadable:
    """A maker that can be pickled and not unpickled."""

    def __reduce__(self) -> Any:
        return int, ("no number",)

    def __call__(self) -> Any:
        raise NotImplementedError
