"""A missing optional library gives one sentence that says what to install."""

from pathlib import Path

import pytest

from cagepool import _optional
from tests.cli.command import python

WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Blind(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == {library!r} else PathFinder.find_spec(name, path, target)

sys.meta_path = [Blind if finder is PathFinder else finder for finder in sys.meta_path]
"""
COMMAND = "from cagepool.cli.main import main; main()"


@pytest.mark.parametrize(
    ("library", "call", "sentence"),
    [
        ("tyro", "play", "the command line needs tyro: pip install 'cagepool[cli]'"),
        ("rich", "play", "the command line needs rich: pip install 'cagepool[cli]'"),
        ("torch", "train", "training needs torch: pip install 'cagepool[train]'"),
        ("safetensors", "train", "training needs safetensors: pip install 'cagepool[train]'"),
        ("torch", "bench train", "train needs torch: pip install 'cagepool[train]'"),
        ("sklearn", "search", "a search needs scikit-learn: pip install 'cagepool[search]'"),
        ("ray", "train --backend ray", "backend ray needs ray: pip install 'cagepool[ray]'"),
        ("psutil", "bench engine", "a bench needs psutil: pip install 'cagepool[bench]'"),
        ("scipy", "bench engine", "a bench needs scipy: pip install 'cagepool[bench]'"),
        ("psutil", "profile -- step", "a profile needs psutil: pip install 'cagepool[bench]'"),
        ("matplotlib", "report x", "a report needs matplotlib: pip install 'cagepool[report]'"),
        ("jinja2", "report x", "a report needs jinja2: pip install 'cagepool[report]'"),
    ],
)
def test_a_command_says_what_to_install(library: str, call: str, sentence: str) -> None:
    done = python("-c", WITHOUT.format(library=library) + COMMAND, *call.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"cagepool: {sentence}\n"


@pytest.mark.parametrize(
    ("library", "module", "named"),
    [
        ("stable_baselines3", "sb3", "stable-baselines3"),
        ("pettingzoo", "pettingzoo", "pettingzoo"),
    ],
)
def test_an_integration_says_what_to_install(library: str, module: str, named: str) -> None:
    program = f"import cagepool.integrations.{module}"

    done = python("-c", WITHOUT.format(library=library) + program)

    sentence = f"cagepool.integrations.{module} needs {named}: pip install 'cagepool[{module}]'"
    assert done.stderr.splitlines()[-1] == f"cagepool._optional.MissingExtraError: {sentence}"


def test_stable_baselines3_is_enough_for_its_pools() -> None:
    program = "from cagepool.integrations import sb3; print(sb3.make(2).reset().shape)"

    done = python("-c", WITHOUT.format(library="sb3_contrib") + program)

    assert done.stdout == "(2, 52)\n"


def test_a_checkpoint_of_rllib_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "rllib_checkpoint.json").write_text("{}")

    done = python("-c", WITHOUT.format(library="tree") + COMMAND, "evaluate", str(tmp_path))

    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "cagepool: cagepool.integrations.rllib needs dm-tree: pip install 'cagepool[ray]'\n"
    )


def test_all_that_is_missing_is_named_at_once() -> None:
    sentence = r"^it needs no_such and scikit-learn-x: pip install 'cagepool\[some\]'$"
    with (
        pytest.raises(_optional.MissingExtraError, match=sentence),
        _optional.require("it", "some", "numpy", "no_such", "scikit-learn-x"),
    ):
        pytest.fail("the imports were tried")
