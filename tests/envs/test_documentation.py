"""The code in the documentation runs as printed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_page(page: str) -> None:
    """Run all Python blocks of a page, one after the other."""
    text = (ROOT / page).read_text()
    names: dict[str, object] = {"__name__": "__main__"}  # as in a reader's own program
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(block, names)


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("README.md", "with a privileged red session"),
        ("docs/environments.md", "Op_Server0"),
        ("docs/own-environments.md", "(4, 13) [0 0 0 0]"),
        ("docs/failures.md", "ValueError: the simulator is gone"),
    ],
)
def test_a_page_runs_from_top_to_bottom(
    page: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_page(page)
    assert printed in capsys.readouterr().out


@pytest.fixture
def _one_torch_thread() -> Iterator[None]:
    """Keep PyTorch's threads from spinning on a busy machine."""
    import torch  # noqa: PLC0415 - takes seconds

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.usefixtures("_one_torch_thread")
def test_the_page_on_other_libraries_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_page("docs/integrations.md")
    assert "TorchRL: " in capsys.readouterr().out
