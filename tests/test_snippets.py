"""Python code and commands in the documents run as printed.

Blocks of ```python are run; blocks of ```py and blocks without a language are not, such as code for
CybORG.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cagepool.cli import main
from cagepool.search import search
from cagepool.search.config import SearchConfig
from tests.cli.command import PLAIN
from tests.test_documents import CODE_BLOCK, PAGES, ROOT, page_name

AFTER_COMMANDS = "<!-- after the commands -->\n"  # before code that needs their files
PYTHON_BLOCK = re.compile(rf"^(?<!{AFTER_COMMANDS})```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED_FILE = re.compile(
    r"Save this as `(\w+\.(?:py|toml))`.*?^```(?:python|toml)\n(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)  # language, content
PLACEHOLDER = re.compile(r"…|\b[A-Z]+\b|\[")

CURRENT_PAGES = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which has old names

NO_MARKS: tuple[pytest.MarkDecorator, ...] = ()
SLOW = (pytest.mark.slow,)
SOAK = (pytest.mark.soak,)
RAY = (pytest.mark.ray, pytest.mark.soak)  # trains with RLlib for a minute
JAX = (pytest.mark.skipif(find_spec("jax") is None, reason="needs JAX: make test-jax"),)
CYBORG = (pytest.mark.parity,)
# What the last block of a page prints, and why not every test run runs it.
PAGES_WITH_CODE = [
    ("README.md", "with a privileged red session", NO_MARKS),
    ("docs/belief.md", "Restore User4: -", NO_MARKS),
    ("docs/coming-from/cyborg.md", "red: DiscoverRemoteSystems User", NO_MARKS),
    ("docs/coming-from/minicage.md", "", NO_MARKS),
    ("docs/cyborg.md", "", CYBORG),
    ("docs/datasets.md", "privileged at the end", NO_MARKS),
    ("docs/environments.md", "Op_Server0", NO_MARKS),
    ("docs/evaluation.md", "'user_hosts'", CYBORG),
    ("docs/failures.md", "ValueError: the simulator is gone", NO_MARKS),
    ("docs/getting-started.md", "red: DiscoverRemoteSystems User", NO_MARKS),
    ("docs/index.md", "mean return per episode", NO_MARKS),
    ("docs/integrations.md", "TorchRL: ", SOAK),
    ("docs/jax.md", "(120, 5)", JAX),
    ("docs/own-environments.md", "(4, 13) [0 0 0 0]", NO_MARKS),
    ("docs/own-networks.md", "64", NO_MARKS),
    ("docs/playing.md", "-", NO_MARKS),
    ("docs/ray.md", "-", RAY),
    ("docs/reference/runs.md", "Score(mean=-", NO_MARKS),
    ("docs/reference/train.md", "True [-", NO_MARKS),
    ("docs/scenarios.md", "cage2/users:test/17", NO_MARKS),
    ("docs/sharing.md", "of 10000 actions are those of the policy", NO_MARKS),
    ("docs/study.md", "P(improvement) = ", NO_MARKS),
    ("docs/tracking.md", "return after", NO_MARKS),
    ("docs/tutorials/compare-settings.md", "+5.3 [-2.0, 12.5]", NO_MARKS),
    ("docs/tutorials/learning-red.md", "learned red: -2", SOAK),
    ("docs/tutorials/own-environment.md", "restarts per environment", SLOW),
    ("docs/tutorials/own-network.md", "12780 parameters", NO_MARKS),
    ("docs/tutorials/planning.md", "planning -15.2, sleeping -223.8", NO_MARKS),
    ("docs/tutorials/train-and-score.md", "-", NO_MARKS),
    ("docs/tutorials/workflow-search.md", "compliance", NO_MARKS),
]


def python_blocks(page: str) -> list[str]:
    return PYTHON_BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def block_commands(page: str) -> list[list[str]]:
    """Arguments of the commands of `cagepool` in the blocks of a page."""
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    text = "\n".join(content for language, content in blocks if not language)
    found = re.findall(r"^(?:\$ )?cagepool (.*)", text, re.MULTILINE)
    return [shlex.split(arguments, comments=True) for arguments in found]


def inline_commands(page: str) -> list[list[str]]:
    """Arguments of the complete commands of `cagepool` in the text of a page."""
    text = CODE_BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    found = re.findall(r"`cagepool ([^`\n]+ [^`\n]+)`", text)
    return [
        shlex.split(arguments)
        for arguments in found
        if not PLACEHOLDER.search(arguments) and not re.search(r"--[\w-]+$", arguments)
    ]


@pytest.fixture
def _folder_with_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder with the run `runs/mine` and the search `runs/orders`.

    PyTorch gets one thread: more of them spin beside other tests.
    """
    import torch  # noqa: PLC0415 - takes seconds

    shutil.copytree(ROOT / "src" / "cagepool" / "zoo" / "minutes", tmp_path / "runs" / "mine")
    search.create(tmp_path / "runs" / "orders", SearchConfig())
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_every_page_with_python_code_is_run() -> None:
    pages = [page_name(page) for page in PAGES if python_blocks(page_name(page))]
    assert pages == [page for page, _, _ in PAGES_WITH_CODE]


