"""`cagepool play`, as a user calls it, and as docs/playing.md shows it."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.command import cagepool, python

FEW = ("--episodes", "20")
PAGE = (Path(__file__).parents[2] / "docs" / "playing.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```\n\$ cagepool (.*)\n((?:(?!```).*\n)+)```", PAGE)  # with their output
SCRIPTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_play_prints_one_row_per_red_and_the_total() -> None:
    done = cagepool("play", *FEW)

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "react-restore, edition 2.1, 20 episodes against each red, seed 0" in lines
    rows = {line.split()[0]: line for line in lines if line.startswith("  ") and line.strip()}
    assert rows.keys() == {"red", "B_lineAgent", "RedMeanderAgent", "SleepAgent"}
    assert rows["red"].split() == ["red", "30", "steps", "50", "steps", "100", "steps"]
    assert rows["SleepAgent"].split()[1:] == ["0.00", "±", "0.00"] * 3
    assert lines[-1].startswith("total of the nine cells: -")
    assert max(map(len, lines)) <= 80


def test_play_prints_json_that_agrees_with_the_table() -> None:
    settings = ("play", *FEW, "--edition", "leaderboard", "--seed", "4", "--blue", "random")
    read = json.loads(cagepool(*settings, "--json").stdout)
    table = cagepool(*settings).stdout

    assert [read[key] for key in ("blue", "edition", "episodes")] == ["random", "leaderboard", 20]
    for cell in [*read["scores"], read["total"]]:
        assert f"{cell['mean']:.2f} ± {cell['standard_error']:.2f}" in table
    assert len(read["scores"]) == 9


def test_play_prints_no_total_for_some_of_the_reds() -> None:
    done = cagepool("play", *FEW, "--red", "b_line", "SleepAgent", "--max-steps", "40")

    assert "B_lineAgent" in done.stdout
    assert "RedMeanderAgent" not in done.stdout
    assert "30 steps" in done.stdout
    assert "40 steps" in done.stdout
    assert "nine cells" not in done.stdout


def test_verbose_prints_a_game_step_by_step() -> None:
    settings = ("play", *FEW, "--red", "meander", "--blue", "react-remove", "--green", "--verbose")
    done = cagepool(*settings)
    game = json.loads(cagepool(*settings, "--json").stdout)["games"]["RedMeanderAgent"]

    steps = [line for line in done.stdout.splitlines() if line[:3].strip().isdigit()]
    assert [int(line.split()[0]) for line in steps] == list(range(100))
    assert steps[0].split() == ["0", "Monitor", "ok", "DiscoverRemoteSystems", "User", "ok", "0.0"]
    for line, turn in zip(steps, game, strict=True):
        assert all(word in line for word in (turn["blue"], turn["red"], f"{turn['reward']:.1f}"))
    assert "detected; blue sees" in done.stdout
    assert "green scans" in done.stdout
    assert f"total reward: {sum(turn['reward'] for turn in game):.1f}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--red", "Foo"), "--red must be one or more of B_lineAgent, .*; got 'Foo'"),
        (("--red",), "--red must be one or more of .*; got none"),
        (("--blue", "Foo"), "a defender must be .* or one of sleep, random, .*; got 'Foo'"),
        (("--edition", "3"), "--edition must be one of 2.1, leaderboard; got '3'"),
        (("--episodes", "1"), "--episodes must be from 2, .* got 1"),
        (("--max-steps", "0"), "--max-steps must be from 1 to 65535, got 0"),
        (("--seed", "-1"), "--seed must be at least 0, got -1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_invalid_value_is_refused_in_one_sentence(
    arguments: tuple[str, ...], sentence: str
) -> None:
    done = cagepool("play", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"cagepool: {sentence}\n", done.stderr)


@pytest.mark.parametrize(("command", "printed"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_prints_what_the_page_shows(command: str, printed: str) -> None:
    done = cagepool(*command.split())

    lines = "".join(f"{line.rstrip()}\n" for line in (done.stdout + done.stderr).splitlines())
    # An ellipsis on a line of its own stands for lines that the page leaves out.
    pattern = ".*\n".join(map(re.escape, re.split(r"(?<=\n) *…\n", printed)))
    assert re.fullmatch(pattern, lines, re.DOTALL)


def test_the_script_of_the_page_prints_two_scores() -> None:
    (script,) = SCRIPTS

    assert python("-c", script).stdout.count("Score(mean=-") == 2
