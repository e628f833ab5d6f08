"""The scripts on the page on evaluation run as they stand there."""

import re
from pathlib import Path

import pytest

from cagepool.cyborg import locate
from tests.cli.command import python
from tests.evaluate.folders import make_run

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
EXCHANGE, AGENT, PLAIN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("runs/mine"))


def test_the_lines_for_cyborgs_script_make_an_agent() -> None:
    done = python("-c", EXCHANGE + "print(agent.get_action([0] * 52, 145))")

    assert 0 <= int(done.stdout) < 145


def test_an_evaluation_from_python_prints_a_score_and_the_loss() -> None:
    done = python("-c", PLAIN.replace("episodes=1000", "episodes=20"))

    assert done.stdout.startswith("Score(mean=-")
    assert "'user_hosts': " in done.stdout


@pytest.mark.parity
def test_an_agent_plays_in_a_loop_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(locate.package_folder(locate.load()).parent), prepend=":")

    done = python("-c", AGENT.replace("range(10)", "range(2)").replace("range(100)", "range(20)"))

    assert float(done.stdout) <= 0
