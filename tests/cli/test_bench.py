"""Measuring speed on the command line, as a person does it."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

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
    ],
    ids=["wrong folder", "no file", "no build", "no CybORG"],
)
def test_a_wrong_value_is_refused_in_one_sentence(
    arguments: tuple[str, str], sentence: str
) -> None:
    refused = cagepool("bench", "engine", *arguments)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert re.fullmatch(f"cagepool: {sentence}\n", refused.stderr)
