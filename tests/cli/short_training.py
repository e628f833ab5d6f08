"""Flags of a short training."""

import pytest

SHORT_FLAGS = (
    "--n-envs", "7", "--max-steps", "9", "--update-steps", "13", "--hidden", "8",
    "--n-evals", "2", "--n-eval-episodes", "5",
)  # fmt: skip
Capture = pytest.CaptureFixture[str]
