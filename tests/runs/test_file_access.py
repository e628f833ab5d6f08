"""The reader of run files: what a stranger may have put in their place, and atomic writing."""

import json
import os
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import runs
from cagepool.policy.load import load
from cagepool.runs import file_access
from cagepool.runs.file_access import read_bytes, read_json, replace_file
from cagepool.runs.schema import DecisionRow
from tests.environment import environ_without_coverage
from tests.evaluate.folders import make_run


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def make_link(path: Path) -> None:
    target = path.with_name("elsewhere")
    target.write_text("{}")
    path.symlink_to(target)


IN_PLACE_OF_A_FILE = pytest.mark.parametrize(
    ("make", "kind"),
    [(os.mkfifo, "a FIFO"), (os.mkdir, "a folder"), (make_link, "a link")],
    ids=["FIFO", "folder", "link"],
)


@IN_PLACE_OF_A_FILE
def test_only_a_regular_file_is_read(
    tmp_path: Path, make: Callable[[Path], None], kind: str
) -> None:
    make(tmp_path / "a.json")

    with pytest.raises(runs.RunFileError, match=rf"a\.json must be a regular file, it is {kind}$"):
        read_bytes(tmp_path / "a.json", 10)


@pytest.mark.parametrize(
    "place", [make_socket, lambda path: path.symlink_to("/dev/zero")], ids=["socket", "device"]
)
def test_sockets_and_devices_are_refused(tmp_path: Path, place: Callable[[Path], None]) -> None:
    place(tmp_path / "a.json")

    with pytest.raises(runs.RunFileError, match=r"a\.json must be "):
        read_bytes(tmp_path / "a.json", 10, follow_link=True)


def test_a_file_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    make_link(tmp_path / "a.json")

    assert read_json(tmp_path / "a.json", dict[str, int], follow_link=True) == {}


def test_a_file_above_its_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"12345678")
    assert read_bytes(path, 8) == b"12345678"
    os.truncate(path, 10**13)  # sparse: larger than any memory

    with pytest.raises(runs.RunFileError, match=r"a\.json must have at most 8 bytes"):
        read_bytes(path, 8)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"\xff", "."),
        (b"", "input data was truncated"),
        (b'{"a": 1e999}', "."),
    ],
    ids=["lists", "objects", "not text", "empty", "infinite"],
)
def test_bad_json_is_one_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.json").write_bytes(content)

    with pytest.raises(runs.RunFileError, match=rf"a\.json is damaged: .*{reason}") as refusal:
        read_json(tmp_path / "a.json", Any)

    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("update,mean\n1,inf\n", "mean must be finite, got 'inf'"),
        ("update,mean\n-1,0\n", "update must be at least 0, got '-1'"),
        ("update,mean\n1e300,0\n", "update must be at least 0"),
        ("update,mean\n,0\n", "update must be at least 0, got ''"),
        ("update,mean\n1\n", "row 1 must have 2 cells, has 1"),
        ("update,mean\n1,2,3\n", "row 1 must have 2 cells, has 3"),
        ("update,update\n1,2\n", "a column is there twice"),
        ("mean\n1\n", "it has no column update"),
    ],
)
def test_a_damaged_table_names_the_fault(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "t.csv").write_text(content)

    with pytest.raises(runs.RunFileError, match=rf"t\.csv is damaged: {reason}"):
        runs.read_table(tmp_path / "t.csv", required=("update",))


@pytest.mark.parametrize("cell", ["inf", "nan", "1e999", "many"])
def test_rows_must_be_finite(tmp_path: Path, cell: str) -> None:
    (tmp_path / "d.csv").write_text(f"iteration,order,why,mean\n0,a>b,chance,{cell}\n")

    with pytest.raises(runs.RunFileError, match=r"d\.csv is damaged: "):
        runs.read_rows(tmp_path / "d.csv", DecisionRow)


