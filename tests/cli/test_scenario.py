"""`cagepool scenario`: which scenarios can be played, random scenarios, suites."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from cagepool import Scenario
from cagepool.cli.main import run
from tests.scenarios.files import FOLDER, SAMPLES


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["scenario", *arguments]) == 0
    return capsys.readouterr().out


def test_a_single_file_is_shown_with_its_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "check", str(FOLDER / "entry_user3.yaml"))
    rows = {cells[0]: cells for line in text.splitlines() if (cells := line.split())}
    assert rows["Op_Host0"] == ["Op_Host0", "Operational,", "gated", "Gateway"]
    assert rows["User3,"][:2] == ["User3,", "entry"]
    assert "B_lineAgent needs the host User0 in Agents.Red.INT.Hosts" in text
    assert "RedMeanderAgent can play" in text


def test_a_folder_is_listed_with_the_reds_that_can_play(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "check", str(FOLDER))
    assert all(name in text for name in SAMPLES)
    assert "B_lineAgent can play 20 of 23" in text
    assert "  odd_gates: B_lineAgent must be able to scan Enterprise2" in text


def test_a_suite_is_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "check", "cage2/entry:test")
    assert text.startswith("100 scenarios of 13 hosts")
    assert "B_lineAgent can play 63 of 100" in text


def test_a_refused_file_is_reported_beside_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("Agents: 7", encoding="utf-8")
    good = str(FOLDER / "tiny.yaml")
    with pytest.raises(SystemExit, match="1"):
        run(["scenario", "check", str(tmp_path), good])
    text = capsys.readouterr().out
    assert "tiny: 6 hosts" in text
    assert "refused: " in text
    assert "bad.yaml: Agents must be a mapping, got 7" in text

    with pytest.raises(SystemExit, match="1"):
        run(["scenario", "check", str(tmp_path), good, "--json"])
    played, refused = json.loads(capsys.readouterr().out)
    assert (played["scenario"], played["hosts"]) == ("tiny", 6)
    assert played["reds"] == {"B_lineAgent": None, "RedMeanderAgent": None, "SleepAgent": None}
    assert refused["refused"].endswith("Agents must be a mapping, got 7")


def test_a_scenario_is_generated_into_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "office.yaml"
    flags = ["--seed", "3", "--users", "4", "4", "--subnets", "2", "5", "--red", "meander"]
    text = printed(capsys, "generate", "--out", str(out), *flags)
    scenario = Scenario.load(out)
    assert scenario == Scenario.generate(3, users=4, subnets=(2, 5), reds=["meander"])
    assert f"office: {len(scenario.hosts)} hosts" in text
    assert run(["scenario", "generate", "--out", str(out)]) == 2
    assert "must be saved to a new file" in capsys.readouterr().err


def test_suites_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cage2/x3: three times the hosts" in printed(capsys, "suites")
    rows = json.loads(printed(capsys, "suites", "--json"))
    assert {row["suite"] for row in rows} >= {"cage2/users@1:train", "cage2/users@1:test"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check"], "check needs a scenario file, a folder or a suite, got none"),
        (["generate"], "--out must be the file to write, got none"),
        (
            ["chek"],
            "action must be one of check, show, generate, suites; got 'chek', did you mean check?",
        ),
        (
            ["generate", "--out", "x.yaml", "--users", "1", "2"],
            "--users must be a number, at least",
        ),
    ],
)
def test_wrong_calls_are_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["scenario", *arguments]) == 2
    assert f"cagepool: {sentence}" in capsys.readouterr().err


def test_a_scenario_is_shown_host_by_host(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "show", str(FOLDER / "odd_gates.yaml"))
    assert "red enters at    User0" in text
    assert "B_lineAgent      cannot play: " in text
    assert "Vault, closed to red for good" in text
    assert "Annex, gated: open while red has a session on one of Enterprise0" in text
    row = next(line for line in text.splitlines() if line.startswith("  EnterpriseKiosk"))
    assert row.split()[1:3] == ["linux_user_host2", "Linux"]
    assert row.endswith("gate key")


@pytest.mark.parametrize("name", ["tiny", "flat", "wide64"])
def test_a_scenario_is_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    source = str(FOLDER / f"{name}.yaml")
    for suffix in ("svg", "png", "html"):
        printed(capsys, "show", source, "--out", str(tmp_path / f"x.{suffix}"))
    image = ElementTree.fromstring((tmp_path / "x.svg").read_text())
    words = {element.text for element in image.iter("{http://www.w3.org/2000/svg}text")}
    assert {*Scenario.load(source).hosts} <= words
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.width > 800
    assert "<svg" in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "show needs one scenario, got 0"),
        (("cage2/users:test",), "show needs one scenario, got 100"),
        (("cage2", "--out", "x.jpeg"), r"out must be a file \*.svg, \*.png or \*.html"),
        (("cage2", "--out", "no/folder/x.svg"), "must be a writable file"),
    ],
)
def test_a_picture_that_cannot_be_made_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert run(["scenario", "show", *arguments]) == 2
    assert re.search(sentence, capsys.readouterr().err)
