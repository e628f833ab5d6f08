"""Short trainings."""

import pytest

SMALL = (
    "--n-envs", "7", "--max-steps", "9", "--update-steps", "13", "--hidden", "8",
    "--checks", "2", "--check-episodes", "5",
)  # fmt: skip
Screen = pytest.CaptureFixture[str]
