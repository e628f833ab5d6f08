"""The wheel works in a clean environment and on other machines of the same kind."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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

envs = cagepool.make_vec(3, red="B_lineAgent")
envs.reset(seed=1)
_, rewards, _, _, _ = envs.step(envs.action_space.sample())
print(rewards.shape)
print(*cagepool.load("zoo:best-2.1").act(envs.observations).shape)
"""

pytestmark = pytest.mark.soak  # compiles the core anew


def run(*command: str | Path, cwd: Path = ROOT, code: int = 0) -> str:
    """Output of a command without the variables of make and of the virtual environment."""
    inherited = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in inherited}
    done = subprocess.run(
        command, cwd=cwd, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `make wheel` builds, outside of the source folder."""
    folder = tmp_path_factory.mktemp("dist")
    with Path(__file__).open("rb") as lock:  # test processes share the build folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        run("make", "wheel", f"DIST={folder}")
    (path,) = folder.glob("cagepool-*.whl")
    return path


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and its requirements only."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "pip", "install", "-c", ROOT / "constraints.txt", wheel)
    return folder


def test_a_game_can_be_played_where_only_the_wheel_is_installed(clean: Path) -> None:
    played, shape, acted = run(clean / "bin" / "python", "-I", "-c", GAME, cwd=clean).splitlines()
    path, *outcome = played.split()
    assert Path(path).is_relative_to(clean)
    # Without a defense, B_line ends every game with one Impact per step.
    assert outcome == ["100", "False", "-13.1"]
    assert shape == "(3,)"
    assert acted == "3"


def test_the_command_says_what_to_install_where_only_the_wheel_is(clean: Path) -> None:
    said = run(clean / "bin" / "cagepool", "play", cwd=clean, code=2)
    assert "needs tyro and rich: pip install tyro rich, or" in said


@pytest.mark.usefixtures("wheel")
def test_the_wheel_is_not_compiled_for_this_processor_alone() -> None:
    commands = (ROOT / "build" / "wheel" / "compile_commands.json").read_text()
    assert "-O3" in commands
    assert "-march" not in commands
