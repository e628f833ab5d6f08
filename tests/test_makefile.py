"""`make train` and `make setup` install what they should, once, with one line per stage."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_layers import declared_dependencies

ROOT = Path(__file__).parents[1]
# Stands for Python, and for pip of the environment that it creates: notes its calls, talks, and
# fails if its arguments contain $FAIL.
PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit
echo "$@" >> calls.txt
echo "Collecting something"
case "$*" in *"${FAIL:-nothing}"*) echo "no such distribution"; exit 1;; esac
if [ "$2" = venv ]; then
  mkdir -p .venv/bin
  cp "$0" .venv/bin/python
  printf '#!/bin/sh\\n' > .venv/bin/cagepool
  chmod +x .venv/bin/cagepool
fi
"""
STAGES = ("creating .venv", "installing build tools", "compiling the core")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the Makefile and a Python that installs nothing."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("constraints.txt", "pyproject.toml", "CMakeLists.txt"):
        (tmp_path / name).touch()
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return tmp_path


def make(clone: Path, target: str, *, code: int = 0, fail: str = "") -> list[str]:
    """Lines that make prints."""
    inherited = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in inherited}
    done = subprocess.run(
        ["make", target, "PYTHON=./python", "RUN=runs/one"],
        cwd=clone,
        env=environment | {"FAIL": fail},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout.splitlines()


def calls(clone: Path) -> list[str]:
    """Calls of Python since the last question."""
    noted = clone / "calls.txt"
    lines = noted.read_text().splitlines() if noted.exists() else []
    noted.unlink(missing_ok=True)
    return lines


def test_a_training_says_one_line_per_stage_before_its_commands(clone: Path) -> None:
    *stages, train, evaluate, report = make(clone, "train")

    titles = (*STAGES, "installing PyTorch and what else a training needs")
    assert [re.sub(r": \d+ s$", "", stage) for stage in stages] == [*titles]
    assert train == ".venv/bin/cagepool train --preset minutes --out runs/one"
    assert [evaluate, report] == [
        f".venv/bin/cagepool {command} runs/one" for command in ("evaluate", "report")
    ]


def test_a_training_asks_for_three_extras_and_a_set_up_for_all(clone: Path) -> None:
    make(clone, "train")
    assert [call.split()[-1] for call in calls(clone)[-2:]] == [".", "cagepool[cli,train,report]"]

    make(clone, "setup")
    (added,) = calls(clone)  # nothing is compiled again
    assert added.endswith("cagepool[dev]")


def test_a_training_after_a_set_up_installs_nothing(clone: Path) -> None:
    make(clone, "setup")
    assert calls(clone)[-1].endswith("cagepool[dev]")

    first, *_ = make(clone, "train")

    assert calls(clone) == []
    assert first.startswith(".venv/bin/cagepool train")


def test_the_output_of_a_stage_is_shown_if_it_fails(clone: Path) -> None:
    lines = make(clone, "train", code=2, fail="nanobind")

    assert lines[1] == "installing build tools: failed"
    assert lines[-3:-1] == ["Collecting something", "no such distribution"]

    again = make(clone, "train")  # begins where it failed
    assert re.fullmatch(r"installing build tools: \d+ s", again[0])


def test_the_extras_of_a_training_need_no_other_trainers_and_no_tools() -> None:
    needed = declared_dependencies(("cli", "train", "report"))

    assert needed >= {"torch", "tyro", "matplotlib", "numpy"}
    others = {"ray", "torchrl", "stable-baselines3", "sb3-contrib", "scikit-learn", "pettingzoo"}
    assert not needed & (others | {"ruff", "mypy", "pytest", "playwright", "clang-tidy"})
