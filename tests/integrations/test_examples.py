"""The examples run as programs and learn."""

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "examples" / "ppo_single_file.py"


def test_ppo_in_a_single_file_halves_its_losses() -> None:
    command = [sys.executable, str(PROGRAM), "--updates", "20", "--n-envs", "64"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    returns = [float(value) for value in re.findall(r"return\s+(-?[\d.]+)", done.stdout)]
    assert len(returns) == 3
    assert returns[-1] > returns[0] / 2, "the mean loss per episode must be halved"
