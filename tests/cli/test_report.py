"""`cagepool report`, as a user calls it."""

from pathlib import Path

from tests.cli.command import cagepool
from tests.report import run_folders


def test_the_report_of_a_run_is_written_to_its_folder_and_its_path_printed(tmp_path: Path) -> None:
    run = run_folders.trained(tmp_path / "run")
    done = cagepool("report", str(run))
    assert done.stderr == ""
    assert done.stdout == f"{run}/report.html\n"
    assert (run / "report.html").read_text().startswith("<!doctype html>")


def test_the_report_of_several_runs_is_written_to_the_given_file(tmp_path: Path) -> None:
    runs = [run_folders.trained(tmp_path / name, seed=5) for name in ("one", "two")]
    out = tmp_path / "both.html"
    done = cagepool("report", *map(str, runs), "--out", str(out))
    assert done.stdout == f"{out}\n"
    assert "2 runs compared" in out.read_text()


def test_a_folder_that_is_not_a_run_is_refused_in_one_sentence(tmp_path: Path) -> None:
    done = cagepool("report", str(tmp_path))
    assert done.returncode == 2
    assert (
        done.stderr == f"cagepool: a run must be a folder with config.json, {tmp_path} has none\n"
    )
