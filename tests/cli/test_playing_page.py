"""The page on playing shows what the commands print."""

import re
from pathlib import Path

import pytest

from tests.cli.command import cagepool, python

PAGE = (Path(__file__).parents[2] / "docs" / "playing.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```\n\$ cagepool (.*)\n((?:.*\n)*?)```", PAGE)
SCRIPTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "printed"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_prints_what_the_page_shows(command: str, printed: str) -> None:
    done = cagepool(*command.split())

    shown = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
    assert shown == printed.splitlines()


def test_the_script_of_the_page_prints_two_scores() -> None:
    (script,) = SCRIPTS

    assert python("-c", script).stdout.count("Score(mean=-") == 2