def change_arrays(folder: Path, changes: dict[str, Any]) -> None:
    run = runs.open_run(folder)
    best = run.checkpoint("best")
    state = {name: best.state[name] for name in best.state if name not in ("format", "sha256")}
    arrays = {name: array for name, array in (best.arrays | changes).items() if array is not None}
    run.save_checkpoint("best", arrays, state)


@pytest.mark.parametrize(
    ("name", "array", "sentence"),
    [
        ("actor.0.bias", np.full(16, np.nan), "finite weights, those of actor.0.bias are not"),
        ("actor.2.bias", np.full(67, -np.inf), "finite weights, those of actor.2.bias are not"),
        ("actor.2.bias", np.full(67, 1e300), "weights actor.2.bias contain NaN or infinity"),
        ("actor.0.weight", np.zeros(16), "actor.0.weight must have 2 dimensions, got 1"),
        ("actor.0.bias", np.zeros(15), "the layers of an actor must fit each other"),
        ("actor.0.bias", np.zeros(()), "the layers of an actor must fit each other"),
        ("actor.0.bias", None, "there must be weights actor.0.bias"),
    ],
    ids=["nan", "infinite", "overflow", "flat", "short", "scalar", "missing"],
)
def test_weights_that_no_training_wrote_are_refused_by_name(
    tmp_path: Path, name: str, array: Any, sentence: str
) -> None:
    folder = make_run(tmp_path / "run")
    change_arrays(folder, {name: array})

    with pytest.raises(ValueError, match=sentence):
        load(folder)


def test_settings_are_plain_values(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    config = json.loads((folder / runs.CONFIG).read_text())
    values: list[object] = [{}, [[]], 10**400]
    for value in values:
        config["settings"]["run"]["seed"] = value
        (folder / runs.CONFIG).write_text(json.dumps(config))
        with pytest.raises(runs.RunFileError, match=r"config\.json is damaged"):
            runs.open_run(folder)


@IN_PLACE_OF_A_FILE
@pytest.mark.parametrize(
    "name",
    ["config.json", "metrics.csv", "evaluations.csv", "evaluation.json", "games.json",
     "workflow.json", "checkpoints/best-000002/state.json",
     "checkpoints/best-000002/weights.safetensors"],
)  # fmt: skip
def test_no_file_of_a_run_folder_can_be_something_else(
    tmp_path: Path, name: str, make: Callable[[Path], None], kind: str
) -> None:
    folder = make_run(tmp_path / "run")
    (folder / name).unlink(missing_ok=True)
    make(folder / name)

    def read_all() -> None:
        run = runs.open_run(folder)
        for read in (run.metrics, run.evaluations, run.evaluation, run.games, run.workflow):
            read()
        run.checkpoint()

    with pytest.raises(runs.RunFileError, match=f"must be a regular file, it is {kind}"):
        read_all()


@pytest.mark.parametrize("name", ["checkpoints", "checkpoints/best-000002"])
def test_checkpoints_are_not_read_or_written_through_links(tmp_path: Path, name: str) -> None:
    folder = make_run(tmp_path / "run")
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / ".ssh").mkdir()
    run = runs.open_run(folder)

    with pytest.raises(ValueError, match=r"must be a folder, it is a link|has none"):
        run.checkpoint()
    if name == "checkpoints":
        with pytest.raises(runs.RunFileError, match="must be a folder, it is a link"), run.lock():
            pass
    assert (tmp_path / "elsewhere" / ".ssh").exists()


def test_a_link_in_the_place_of_a_temporary_file_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".a.json-{os.getpid()}.tmp").symlink_to(victim)

    replace_file(tmp_path / "a.json", b"{}")

    assert victim.read_text() == "mine"
    assert (tmp_path / "a.json").read_bytes() == b"{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "victim"]


def dead_process_id() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""], env=environ_without_coverage())
    process.wait()
    return process.pid


def test_temporary_files_of_killed_processes_are_removed_at_the_next_training(
    tmp_path: Path,
) -> None:
    run = runs.open_run(make_run(tmp_path / "run"))
    left = [f".metrics.csv-{dead_process_id()}.tmp"]
    kept = [f".evaluation.json-{os.getppid()}.tmp", ".gitignore", ".mine.tmp"]
    for name in left + kept:
        (run.path / name).touch()

    with run.lock():
        names = {path.name for path in run.path.iterdir()}

    assert not names & {*left}
    assert {*kept} <= names


