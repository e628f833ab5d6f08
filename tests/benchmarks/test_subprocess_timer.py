"""Timers in other processes."""

import shutil
import sys
from pathlib import Path

import pytest

import cagepool
from benchmarks.suites.subprocess_timer import (
    SubprocessTimer,
    has_cyborg,
    time_cyborg,
    time_minicage,
    time_other_build,
)
from cagepool import _core

ANSWERING = "import sys\nfor line in sys.stdin: print(int(line) / 4, flush=True)"
# As much of CybORG as the comparison uses; it fails where a reset is left out.
FAKE_CYBORG = {
    "__init__.py": """
class CybORG:
    def __init__(self, scenario, mode, agents):
        assert scenario.endswith("Scenario2.yaml") and mode == "sim" and list(agents) == ["Red"]
""",
    "Agents/__init__.py": "class B_lineAgent: pass",
    "Agents/Wrappers.py": """
class ChallengeWrapper:
    def __init__(self, env, agent_name):
        assert agent_name == "Blue"
    def reset(self):
        self.steps = 0
    def step(self, action):
        assert 0 <= action < 145
        self.steps += 1
        assert self.steps <= 100
""",
}
# As much of MiniCAGE; its red must see the state of the last step or reset.
FAKE_MINICAGE = """
import numpy as np
class SimplifiedCAGE:
    def __init__(self, num_envs): self.count = num_envs
    def reset(self):
        self.steps = 0
        return {"Red": 0}, {}
    def step(self, red_action, blue_action):
        assert red_action == self.steps and blue_action.shape == (self.count, 1)
        assert 0 <= blue_action.min() and blue_action.max() < 53
        self.steps += 1
        assert self.steps <= 100
        return {"Red": self.steps}, {}, False, {}
class Meander_minimal: pass
class B_line_minimal:
    def get_action(self, observation): return np.float64(observation)
"""


def python(program: str) -> SubprocessTimer:
    return SubprocessTimer([sys.executable, "-c", program])


def test_a_timer_answers_with_its_seconds() -> None:
    with python(ANSWERING) as timer:
        assert [timer(2), timer(10)] == [0.5, 2.5]


def test_the_process_is_gone_afterwards() -> None:
    with python(ANSWERING) as timer:
        timer(1)
    assert timer._process.returncode is not None


def test_a_process_that_has_ended_is_reported_with_its_error_output() -> None:
    with (
        python("exit('no more')") as timer,
        pytest.raises(RuntimeError, match=r"-c .* has ended: no more$"),
    ):
        timer(1)


def test_a_process_that_ends_after_an_answer_is_reported() -> None:
    with python("input(); print(1, flush=True); exit('no more')") as timer:
        assert timer(1) == 1
        with pytest.raises(RuntimeError, match=r"has ended: no more$"):
            timer(1)


def test_long_error_output_is_cut_to_its_end() -> None:
    with python("exit('x' * 10**5 + ' the end')") as timer:
        with pytest.raises(RuntimeError, match=r"the end$") as caught:
            timer(1)
        assert len(str(caught.value)) < 1000


def test_a_folder_without_a_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=f"other_build must be a folder with a build of cagepool, got {tmp_path}$"
    ):
        time_other_build(tmp_path, 1, "SleepAgent")


def test_another_build_is_timed_from_its_own_folder(tmp_path: Path) -> None:
    package = Path(shutil.copytree(Path(cagepool.__file__).parent, tmp_path / "cagepool"))
    compiled = Path(_core.__file__)
    shutil.copy(compiled, package / compiled.name)

    with time_other_build(tmp_path, 3, "SleepAgent") as timer:
        assert timer(2) > 0


def test_a_python_without_cyborg_is_refused() -> None:
    assert not has_cyborg("no-such-python")
    with pytest.raises(ValueError, match=r"can import CybORG, got no-such-python$"):
        time_cyborg("no-such-python", "B_lineAgent")


def test_cyborg_is_timed_with_its_resets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, source in FAKE_CYBORG.items():
        path = tmp_path / "CybORG" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with time_cyborg(sys.executable, "B_lineAgent") as timer:
        assert timer(250) > 0
        assert timer(100) > 0


def test_minicage_is_timed_with_its_resets(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"with the package mini_CAGE, got {tmp_path}$"):
        time_minicage(tmp_path, 3, "B_lineAgent")
    (tmp_path / "mini_CAGE").mkdir()
    (tmp_path / "mini_CAGE" / "__init__.py").write_text(FAKE_MINICAGE)

    with time_minicage(tmp_path, 3, "B_lineAgent") as timer:
        assert timer(250) > 0
        assert timer(100) > 0
