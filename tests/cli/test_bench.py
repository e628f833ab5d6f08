"""Measuring speed on the command line, as a person does it."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cagepool.bench.registry import BENCHES
from cagepool.cli import bench as command
from tests.bench.results import result
from tests.bench.results import row as contender
from tests.cli.command import cagepool


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench") / "engine.json"


@pytest.fixture(scope="module")
def done(out: Path) -> "subprocess.CompletedProcess[str]":
    return cagepool("bench", "engine", "--quick", "--out", str(out))


@pytest.fixture(scope="module")
def written(done: "subprocess.CompletedProcess[str]", out: Path) -> Any:
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(out.read_text())


def test_the_file_names_machine_versions_commit_and_load(written: Any) -> None:
    machine = written["machine"]
    assert all(re.match(r"\d+\.\d+", machine[name]) for name in ("cagepool", "numpy", "gymnasium"))
    assert all(re.match(r"\d+\.\d+", machine[name]) for name in ("python", "compiler"))
    assert machine["processor"]
    assert machine["cores"] >= 1
    assert machine["commit"] is None or re.fullmatch(r"[0-9a-f]{7,40}\+?", machine["commit"])
    assert machine["load"] >= 0
    assert written["load_after"] >= 0


def test_every_figure_stands_beside_its_settings(written: Any) -> None:
    for group in written["groups"].values():
        for row in group:
            assert {"name", "games", "threads"} <= row.keys()
            low, high = row["nanoseconds_per_step"]["quartiles"]
            assert low <= row["nanoseconds_per_step"]["median"] <= high
            assert row["steps_per_second"] > 0


def test_the_tables_show_what_the_file_holds_in_80_columns(
    done: "subprocess.CompletedProcess[str]", written: Any
) -> None:
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line for line in lines if line.startswith(("  Batch.step ", "  VectorEnv.step "))]
    assert len(rows) == sum(
        row["name"] in ("Batch.step", "VectorEnv.step")
        for group in written["groups"].values()
        for row in group
    )
    assert all(any(line.startswith(f"{group}: ") for line in lines) for group in written["groups"])
    # Names that are too long for a line are folded.
    text = " ".join(done.stdout.split())
    assert all(name in text for name in written["ratios"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--out", "no-folder/x.json"), "out must be a file in .* exists, got no-folder/x.json"),
        (("--out", "."), "out must be a file in a folder that exists, got ."),
        (("--other-build", "no-folder"), ".* must hold another build of cagepool, got no-folder"),
        (("--cyborg-python", "no-python"), ".* that can import CybORG, got no-python"),
        (("--page", "no-folder/x.html"), "page must be a file in .*, got no-folder/x.html"),
        (("--compare", "none.json"), "none.json must be a file that can be read, but: .*"),
        (("--compare", "docs"), "compare must be a file or a folder that has some, got docs"),
    ],
    ids=[
        "wrong folder",
        "no file",
        "no build",
        "no CybORG",
        "no page",
        "no earlier file",
        "no file in it",
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence(
    arguments: tuple[str, str], sentence: str
) -> None:
    refused = cagepool("bench", "engine", *arguments)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert re.fullmatch(f"cagepool: {sentence}\n", refused.stderr)


def test_all_are_written_into_a_folder_only() -> None:
    refused = cagepool("bench", "--out", "x.json")
    assert refused.stderr == "cagepool: out must be a folder that exists, got x.json\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Two results; in the second, large batches are slower."""
    for name, factor in (("old", 1.0), ("new", 1.2)):
        steady = 100 + np.arange(15) / 10
        content = result(contender(steady, games=1), contender(factor * steady, games=4096))
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return str(tmp_path / "old.json"), str(tmp_path / "new.json")


def test_two_files_are_compared_without_measuring(files: tuple[str, str]) -> None:
    done = cagepool("bench", "--compare", *files)

    assert (done.returncode, done.stderr) == (0, "")
    (line,) = (line for line in done.stdout.splitlines() if "games 4096" in line)
    assert line.split()[-5:] == ["100.7", "120.8", "20%", "slower", "5%"]
    assert "games 1 " not in done.stdout
    assert "1 contender: no change beyond noise (5% for most, 5% at worst)" in done.stdout


def test_a_file_is_compared_with_its_own_bench_only(files: tuple[str, str], tmp_path: Path) -> None:
    refused = cagepool("bench", "workers", "--compare", files[0])
    assert refused.stderr == "cagepool: compare must be a result of workers, got one of engine\n"

    other = tmp_path / "other.json"
    other.write_text(json.dumps(result(bench="train")))
    refused = cagepool("bench", "--compare", files[0], str(other))
    sentence = "both files must be of the same bench, got engine and train"
    assert refused.stderr == f"cagepool: {sentence}\n"


def test_a_new_run_says_what_has_changed_since_an_earlier_one(
    written: Any,
    out: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slower = json.loads(json.dumps(written))
    turns = slower["groups"]["call"][0]["turns"]
    turns["seconds"] = [10_000 * seconds for seconds in turns["seconds"]]
    again = SimpleNamespace(as_dict=lambda: slower)
    monkeypatch.setattr(command, "run", lambda *_: again)
    monkeypatch.setattr(command, "print_bench_result", lambda *_: None)

    page = tmp_path / "bench.html"

    command.bench(command.Bench(compare=(out,), page=page))

    assert "<h1>Benchmarks</h1>" in page.read_text()
    told = capsys.readouterr().out
    assert "slower" in told
    count = sum(map(len, written["groups"].values())) - 1
    assert f"{count} contenders: no change beyond noise" in " ".join(told.split())


def test_what_cannot_run_here_is_named_and_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, written: Any
) -> None:
    entries = {
        name: replace(BENCHES[name], libraries={}) for name in ("engine", "workers", "rllib")
    }
    lacking = {"no_such_library": "pip install 'it[all]'"}
    entries["workers"] = replace(BENCHES["workers"], libraries=lacking)
    measured: list[str] = []

    def run(name: str, *_: object) -> object:
        measured.append(name)
        return SimpleNamespace(as_dict=lambda: written)

    monkeypatch.setattr(command, "BENCHES", entries)
    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(command, "print_bench_result", lambda *_: None)

    command.bench(command.Bench(quick=True))

    assert measured == ["engine"]
    assert capsys.readouterr().out.splitlines() == [
        "workers is left out: it needs no_such_library: pip install 'it[all]'",
        "rllib is left out: it takes long to start; name it to measure it quickly",
    ]
    with pytest.raises(ValueError, match=r"^workers needs no_such_library: pip"):
        command.bench(command.Bench(what="workers"))
    command.bench(command.Bench(what="rllib", quick=True))
    assert measured == ["engine", "rllib"]