def test_a_folder_that_holds_only_leftovers_may_become_a_run(tmp_path: Path) -> None:
    (tmp_path / f".config.json-{dead_process_id()}.tmp").write_text("{")

    runs.create(tmp_path, {}, "0.1.0")

    assert [path.name for path in tmp_path.iterdir()] == [runs.CONFIG]


def test_a_checkpoint_that_a_killed_process_was_replacing_comes_back(tmp_path: Path) -> None:
    run = runs.open_run(make_run(tmp_path / "run"))
    best = run.checkpoint("best")
    best.path.rename(best.path.with_name(f".{best.path.name}.old"))

    with run.lock():
        read = run.checkpoint("best")

    assert read.state == best.state
    assert [path.name for path in best.path.parent.iterdir()] == [best.path.name]


def test_an_older_checkpoint_that_a_killed_process_was_removing_goes(tmp_path: Path) -> None:
    run = runs.open_run(make_run(tmp_path / "run"))
    half = run.path / runs.CHECKPOINTS / "best-000001"
    half.mkdir()
    (half / runs.STATE).write_text("{}")

    with run.lock():
        assert run.checkpoint_updates("best") == [2]

    assert not half.exists()


def test_a_file_system_without_hard_links_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)

    runs.create(tmp_path / "run", {"run": {"seed": 4}}, "0.1.0")

    assert runs.open_run(tmp_path / "run").settings == {"run": {"seed": 4}}
    with pytest.raises(ValueError, match="is in use"):
        runs.create(tmp_path / "run", {}, "0.1.0")


CREATE_TOGETHER = """
import sys, time
from pathlib import Path
from cagepool import runs
print("ready", flush=True)
for line in sys.stdin:
    try:
        print(runs.create(Path(line.strip()), {}, "0.1.0", numbered=sys.argv[1] == "numbered").path)
    except ValueError as error:
        print(error)
    sys.stdout.flush()
"""


@pytest.mark.parametrize("way", ["one name", "numbered"])
def test_of_two_processes_that_create_a_folder_one_gets_it(tmp_path: Path, way: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CREATE_TOGETHER, way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ_without_coverage(),
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for number in range(60):
        folder = tmp_path / str(number)
        answers = []
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(f"{folder}\n")
            process.stdin.flush()
        for process in processes:
            assert process.stdout is not None
            answers.append(process.stdout.readline().strip())
        others = [answer for answer in answers if answer != str(folder)]
        assert len(others) == 1
        if way == "numbered":
            assert others == [f"{folder}-2"]
        else:
            assert "is in use" in others[0]
    for process in processes:
        process.communicate()


def test_json_and_tables_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_run(tmp_path / "run")
    run = runs.open_run(folder)
    monkeypatch.setattr(file_access, "MAX_WEIGHTS_BYTES", 100)
    monkeypatch.setattr(runs.file_access, "MAX_TABLE_BYTES", 10)

    with pytest.raises(runs.RunFileError, match=r"weights\.safetensors must have at most 100"):
        run.checkpoint()
    with pytest.raises(runs.RunFileError, match=r"metrics\.csv must have at most 10 bytes"):
        run.metrics()
    monkeypatch.setattr(runs.folder, "MAX_JSON_BYTES", 20)
    with pytest.raises(runs.RunFileError, match=r"config\.json must have at most 20 bytes"):
        runs.open_run(folder)


def test_reading_a_small_file_does_not_allocate_the_limit(tmp_path: Path) -> None:
    """Python allocates as many bytes as it is asked to read, of which 2 GB may not be there."""
    path = tmp_path / "weights"
    path.write_bytes(b"12345678")
    tracemalloc.start()
    try:
        assert read_bytes(path, 100_000_000) == b"12345678"
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000
