"""The page on profiling holds what was measured, and its commands are there."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cagepool.bench.profile.clock import Stage
from cagepool.cli.train import parsed
from cagepool.report.profiles import filled, tables

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "profiling.md").read_text(encoding="utf-8")
MEASURED = {
    file.stem: json.loads(file.read_text()) for file in (ROOT / "benchmarks").glob("profile_*.json")
}


def profile(**stages: float) -> dict[str, Any]:
    return {
        "stages": {name.replace("_", " "): seconds for name, seconds in stages.items()},
        "wall_seconds": sum(stages.values()),
        "steps": 1000,
        "traffic": {"environments": 2, "messages": 4, "message_bytes": 90, "array_bytes": 5},
        "overhead": {
            "slices": 9,
            "looked_into": 3,
            "seconds_per_watched_call": 4.2e-7,
            "counted": 0.0123,
            "by_turns": None,
        },
        "machine": {"commit": "1a2b3c4"},
    }


def test_a_table_gives_time_and_share_of_every_stage() -> None:
    text = tables({"profile_a": profile(env_step=0.5, other=1.5), "profile_b": profile(other=3.0)})
    lines = text.splitlines()
    assert lines[0] == "| microseconds a step (share) | a | b |"
    assert "| env step | 500.00 (25.0 %) |  |" in lines
    assert "| other | 1,500.00 (75.0 %) | 3,000.00 (100.0 %) |" in lines
    assert "| **wall time** | 2,000.00 (100.0 %) | 3,000.00 (100.0 %) |" in lines
    assert "| microseconds a watched call | 0.42 | 0.42 |" in lines
    assert "| overhead by count | 1.23 % | 1.23 % |" in lines
    assert "| overhead by turns | unknown | unknown |" in lines


def test_only_what_is_between_marks_is_replaced() -> None:
    page = "before\n<!-- profiles: profile_a -->\nold\n<!-- end -->\nafter\n"
    text = filled(page, {"profile_a": profile(other=1.0)})
    assert text.startswith("before\n<!-- profiles: profile_a -->\n| micro")
    assert text.endswith("|\n<!-- end -->\nafter\n")
    assert "old" not in text


def test_the_page_holds_what_was_measured() -> None:
    assert filled(PAGE, MEASURED) == PAGE


@pytest.mark.parametrize("name", MEASURED)
def test_what_was_measured_adds_up(name: str) -> None:
    measured = MEASURED[name]
    assert sum(measured["stages"].values()) == pytest.approx(measured["wall_seconds"], rel=0.02)
    assert measured["overhead"]["counted"] < 0.02


def test_the_page_names_every_stage() -> None:
    shown = {str(stage) for stage in Stage} - {"idle", "not looked into"}
    assert all(f"\n| {stage} | " in PAGE for stage in shown)


def test_the_commands_of_the_page_are_understood() -> None:
    trainings = re.findall(r"^cagepool profile .*-- train (.*)$", PAGE, re.MULTILINE)
    assert len(trainings) == 3
    assert all(parsed(flags.split()).run.total_episodes > 0 for flags in trainings)
