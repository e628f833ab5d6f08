"""The wheels work in clean environments, without a compiler, on each Python that is found here."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import PathDistribution
from pathlib import Path
from zipfile import Path as ZipPath
from zipfile import ZipFile

import pytest

from tests.test_snippets import python_blocks

ROOT = Path(__file__).parents[1]
INHERITED = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH", "VIRTUAL_ENV", "CAGEPOOL_CYBORG")
GAME = """
import cagepool
import gymnasium as gym

env = gym.make("cagepool/CAGE2-v0")
env.reset(seed=1)
steps, over = 0, False
while not over:
    _, reward, terminated, over, _ = env.step(0)
    steps += 1
print(cagepool.__file__, steps, terminated, reward)
"""
# Scores of a saved policy by the library alone, without the extra of the command.
EVALUATION = """
import numpy
from cagepool.evaluate import Trial
from cagepool.evaluate.protocol import evaluate
from cagepool.policy.load import load

table = evaluate(load("zoo:best-2.1"), Trial(episodes=20)).table
print(numpy.__version__, len(table.scores), table.total.mean)
"""

pytestmark = pytest.mark.soak  # compiles the core anew


def run(
    *command: str | Path, cwd: Path = ROOT, code: int = 0, path: str = os.environ["PATH"]
) -> str:
    """Output of a command without the variables of make and of the virtual environment."""
    environment = {name: value for name, value in os.environ.items() if name not in INHERITED}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment | {"PATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def found_pythons() -> dict[str, Path]:
    """Pythons from 3.11 on by version: on the path, and those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {f"3.{sys.version_info.minor}": Path(sys.executable)}
    for version in ("3.11", "3.12", "3.13", "3.14"):
        on_path = shutil.which(f"python{version}")
        candidates = [*pyenv.glob(f"{version}.*/bin/python{version}")]
        candidates += [Path(on_path)] if on_path else []
        for candidate in candidates:
            # A shim of pyenv is on the path and yet may fail.
            asked = subprocess.run(
                [candidate, "-c", "import venv"], check=False, capture_output=True
            )
            if asked.returncode == 0:
                found.setdefault(version, candidate)
    return dict(sorted(found.items()))


PYTHONS = found_pythons()


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels that `make wheel` builds, at most two, or those in the folder CAGEPOOL_WHEELS."""
    if "CAGEPOOL_WHEELS" in os.environ:
        return Path(os.environ["CAGEPOOL_WHEELS"]).resolve()
    folder = tmp_path_factory.mktemp("dist")
    newer = [path for version, path in PYTHONS.items() if version != "3.11"]
    pythons = [path for version, path in PYTHONS.items() if version == "3.11"] + newer[:1]
    with Path(__file__).open("rb") as lock:  # test processes share the build folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        run("make", "wheel", f"DIST={folder}", f"WHEEL_PYTHONS={' '.join(map(str, pythons))}")
    return folder


def install(python: Path, folder: Path, *packages: str, wheels: Path) -> Path:
    """Folder with the programs of a new environment: the wheel, its requirements, no compiler."""
    run(python, "-m", "venv", folder)
    programs = folder / "bin"
    assert not {"cc", "c++", "g++", "gcc", "clang"} & {path.name for path in programs.iterdir()}
    index = ("-c", str(ROOT / "constraints.txt")) if not packages else ()
    pip = (programs / "pip", "install", "--disable-pip-version-check", "--only-binary", "cagepool")
    offline = ("--find-links", str(wheels))
    run(*pip, *index, *offline, "cagepool", *packages, path=str(programs), cwd=folder)
    return programs


@pytest.fixture(scope="module", params=PYTHONS, ids="Python {}".format)
def programs(
    request: pytest.FixtureRequest, dist: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Programs of a virtual environment with the wheel and its requirements only."""
    return install(PYTHONS[request.param], tmp_path_factory.mktemp("clean"), wheels=dist)


def test_a_game_can_be_played_where_only_the_wheel_is_installed(programs: Path) -> None:
    path, *outcome = run(programs / "python", "-I", "-c", GAME, path=str(programs)).split()
    assert Path(path).is_relative_to(programs.parent)
    # Without a defense, B_line ends every game with one Impact per step.
    assert outcome == ["100", "False", "-13.1"]


def test_the_first_lines_of_the_readme_run_where_only_the_wheel_is(programs: Path) -> None:
    (lines,) = python_blocks("README.md")
    said = run(programs / "python", "-I", "-c", lines, path=str(programs))
    assert "mean return per episode" in said


def test_a_saved_policy_is_evaluated_where_only_the_wheel_is(programs: Path) -> None:
    _, reds, total = run(programs / "python", "-I", "-c", EVALUATION, path=str(programs)).split()
    assert reds == "3"
    assert -200 < float(total) < 0


def test_the_requirements_of_the_wheel_fit_together(programs: Path) -> None:
    said = run(programs / "pip", "--disable-pip-version-check", "check", path=str(programs))
    assert said == "No broken requirements found.\n"


def test_the_command_says_what_to_install_where_only_the_wheel_is(programs: Path) -> None:
    said = run(programs / "cagepool", "play", code=2, path=str(programs))
    assert re.fullmatch("cagepool: .* needs tyro and rich: pip install tyro rich, or .*\n", said)


def test_the_self_check_passes_where_only_the_wheel_is(programs: Path) -> None:
    said = run(programs / "python", "-I", "-m", "cagepool", "doctor", path=str(programs))
    assert said.count("\n  ok ") == 3
    assert "no   the commands: pip install tyro rich, or" in said


def test_the_wheel_plays_with_the_numpy_of_cyborg(dist: Path, tmp_path: Path) -> None:
    programs = install(PYTHONS["3.11"], tmp_path / "old", "numpy<2", wheels=dist)

    version, reds, _ = run(programs / "python", "-I", "-c", EVALUATION, cwd=tmp_path).split()
    (lines,) = python_blocks("README.md")
    said = run(programs / "python", "-I", "-c", lines, path=str(programs))

    assert version.startswith("1.26.")
    assert reds == "3"
    assert "mean return per episode" in said


def test_wheels_are_portable_and_have_complete_metadata(dist: Path) -> None:
    wheels = sorted(dist.glob("cagepool-*.whl"))
    machine = sysconfig.get_platform().removeprefix("linux-").replace("-", "_")
    for wheel in wheels:
        _, _, python, abi, platform = wheel.stem.split("-")
        assert (python, abi) in {("cp311", "cp311"), ("cp312", "abi3")}
        assert re.fullmatch(rf"(manylinux\w+_{machine}\.?)+", platform)
        with ZipFile(wheel) as archive:
            (folder,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info" in name}
            metadata = PathDistribution(ZipPath(archive, f"{folder}/")).metadata
            assert "cagepool/sim/golden/edition-2.1.npz" in archive.namelist()
        for field in ("Summary", "Author", "Keywords", "License-Expression", "Requires-Python"):
            assert metadata[field]
        classifiers = metadata.get_all("Classifier") or []
        assert "Operating System :: POSIX :: Linux" in classifiers
        assert metadata.get_all("Project-URL")
    assert len(wheels) == 1 + any(version != "3.11" for version in PYTHONS)


@pytest.mark.usefixtures("dist")
def test_a_wheel_is_not_compiled_for_this_processor_alone() -> None:
    for commands in (ROOT / "build" / "wheel").glob("*/compile_commands.json"):
        assert "-O3" in commands.read_text()
        assert "-march" not in commands.read_text()
