"""`module:attribute` on the command line: modules in the current folder are found."""

from pathlib import Path

import pytest

from tests.cli.command import cagepool, cagepool_process

TINY = """
import gymnasium as gym

class Coin(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample() * 0, {}

    def step(self, action):
        return self.observation_space.sample() * 0, float(action), True, False, {}
"""
FLAGS = (
    "--n-envs", "2", "--total-episodes", "4", "--update-steps", "2", "--hidden", "4",
    "--n-evals", "0",
)  # fmt: skip


@pytest.mark.parametrize("backend", ["sync", "pipes", "workers"])
def test_an_environment_beside_the_user_is_trained(tmp_path: Path, backend: str) -> None:
    (tmp_path / "shaped.py").write_text(TINY, encoding="utf-8")

    done = cagepool(
        *("train", "--env", "shaped:Coin", "--backend", backend, "--out", "run", *FLAGS),
        cwd=tmp_path,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "run" / "config.json").is_file()


@pytest.mark.parametrize(
    ("source", "name", "sentence"),
    [
        ("", "shape:make", "--env names the module 'shape', which does not exist"),
        (
            "def make(): ...",
            "shaped:mak",
            "--env names 'mak', which the module 'shaped' does not have, did you mean make?",
        ),
        (
            "raise ImportError('gone')",
            "shaped:make",
            "--env names the module 'shaped', which raises ImportError: gone (shaped.py, line 1)",
        ),
    ],
    ids=["no module", "no function", "raises"],
)
def test_what_is_wrong_with_a_module_is_said_in_one_sentence(
    tmp_path: Path, source: str, name: str, sentence: str
) -> None:
    (tmp_path / "shaped.py").write_text(source, encoding="utf-8")

    done = cagepool("train", "--env", name, "--out", "run", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (2, f"cagepool: {sentence}\n")
    assert not (tmp_path / "run").exists()


def test_the_current_folder_is_searched_only_for_modules_that_the_user_names(
    tmp_path: Path,
) -> None:
    (tmp_path / "safetensors.py").write_text("raise SystemExit('taken')", encoding="utf-8")

    done = cagepool_process("play", "--episodes", "2", "--max-steps", "2", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
