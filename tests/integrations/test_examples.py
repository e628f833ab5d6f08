"""The examples run as programs and learn."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import cagepool_process
from tests.environment import LIMIT_S

PROGRAM = Path(__file__).parents[2] / "examples" / "ppo_single_file.py"


@pytest.mark.soak
def test_ppo_in_a_single_file_halves_its_losses_and_saves_what_can_be_scored(
    tmp_path: Path,
) -> None:
    command = [sys.executable, str(PROGRAM), "--updates", "20", "--n-envs", "64"]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path
    )
    returns = [float(value) for value in re.findall(r"return\s+(-?[\d.]+)", done.stdout)]
    assert len(returns) == 3
    assert returns[-1] > returns[0] / 2, "the mean loss per episode must be halved"

    scored = cagepool_process(
        *("evaluate", "ppo_single_file:SavedPolicy", "--json", "--episodes", "100"),
        cwd=tmp_path,
        PYTHONPATH=str(PROGRAM.parent),
    )
    assert (scored.returncode, scored.stderr) == (0, "")
    (score,) = [
        cell["mean"]
        for cell in json.loads(scored.stdout)["scores"]
        if (cell["red"], cell["length"]) == ("B_lineAgent", 30)
    ]
    assert score > returns[0] / 2, "the saved policy must be the trained one"
