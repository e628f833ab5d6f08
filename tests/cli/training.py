"""Short trainings."""

import pytest

SMALL = (
    "--n-envs", "7", "--max-steps", "9", "--update-steps", "13", "--hidden", "8",
    "--n-evals", "2", "--n-eval-episodes", "5",
)  # fmt: skip
Screen = pytest.CaptureFixture[str]
