"""The run folder: written whole or not at all, and refused where it is damaged."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import runs
from cagepool.types import Arrays
from tests.environment import environ_without_coverage

SETTINGS = {"run": {"seed": 3}}


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environ_without_coverage(),
        capture_output=True,
        text=True,
        check=False,
    )


def new_run(path: Path) -> runs.Run:
    return runs.create(path, SETTINGS, "0.1.0")


def arrays(value: float = 0.0) -> Arrays:
    return {"weights": np.full((3, 2), value, np.float32), "count": np.array([7])}


def test_a_run_is_read_as_it_was_made(tmp_path: Path) -> None:
    run = new_run(tmp_path / "a" / "run")

    assert runs.open_run(run.path) == runs.open_run(str(run.path)) == run
    assert runs.is_run(run.path)
    assert not runs.is_run(tmp_path)
    content = json.loads((run.path / runs.CONFIG).read_text())
    assert content == {"format": 1, "cagepool": "0.1.0", "settings": SETTINGS}


@pytest.mark.parametrize("used_by", ["file", "folder"])
def test_a_folder_in_use_is_refused_and_left_alone(tmp_path: Path, used_by: str) -> None:
    path = tmp_path / "run"
    if used_by == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "mine").touch()

    with pytest.raises(ValueError, match=r"a folder of its own, .* is in use: .*--out.*--resume"):
        new_run(path)

    assert path.read_text() == "mine" if used_by == "file" else [*path.iterdir()] == [path / "mine"]


def test_an_empty_folder_may_become_a_run(tmp_path: Path) -> None:
    assert new_run(tmp_path).path == tmp_path


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"a run folder must be writable, .* is not: "):
        new_run(tmp_path / "file" / "run")


CREATE_WITHOUT_PRIVILEGES = """
import os, sys
from pathlib import Path
from cagepool import runs

