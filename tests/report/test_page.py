"""Content of the run page, and refusal of damaged run_folders."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cagepool.report import write_report
from cagepool.report.data import short_names
from tests.report import run_folders
from tests.scenarios.files import sample


def render_page(*runs: Path) -> str:
    out = runs[0] / "report.html"
    write_report(runs, out)
    return out.read_text(encoding="utf-8")


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_page_names_no_other_file_and_no_address(tmp_path: Path) -> None:
    page = render_page(run_folders.evaluated(tmp_path / "run"))
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert {link[:1] for link in links if link != "data:,"} == {"#"}
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_names_and_settings_of_runs_are_escaped(tmp_path: Path) -> None:
    run = run_folders.evaluated(tmp_path / "<b>run</b>", order="</script><script>alert(1)</script>")
    games = json.loads((run / "games.json").read_text())["games"]
    change(run / "games.json", games=[{**games[0], "title": "</script><i>"}])
    page = render_page(run)
    assert "<b>run</b>" not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page


def test_a_missing_section_names_the_command_that_fills_it(tmp_path: Path) -> None:
    run = run_folders.trained(tmp_path / "run")
    lines = re.findall(r'<p class="missing">(.*)</p>', render_page(run))
    command = f"cagepool evaluate {run}"
    assert len(lines) == 4  # scores, replay, loss, actions
    assert all(command in line for line in lines)


def test_a_run_of_another_environment_is_not_sent_to_an_evaluation(tmp_path: Path) -> None:
    page = render_page(run_folders.trained(tmp_path / "run", env="CartPole-v1"))
    assert "plays CartPole-v1, for which only the training is shown" in page
    assert "cagepool evaluate" not in page


def test_a_run_without_an_update_gets_a_page_too(tmp_path: Path) -> None:
    run = run_folders.trained(tmp_path / "run")
    (run / "metrics.csv").write_text("update,episodes\n")
    (run / "evaluations.csv").unlink()
    assert f"cagepool train --resume\n    {run}" in render_page(run)


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("evaluation.json", "{", "evaluation.json is damaged: input data was truncated"),
        ("evaluation.json", "[]", "evaluation.json is damaged: expected `object`, got `array`"),
        ("games.json", '{"format": 2}', "games.json has format 2, this cagepool reads up to 1"),
        (
            "games.json",
            '{"format": 1}',
            "games.json is damaged: object missing required field `games`",
        ),
        ("config.json", "{}", "config.json is damaged: object missing required field `format`"),
        ("metrics.csv", "update\nmany\n", "metrics.csv is damaged"),
    ],
)
def test_a_damaged_folder_is_refused_and_the_old_page_stays(
    tmp_path: Path, file: str, text: str, sentence: str
) -> None:
    run = run_folders.trained(tmp_path / "run")
    (run / "report.html").write_text("old")
    (run / file).write_text(text)
    with pytest.raises(ValueError, match=sentence):
        render_page(run)
    assert (run / "report.html").read_text() == "old"


def test_an_evaluation_that_lacks_a_cell_is_refused(tmp_path: Path) -> None:
    run = run_folders.evaluated(tmp_path / "run")
    change(run / "evaluation.json", scores=[{"red": "B_lineAgent"}])
    with pytest.raises(ValueError, match=r"required field `length` - at `\$\.scores\[0\]`"):
        render_page(run)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"turns": []}, "must have a step in every game"),
        (
            {"total": "0"},
            r"expected `float`, got `str` - at `\$\.games\[0\]\.total`",
        ),
    ],
    ids=["no steps", "text"],
)
def test_games_that_cannot_be_drawn_are_refused(
    tmp_path: Path, wrong: dict[str, Any], sentence: str
) -> None:
    run = run_folders.evaluated(tmp_path / "run")
    games = json.loads((run / "games.json").read_text())
    games["games"][0].update(wrong)
    (run / "games.json").write_text(json.dumps(games))
    with pytest.raises(ValueError, match=sentence):
        render_page(run)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"zones": {"User": ["User0"]}}, "must have each host of tiny in one zone"),
        ({"foothold": "Printer"}, "must have each host of tiny in one zone"),
        ({"links": [["User0", "Printer"]]}, "must have each host of tiny in one zone"),
        ({"hosts": [], "zones": {}}, "must have each host of tiny in one zone"),
    ],
    ids=["zone", "foothold", "link", "empty"],
)
def test_a_scenario_that_cannot_be_drawn_is_refused(
    tmp_path: Path, wrong: dict[str, Any], sentence: str
) -> None:
    run = run_folders.with_scenarios(tmp_path / "run", sample("tiny"), steps=1)
    render_page(run)
    games = json.loads((run / "games.json").read_text())
    games["games"][0]["scenario"].update(wrong)
    (run / "games.json").write_text(json.dumps(games))
    with pytest.raises(ValueError, match=sentence):
        render_page(run)


def test_a_run_given_twice_is_refused(tmp_path: Path) -> None:
    run = run_folders.trained(tmp_path / "run")
    with pytest.raises(ValueError, match="each run must be given once"):
        render_page(run, tmp_path / "." / "run")


def test_a_page_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    run = run_folders.trained(tmp_path / "run")
    with pytest.raises(ValueError, match="must be a writable file"):
        write_report([run], tmp_path / "nowhere" / "page.html")
    assert not list(tmp_path.rglob("*.html*"))


def test_no_run_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one run, got none"):
        write_report([], tmp_path / "page.html")


def test_runs_of_one_name_are_named_with_their_parent_folders() -> None:
    paths = [Path("/a/x/run"), Path("/b/y/run")]
    assert short_names(paths) == ["x/run", "y/run"]
    assert short_names(paths[:1]) == ["run"]


def test_why_training_to_an_order_ended_is_on_the_page(tmp_path: Path) -> None:
    run = run_folders.trained(tmp_path / "run")
    assert "Workflow order" not in render_page(run)
    outcome = {"format": 1, "order": "a>b", "outcome": "passed", "reason": "it is <kept>",
               "mean": -14.5, "standard_error": 0.25, "episodes": 200, "compliance": 0.9612,
               "coverage": None, "decisions": 20.5, "wasted_fixes": 0.5,
               "passes": True}  # fmt: skip
    (run / "workflow.json").write_text(json.dumps(outcome))
    page = render_page(run)
    assert "passed: it is &lt;kept&gt;" in page
    assert "0.961" in page
    assert "undefined" in page
