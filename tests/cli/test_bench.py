"""Measuring speed on the command line, as a person does it."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from cagepool.bench import BENCHES
from cagepool.bench.measure import Pace
from cagepool.bench.schema import BenchResult, read_result, write_result
from cagepool.cli import bench as command
from tests.bench.results import result
from tests.bench.results import row as contender
from tests.cli.command import cagepool


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench") / "engine.json"


@pytest.fixture(scope="module")
def done(out: Path) -> "subprocess.CompletedProcess[str]":
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cagepool.bench.QUICK", Pace(repetitions=2, seconds=1e-4))
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
            assert {"games", "threads"} <= row["settings"].keys()
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
        (("--out", "no-folder/x.json"), "--out must be a file in .* exists, got no-folder/x.json"),
        (("--out", "."), "--out must be a file in a folder that exists, got ."),
        (("--page", "no-folder/x.html"), "--page must be a file in .*, got no-folder/x.html"),
        (("--compare", "none.json"), "none.json must be a file that can be read: .*"),
        (("--compare", "docs"), "--compare must be a JSON file or a folder with some, got docs"),
    ],
    ids=[
        "wrong folder",
        "no file",
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
    assert refused.stderr == "cagepool: --out must be a folder that exists, got x.json\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Two results; in the second, large batches are slower."""
    for name, factor in (("old", 1.0), ("new", 1.2)):
        steady = 100 + np.arange(15) / 10
        content = result(contender(steady, games=1), contender(factor * steady, games=4096))
        write_result(content, tmp_path / f"{name}.json")
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
    assert refused.stderr == "cagepool: --compare must be a result of workers, got one of engine\n"

    other = tmp_path / "other.json"
    write_result(result(bench="train"), other)
    refused = cagepool("bench", "--compare", files[0], str(other))
    sentence = "both files must be of the same bench, got engine and train"
    assert refused.stderr == f"cagepool: {sentence}\n"


@pytest.fixture
def measured(out: Path, written: Any) -> BenchResult:
    assert written
    return read_result(out)


def test_a_new_run_is_compared_with_an_earlier_one(
    measured: BenchResult,
    out: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, *others = measured.groups["call"]
    assert first.repetitions is not None
    earlier, later = (
        structs.replace(
            first,
            repetitions=structs.replace(
                first.repetitions, seconds=[factor * (1 + number / 1000) for number in range(15)]
            ),
        )
        for factor in (1.0, 10.0)
    )
    write_result(
        structs.replace(measured, groups={**measured.groups, "call": [earlier, *others]}), out
    )
    again = structs.replace(measured, groups={**measured.groups, "call": [later, *others]})
    monkeypatch.setattr(command, "run_bench", lambda *_, **__: again)
    monkeypatch.setattr(command, "print_bench_result", lambda *_: None)

    page = tmp_path / "bench.html"

    command.bench(command.Bench(compare=(out,), page=page))

    assert "<h1>Benchmarks</h1>" in page.read_text()
    printed = capsys.readouterr().out
    assert "slower" in printed
    count = sum(map(len, measured.groups.values())) - 1
    assert f"{count} contenders: no change beyond noise" in " ".join(printed.split())


def test_a_bench_whose_libraries_are_missing_is_named_and_skipped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, measured: BenchResult
) -> None:
    missing = {"no_such_library": "pip install 'it[all]'"}
    benches = {
        "engine": replace(BENCHES["engine"], libraries={}),
        "workers": replace(BENCHES["workers"], libraries=missing),
    }
    runs: list[str] = []

    def run(name: str, *_: object, **__: object) -> BenchResult:
        runs.append(name)
        return measured

    monkeypatch.setattr(command, "BENCHES", benches)
    monkeypatch.setattr(command, "run_bench", run)
    monkeypatch.setattr(command, "print_bench_result", lambda *_: None)

    command.bench(command.Bench(quick=True))

    assert runs == ["engine"]
    assert capsys.readouterr().out.splitlines() == [
        "workers is skipped: it needs no_such_library: pip install 'it[all]'",
    ]
    with pytest.raises(ValueError, match=r"^workers needs no_such_library: pip"):
        command.bench(command.Bench(name="workers"))