@pytest.mark.documents
@pytest.mark.usefixtures("_folder_with_a_run")
@pytest.mark.parametrize(
    ("page", "printed"),
    [pytest.param(page, printed, marks=marks, id=page) for page, printed, marks in PAGES_WITH_CODE],
)
def test_the_code_of_a_page_runs_from_top_to_bottom(
    page: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}  # as in a reader's own program
    for block in python_blocks(page):
        exec(block, names)
    assert printed in capsys.readouterr().out


@pytest.mark.usefixtures("_folder_with_a_run")
@pytest.mark.parametrize("page", CURRENT_PAGES, ids=page_name)
def test_commands_of_a_page_have_flags_that_exist(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parsed: list[object] = []
    known = {name: (flags, parsed.append) for name, (flags, _) in main.load_commands().items()}
    monkeypatch.setattr(main, "load_commands", lambda: known)
    for arguments in block_commands(page_name(page)) + inline_commands(page_name(page)):
        assert main.run(arguments) == 0, (arguments, capsys.readouterr().err)


@pytest.mark.parametrize("page", CURRENT_PAGES, ids=page_name)
def test_targets_of_make_on_a_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"^make ([a-z-]+)", text, re.MULTILINE) + re.findall(
        r"`make ([a-z-]+)", text
    )
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(named) <= set(targets)


# Values that make a command short.
SHORT = {"--total-episodes": "200", "--episodes": "4", "--steps": "100"}
# Pages whose commands train, evaluate and report one after another.
PAGES_TO_EXECUTE = (
    *("evaluation", "playing", "profiling", "reports", "search", "training"),
    *("datasets", "sharing"),
    *("getting-started", "own-networks", "tutorials/train-and-score", "tutorials/own-network"),
    *(
        "tutorials/own-scenario",
        "tutorials/own-environment",
        "tutorials/compare-settings",
        "tutorials/workflow-search",
    ),
)
REFUSED = (["report", "docs"], ["play", "--blue", "react-restor"])  # to show the message


def shortened(arguments: list[str]) -> list[str]:
    flags = ["", *arguments]
    short = [SHORT.get(flag, value) for flag, value in pairwise(flags)]
    trains = "train" in arguments or "search" in arguments
    has_budget = "--total-episodes" in arguments
    return (
        [*short, "--total-episodes", SHORT["--total-episodes"]]
        if trains and not has_budget
        else short
    )


@pytest.mark.soak
@pytest.mark.parametrize("page", PAGES_TO_EXECUTE)
def test_commands_of_a_page_run_one_after_another(page: str, tmp_path: Path) -> None:
    for folder in ("benchmarks", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    shutil.copytree(ROOT / "src" / "cagepool" / "zoo" / "b_line", tmp_path / "runs" / "b_line")
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    for name, code in SAVED_FILE.findall(text):
        (tmp_path / name).write_text(code, encoding="utf-8")
    for arguments in block_commands(f"docs/{page}.md"):
        done = run_in(tmp_path, "-m", "cagepool", *shortened(arguments))
        assert done.returncode == (2 if arguments in REFUSED else 0), (arguments, done.stderr)
    if AFTER_COMMANDS in text:
        code = PYTHON_BLOCK.findall(text.replace(AFTER_COMMANDS, ""))
        done = run_in(tmp_path, "-c", "\n".join(code))
        assert done.returncode == 0, done.stderr


def run_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **PLAIN, "PYTHONPATH": str(ROOT / "examples")},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
