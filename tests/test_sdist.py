"""The source distribution has what a wheel is built from, and no benchmark runs."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
LEFT_OUT = re.compile(r"/zoo/.*(\.csv|/log\.txt|/evaluation-.*)$")  # only in a clone
BUILD = "import sys; from scikit_build_core.build import build_{0}; build_{0}(sys.argv[1])"


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build a distribution as pip does, but with the tools that are installed."""
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    command = [sys.executable, "-c", BUILD.format(kind), str(folder)]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def names_in(source_distribution: Path) -> set[str]:
    """Paths of all files, relative to the top folder."""
    with tarfile.open(source_distribution) as archive:
        files = (PurePosixPath(member.name) for member in archive if member.isfile())
        return {str(PurePosixPath(*file.parts[1:])) for file in files}


def tracked_files(*paths: str) -> set[str]:
    command = ["git", "ls-files", *paths]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(listed.stdout.splitlines())


def test_the_source_distribution_has_the_sources_and_no_runs(source_distribution: Path) -> None:
    names = names_in(source_distribution)

    assert {"CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml"} <= names
    folders = {PurePosixPath(name).parts[0] for name in names}
    assert not folders & {"benchmarks", "tests", "runs", "build", ".venv", ".git"}
    assert tracked_files("src", "cpp", "docs", "examples") <= names


@pytest.mark.soak  # compiles the core anew
def test_a_wheel_is_built_from_the_source_distribution_alone(
    source_distribution: Path, tmp_path: Path
) -> None:
    with tarfile.open(source_distribution) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    (tmp_path / "wheel").mkdir()
    wheel = build("wheel", source, tmp_path / "wheel")

    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {name.removeprefix("src/") for name in tracked_files("src")}
    assert sources - names == {name for name in sources if LEFT_OUT.search(name)}
    assert any(name.startswith("cagepool/_core.") and name.endswith(".so") for name in names)
