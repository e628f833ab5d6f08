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


def sentence(feature: str, package: str, extra: str) -> str:
    """The command must work in a clone and with a wheel; there is no release yet."""
    remedy = f"pip install {package}, or install cagepool with its extra `{extra}`"
    return f"{feature} needs {package}: {remedy}"


@pytest.mark.parametrize(
    ("library", "call", "feature", "package", "extra"),
    [
        ("tyro", "play", "the command line", "tyro", "cli"),
        ("rich", "play", "the command line", "rich", "cli"),
        ("torch", "train", "training", "torch", "train"),
        ("safetensors", "train", "training", "safetensors", "train"),
        ("torch", "bench train", "train", "torch", "train"),
        ("sklearn", "search", "a search", "scikit-learn", "search"),
        ("ray", "train --backend ray", "backend ray", "ray", "ray"),
        ("psutil", "bench engine", "a bench", "psutil", "bench"),
        ("scipy", "bench engine", "a bench", "scipy", "bench"),
        ("psutil", "profile -- step", "a profile", "psutil", "bench"),
        ("matplotlib", "report x", "a report", "matplotlib", "report"),
        ("jinja2", "report x", "a report", "jinja2", "report"),
        ("jax", "bench jax", "jax", "jax", "jax"),
    ],
)
def test_a_command_says_what_to_install(
    library: str, call: str, feature: str, package: str, extra: str
) -> None:
    done = python("-c", WITHOUT.format(library=library) + COMMAND, *call.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"cagepool: {sentence(feature, package, extra)}\n"


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

    expected = sentence(f"cagepool.integrations.{module}", named, module)
    assert done.stderr.splitlines()[-1] == f"cagepool._optional.MissingExtraError: {expected}"


def test_the_games_in_jax_say_what_to_install() -> None:
    done = python("-c", WITHOUT.format(library="jax") + "import cagepool.jax")

    expected = sentence("cagepool.jax", "jax", "jax")
    assert done.stderr.splitlines()[-1] == f"cagepool._optional.MissingExtraError: {expected}"


def test_stable_baselines3_is_enough_for_its_pools() -> None:
    program = "from cagepool.integrations import sb3; print(sb3.make(2).reset().shape)"

    done = python("-c", WITHOUT.format(library="sb3_contrib") + program)

    assert done.stdout == "(2, 52)\n"


def test_a_checkpoint_of_rllib_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "rllib_checkpoint.json").write_text("{}")

    command = ("evaluate", str(tmp_path), "--trust-pickle")
    done = python("-c", WITHOUT.format(library="tree") + COMMAND, *command)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"cagepool: {sentence('cagepool.integrations.rllib', 'dm-tree', 'ray')}\n"


def test_all_that_is_missing_is_named_at_once() -> None:
    expected = "^it needs no_such and scikit-learn-x: pip install no_such scikit-learn-x, or "
    with (
        pytest.raises(_optional.MissingExtraError, match=expected),
        _optional.require("it", "some", "numpy", "no_such", "scikit-learn-x"),
    ):
        pytest.fail("the imports were tried")


def test_a_policy_asks_for_safetensors_and_not_for_pytorch() -> None:
    program = "import cagepool; cagepool.load('zoo:minutes')"

    done = python("-c", WITHOUT.format(library="safetensors") + program)

    sentence = "a policy needs safetensors: pip install safetensors"
    assert done.stderr.splitlines()[-1] == f"cagepool._optional.MissingExtraError: {sentence}"


def test_a_scenario_file_asks_for_pyyaml_and_a_generated_network_does_not() -> None:
    program = "from cagepool import Scenario; Scenario.generate(1); Scenario.load('x.yaml')"

    done = python("-c", WITHOUT.format(library="yaml") + program)

    sentence = "a scenario file needs pyyaml: pip install pyyaml"
    assert done.stderr.splitlines()[-1] == f"cagepool._optional.MissingExtraError: {sentence}"