if os.geteuid() == 0:  # root may write anywhere: go on as nobody
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
runs.create(Path(sys.argv[1]), {}, "0.1.0")
"""


@pytest.mark.parametrize(
    ("mode", "below"),
    [(0o555, "/run"), (0o000, "/run"), (0o555, "")],
    ids=["in a read-only folder", "in a closed folder", "read-only folder"],
)
def test_a_folder_without_permission_is_refused(mode: int, below: str) -> None:
    with tempfile.TemporaryDirectory() as folder:  # not below tmp_path, which is closed to nobody
        Path(folder).chmod(mode)
        done = python(CREATE_WITHOUT_PRIVILEGES, folder + below)
        Path(folder).chmod(0o700)

    sentence = f"ValueError: a run folder must be writable, {folder}{below} is not: "
    assert done.stderr.splitlines()[-1].startswith(sentence)


def test_a_disk_that_is_almost_full_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs.folder, "MIN_FREE_BYTES", 10**18)
    with pytest.raises(
        ValueError, match=r"^a run needs 1000000000000 MB of free disk space, there are \d+ MB"
    ):
        new_run(tmp_path / "run")


def test_only_a_run_without_any_work_in_it_is_discarded(tmp_path: Path) -> None:
    empty, used = new_run(tmp_path / "empty"), new_run(tmp_path / "used")
    runs.TableWriter(used.path / runs.METRICS, ("update",)).close()

    empty.discard_if_unused()
    used.discard_if_unused()

    assert not empty.path.exists()
    assert used.path.exists()


def test_a_checkpoint_is_read_as_it_was_saved(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    assert run.checkpoint_updates("last") == []

    run.save_checkpoint("last", arrays(1.5), {"update": 12, "of_mine": [1, 2]})

    read = run.checkpoint("last")
    assert read.state["of_mine"] == [1, 2]
    np.testing.assert_array_equal(read.arrays["weights"], arrays(1.5)["weights"])
    assert read.arrays["count"].dtype == np.int64
    with pytest.raises(ValueError, match="must have a checkpoint 'best'"):
        run.checkpoint("best")


def test_a_new_checkpoint_takes_the_place_of_all_others_of_its_kind(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    run.save_checkpoint("best", arrays(), {"update": 5})
    for update in (20, 9, 9, 1_234_567):
        run.save_checkpoint("last", arrays(update), {"update": update})
        assert run.checkpoint_updates("last") == [update]
        assert run.checkpoint("last").arrays["weights"][0, 0] == update
    assert run.checkpoint_updates("best") == [5]
    names = {path.name for path in (run.path / runs.CHECKPOINTS).iterdir()}
    assert names == {"best-000005", "last-1234567"}


def test_what_a_killed_process_left_behind_is_no_hindrance(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    run.save_checkpoint("last", arrays(1), {"update": 1})
    for name in (".last-000002.tmp", ".last-000001.old"):
        half = run.path / runs.CHECKPOINTS / name
        half.mkdir()
        (half / runs.WEIGHTS).write_bytes(b"half")

    assert run.checkpoint_updates("last") == [1]
    with run.lock():
        run.save_checkpoint("last", arrays(2), {"update": 2})

    assert [path.name for path in (run.path / runs.CHECKPOINTS).iterdir()] == ["last-000002"]


@pytest.mark.parametrize("broken", [runs.WEIGHTS, runs.STATE, "rename"])
def test_a_checkpoint_that_cannot_be_written_leaves_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    run = new_run(tmp_path / "run")
    run.save_checkpoint("last", arrays(1), {"update": 1})

    def full(path: Path, *_: object) -> None:
        if broken in (path.name, "rename"):
            raise OSError(28, "No space left on device")

    owner, name = (Path, "rename") if broken == "rename" else (runs.folder, "write_and_sync")
    monkeypatch.setattr(owner, name, full)
    with pytest.raises(OSError, match="No space left"):
        run.save_checkpoint("last", arrays(2), {"update": 2})

    assert run.checkpoint_updates("last") == [1]
    assert run.checkpoint("last").arrays["weights"][0, 0] == 1
    assert [path.name for path in (run.path / runs.CHECKPOINTS).iterdir()] == ["last-000001"]


def change_state(path: Path, **changed: Any) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | changed))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda path: (path / runs.STATE).write_text("{"), "state.json is damaged"),
        (
            lambda path: (path / runs.STATE).write_text("[]"),
            "damaged: expected `object`, got",
        ),
        (lambda path: (path / runs.STATE).write_bytes(b"\xff"), "state.json is damaged"),
        (
            lambda path: (path / runs.STATE).unlink(),
            "state.json must be a file that can be read: No such file",
        ),
        (lambda path: change_state(path / runs.STATE, format=7), "format 7, this cagepool reads"),
        (lambda path: (path / runs.WEIGHTS).write_bytes(b""), "not those that were saved"),
    ],
    ids=["cut", "foreign", "not text", "missing", "newer", "empty weights"],
)
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, damage: Any, sentence: str) -> None:
    run = new_run(tmp_path / "run")
    run.save_checkpoint("last", arrays(), {"update": 1})
    damage(run.path / runs.CHECKPOINTS / "last-000001")

    with pytest.raises(ValueError, match=sentence):
        run.checkpoint("last")


LOCK = "import sys; from cagepool import runs\nwith runs.open_run(sys.argv[1]).lock(): pass"


def test_a_run_is_locked_by_one_process_at_a_time(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")

    with run.lock():
        other = python(LOCK, str(run.path))

    assert "must be trained by one process at a time" in other.stderr
    with run.lock():
        pass
    assert python(LOCK, str(run.path)).returncode == 0


@pytest.mark.parametrize(
    ("missing", "program"),
    [
        ("msgspec safetensors fcntl", "import cagepool; cagepool.make_vec(2).reset(seed=0)"),
        ("fcntl", "import cagepool; cagepool.load('zoo:minutes')"),
    ],
    ids=["environments", "policies"],
)
def test_libraries_of_run_folders_are_imported_only_where_they_are_needed(
    missing: str, program: str
) -> None:
    absent = f"import sys; sys.modules |= dict.fromkeys({missing.split()!r})\n"

    done = python(absent + program)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = runs.TableWriter(tmp_path / "t.csv", ("update", "mean", "spread"))
    table.append({"update": 1, "mean": 0.1 + 0.2, "unknown": 3})
    table.append({"update": 2, "mean": float("nan"), "spread": -1e-300})
    table.close()

    read = runs.read_table(tmp_path / "t.csv")

    assert (tmp_path / "t.csv").read_text().splitlines()[1] == "1,0.30000000000000004,"
    np.testing.assert_array_equal(read["update"], [1, 2])
    np.testing.assert_array_equal(read["mean"], [0.1 + 0.2, np.nan])
    np.testing.assert_array_equal(read["spread"], [np.nan, -1e-300])


def test_a_table_goes_on_after_the_update_at_which_a_run_resumes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = runs.TableWriter(path, ("update", "mean"))
    for update in range(1, 6):
        table.append({"update": update, "mean": update / 3})
    table.close()
    whole = path.read_text()
    path.write_text(whole + "6,0.12")  # torn: the disk was full, or the process was killed

    assert runs.read_table(path)["update"] == [1, 2, 3, 4, 5]
    resumed = runs.TableWriter(path, ("update", "mean"), last_update=4)
    resumed.append({"update": 5, "mean": 5 / 3})
    resumed.close()

    assert path.read_text() == whole
    runs.TableWriter(path, ("update", "mean")).close()
    assert path.read_text() == "update,mean\n"


@pytest.mark.parametrize("content", [b"a,b\n1,x\n", b"a\n1,2\n", b"\xff\xfe\n1\n", b'a\n"1\n'])
def test_a_damaged_table_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.csv is damaged"):
        runs.read_table(tmp_path / "t.csv")


def test_no_table_and_an_empty_one_have_no_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").touch()
    assert runs.read_table(tmp_path / "t.csv") == runs.read_table(tmp_path / "none.csv") == {}
