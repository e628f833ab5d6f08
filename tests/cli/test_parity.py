"""`cagepool parity`; the games themselves are played by the tests marked parity."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cagepool.cli import parity as command
from cagepool.cli.main import run
from cagepool.parity import (
    Cell,
    CellResult,
    Mismatch,
    ParityConfig,
    ParityResult,
    RecordedEpisode,
)
from cagepool.scenarios import CAGE2
from tests.cli.command import cagepool

SCENARIOS = Path(__file__).parents[1] / "golden" / "scenarios"
CLEAN = CellResult(episodes=9, steps=900, set_aside=1)
WRONG = CellResult(
    episodes=10,
    steps=1000,
    mismatches=[Mismatch(3, step, "s_ot[0]", "1", "0") for step in range(30)],
)


@pytest.fixture
def _result(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Result of each cell, given as parameter; nothing is played."""

    def play_nothing(
        _config: ParityConfig,
        cells: Sequence[Cell],
        _report: Callable[[RecordedEpisode], None],
    ) -> ParityResult:
        return ParityResult("2.1", dict.fromkeys(cells, request.param))

    monkeypatch.setattr(command, "run_parity", play_nothing)


@pytest.mark.parametrize("_result", [CLEAN], indirect=True)
@pytest.mark.usefixtures("_result")
def test_games_that_agree_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["parity", "--seed", "3"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "CybORG, edition 2.1, against its native replay; blue mixed, seed 3"
    rows = [line.split() for line in lines]
    for red in ("B_lineAgent", "RedMeanderAgent", "SleepAgent", "given"):
        for green in ("off", "on"):
            assert [red, green, "1", "9", "900", "1", "0"] in rows


@pytest.mark.parametrize("_result", [CLEAN], indirect=True)
@pytest.mark.usefixtures("_result")
def test_a_row_sums_over_the_networks_that_its_red_can_play(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = [str(SCENARIOS / f"{name}.yaml") for name in ("tiny", "odd_gates", "renamed_twin")]
    assert run(["parity", "--scenario", *files, "--green", "off"]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["B_lineAgent", "off", "1", "9", "900", "1", "0"] in rows
    assert ["RedMeanderAgent", "off", "3", "27", "2700", "3", "0"] in rows
    assert ["given", "off", "3", "27", "2700", "3", "0"] in rows


@pytest.mark.parametrize("_result", [WRONG], indirect=True)
@pytest.mark.usefixtures("_result")
def test_mismatches_are_printed_and_the_exit_code_is_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as ended:
        run(["parity", "--red", "b_line", "--green", "on"])

    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 1
    place = "cage2, B_lineAgent, green on, episode 3, step 7, s_ot[0]"
    assert f"{place}: CybORG 1, native 0" in lines
    assert lines[-1] == "and 10 more"


@pytest.mark.parametrize("_result", [WRONG], indirect=True)
@pytest.mark.usefixtures("_result")
def test_json_has_the_same_counts(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["parity", "--json", "--blue", "decoys", "--red", "b_line", "--green", "on"])

    read = json.loads(capsys.readouterr().out)
    assert (read["edition"], read["blue"], read["seed"]) == ("2.1", "decoys", 0)
    counts = {"episodes": 10, "steps": 1000, "set_aside": 0, "mismatches": 30}
    cell = {"scenario": "cage2", "scenario_hash": CAGE2.hash, "red": "B_lineAgent", "green": True}
    assert read["cells"] == [{**cell, **counts}]
    assert len(read["first_mismatches"]) == 20
    first = {"episode": 3, "step": 0, "field": "s_ot[0]", "cyborg": "1", "native": "0"}
    assert read["first_mismatches"][0] == {**cell, **first}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--red", "Foo"), "--red must be one or more of B_lineAgent, .*; got 'Foo'"),
        (("--blue", "Foo"), "--blue must be one of mixed, sleep, .*; got 'Foo'"),
        (("--edition", "3"), "--edition must be one of 2.1, leaderboard, auto; got '3'"),
        (("--episodes", "0"), "--episodes must be at least 1, got 0"),
        (("--out", "no/such/a.npz"), "--out must be in a folder that exists, got no/such/a.npz"),
        (("--generate", "-1"), "--generate must be at least 0, got -1"),
        (("--scenario", "no/such"), ".*no/such.*"),
        (
            ("--scenario", f"{SCENARIOS}/odd_gates.yaml", "--red", "b_line"),
            "--red must be able to play a scenario, but B_lineAgent .*",
        ),
        (
            ("--scenario", str(SCENARIOS), "--out", "a.npz"),
            "--out must be of one scenario, as a trace is, got 23 scenarios",
        ),
        (("--checkout", "/"), "a checkout of CAGE Challenge 2 must hold CybORG, got /"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_invalid_value_is_refused_in_one_sentence(
    arguments: tuple[str, ...], sentence: str
) -> None:
    done = cagepool("parity", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"cagepool: {sentence}\n", done.stderr)
