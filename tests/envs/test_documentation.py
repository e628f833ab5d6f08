"""The code in the documentation runs as printed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("README.md", "with a privileged red session"),
        ("docs/environments.md", "Op_Server0"),
        ("docs/own-environments.md", "(4, 13) [0 0 0 0]"),
        ("docs/failures.md", "ValueError: the simulator is gone"),
        pytest.param("docs/integrations.md", "TorchRL: ", marks=pytest.mark.slow),
    ],
)
def test_a_page_runs_from_top_to_bottom(
    page: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / page).read_text()
    names: dict[str, object] = {"__name__": "__main__"}  # as where a reader would put it
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(block, names)
    assert shown in capsys.readouterr().out
