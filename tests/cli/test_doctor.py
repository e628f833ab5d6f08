"""`cagepool doctor` describes an installation with and without its extras, and checks it."""

import re
import sys
import tomllib
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cagepool import self_check
from cagepool.cli import doctor, main
from cagepool.cyborg import locate
from tests.cli.command import cagepool, python
from tests.golden import ship

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# A distribution and its module are absent: neither metadata nor an import finds them.
BLIND = """
from importlib.machinery import PathFinder

class Blind(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            return None
        return PathFinder.find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, *args):
        for found in PathFinder.find_distributions(*args):
            if found.name.lower().replace("-", "_") not in ABSENT:
                yield found
"""
WITHOUT = """
import sys
ABSENT = {absent!r}
{blind}
sys.meta_path = [Blind if finder is PathFinder else finder for finder in sys.meta_path]
import cagepool.self_check
cagepool.self_check.CHECKS = {{"golden games": cagepool.self_check.check_golden_games}}
from cagepool.cli.main import main
main()
"""


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for no CybORG and start no workers."""
    monkeypatch.setattr(doctor, "_cyborg", lambda: "none")
    checks = {"golden games": self_check.check_golden_games}
    monkeypatch.setattr(self_check, "CHECKS", checks)


NEED_TORCH = {"train", "search", "ray", "export", "wandb", "study"}


def extra_lines(text: str) -> dict[str, str]:
    """Lines of the section of extras, by extra."""
    section = text.partition("\nextras\n")[2].partition("\nCybORG\n")[0]
    return {line.split()[0]: line for line in section.splitlines()}


def test_the_whole_diagnosis_of_a_sound_installation_passes() -> None:
    done = cagepool("doctor")

    assert (done.returncode, done.stderr) == (0, "")
    checks = done.stdout.partition("\nself-check\n")[2].splitlines()
    assert [line.split()[0] for line in checks] == ["ok", "ok", "ok"]
    for part in ("cagepool 0.", "Python 3.", "numpy ", "gymnasium ", "instruction set ", " cores"):
        assert part in done.stdout
    assert str(Path.home()) + "/" not in done.stdout


@pytest.mark.parametrize(
    ("absent", "extras", "remedy"),
    [
        (["tyro"], {"cli", "bench", "report", "minari", *NEED_TORCH}, "pip install tyro, or"),
        (["torch"], NEED_TORCH, "pip install torch, or"),
        (["psutil"], {"bench"}, "pip install psutil, or"),
        (["sklearn", "scikit_learn"], {"search"}, "pip install scikit-learn, or"),
        (["PIL", "pillow"], {"render"}, "pip install pillow, or"),
        (["jinja2"], {"report", "export"}, "pip install jinja2, or"),
        (["sb3_contrib"], {"sb3"}, "pip install sb3-contrib, or"),
        (["pettingzoo"], {"pettingzoo"}, "pip install pettingzoo, or"),
        (["onnxruntime"], {"onnx"}, "pip install onnxruntime, or"),
        (["ray"], {"ray"}, "pip install ray, or"),
        (["wandb"], {"wandb"}, "pip install wandb, or"),
        (["minari"], {"minari"}, "pip install minari, or"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("_quick")
def test_an_extra_that_is_absent_is_named_with_its_remedy(
    absent: list[str], extras: set[str], remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {"ABSENT": absent}
    exec(BLIND, names)
    finders = [names["Blind"] if finder is PathFinder else finder for finder in sys.meta_path]
    monkeypatch.setattr(sys, "meta_path", finders)
    for module in absent:
        monkeypatch.setitem(sys.modules, module, None)

    done = cagepool("doctor")

    assert (done.returncode, done.stderr) == (0, "")
    lines = extra_lines(done.stdout)
    missing = {extra for extra, line in lines.items() if line.split()[1] == "no"} - {"jax"}
    assert missing == extras
    assert all(remedy in lines[extra] for extra in extras)
    assert all(doctor.EXTRAS[extra] in line for extra, line in lines.items())


def test_a_diagnosis_needs_no_extra_at_all() -> None:
    absent = ["tyro", "rich", "torch", "psutil", "scipy", "matplotlib", "jinja2", "ray"]

    done = python("-c", WITHOUT.format(absent=absent, blind=BLIND), "doctor", CAGEPOOL_CYBORG="")

    assert (done.returncode, done.stderr) == (0, "")
    assert "pip install tyro rich torch tensorboard" not in done.stdout  # tensorboard is there
    assert "pip install tyro rich torch, or" in extra_lines(done.stdout)["train"]


def test_every_extra_for_users_is_described() -> None:
    assert {*PROJECT["optional-dependencies"]} - {*doctor.FOR_DEVELOPERS} == {*doctor.EXTRAS}


@pytest.mark.usefixtures("_quick")
def test_a_failed_check_gives_exit_code_1_and_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = ship.selection("traces_dev")
    trace["reward_tenths"][2, 40] -= 1
    np.savez(tmp_path / "damaged.npz", **trace)  # type: ignore[arg-type] # stubs of NumPy
    monkeypatch.setattr(self_check, "_GOLDEN", tmp_path)

    with pytest.raises(SystemExit, match="1"):
        main.run(["doctor"])

    said = capsys.readouterr()
    failure = r"FAILED golden games, .* s: 1 values of damaged differ, .*step 40, reward_tenths"
    assert re.search(failure, said.out)
    assert re.fullmatch(r"cagepool: the self-check failed \(golden games\): .*\n", said.err)


@pytest.mark.usefixtures("_quick")
def test_a_check_that_raises_fails_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> str:
        raise OSError("no more processes")

    monkeypatch.setitem(self_check.CHECKS, "broken", broken)
    monkeypatch.setitem(self_check.CHECKS, "sound", lambda: "fine")

    with pytest.raises(SystemExit, match="1"):
        main.run(["doctor"])

    out = capsys.readouterr().out
    assert "FAILED broken, 0.0 s: OSError: no more processes" in out
    assert "ok     sound, 0.0 s: fine" in out


@pytest.mark.usefixtures("_quick")
def test_the_path_of_the_home_folder_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(doctor, "_cyborg", lambda: f"none: got {tmp_path}/checkout")

    main.run(["doctor"])

    out = capsys.readouterr().out
    assert "none: got ~/checkout" in out
    assert str(tmp_path) not in out


def test_a_folder_without_cyborg_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(locate.VARIABLE, str(tmp_path))

    line = doctor._cyborg()

    assert line == f"none: a checkout of CAGE Challenge 2 must hold CybORG, got {tmp_path}"


@pytest.mark.skipif(find_spec("CybORG") is not None, reason="CybORG is installed")
def test_an_absent_cyborg_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(locate.VARIABLE, raising=False)

    assert doctor._cyborg() == "none: it is not installed, and CAGEPOOL_CYBORG names no folder"


@pytest.mark.parity
def test_the_edition_of_cyborg_is_reported() -> None:
    assert re.fullmatch(r".*, edition (2\.1|leaderboard)", doctor._cyborg())


def test_the_games_of_the_self_check_are_golden_traces() -> None:
    for name, shipped in ship.FILES.items():
        with np.load(ship.SHIPPED / f"{shipped}.npz") as file:
            for field, values in ship.selection(name).items():
                np.testing.assert_array_equal(file[field], values)


def test_the_self_check_notices_games_that_depend_on_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rewards = iter([np.zeros((3, 5)), np.ones((3, 5))])
    monkeypatch.setattr(self_check, "_play_batch", lambda threads: (next(rewards), threads))

    with pytest.raises(self_check.CheckFailedError, match="5 of 4096 games differ"):
        self_check.check_native_batch()
