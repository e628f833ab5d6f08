"""Code and flags of docs/cyborg.md."""

import re
from pathlib import Path

import pytest

from cagepool.cyborg import locate
from cagepool.parity import FUZZ_POLICIES

PAGE = (Path(__file__).parents[2] / "docs" / "cyborg.md").read_text(encoding="utf-8")


@pytest.mark.parity
def test_the_code_of_the_page_plays_a_game(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert re.match(r"(2\.1|leaderboard) \[", capsys.readouterr().out)
    assert (names["truncated"], names["terminated"]) == (True, False)


def test_the_page_names_what_the_code_asks_for() -> None:
    assert locate.REQUIREMENTS in PAGE
    assert f"{locate.VARIABLE}=" in PAGE


def test_the_page_names_every_fuzz_policy() -> None:
    assert all(f"`{policy}`" in PAGE for policy in FUZZ_POLICIES)
