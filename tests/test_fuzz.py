"""The harnesses of `make fuzz`, without sanitizers: a few cases each, and what a failure does."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.__main__ import HARNESSES
from fuzz.outcomes import UnexpectedOutcomeError, refusal_allowed
from fuzz.worker import run_one

ROOT = Path(__file__).parents[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("harness", HARNESSES)
def test_a_few_cases_of_each_harness_find_nothing(harness: str) -> None:
    for case in range(8):
        run_one(harness, 7, case)


def test_a_refusal_is_a_documented_exception_with_one_line() -> None:
    with refusal_allowed():
        raise ValueError("actions must be below 145, got 145")
    with pytest.raises(UnexpectedOutcomeError, match="one line"), refusal_allowed():
        raise ValueError("two\nlines")
    with pytest.raises(KeyError), refusal_allowed():
        raise KeyError("x")


def test_a_death_is_reported_with_the_command_that_repeats_it(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "fuzz", tmp_path / "fuzz")
    run = subprocess.run(
        [sys.executable, "-m", "fuzz", "self_test", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert run.returncode == 1
    assert "self_test failed in case 2 (exit code -11)" in run.stdout
    assert "again: make fuzz CASE='self_test --seed 7 --case 2'" in run.stdout
    saved = tmp_path / "build" / "fuzz" / "self_test-7-2.txt"
    assert "Segmentation fault" in saved.read_text()
