"""docs/profiling.md has the measured profiles, and its commands are valid."""

import re
from typing import Any

import pytest

from benchmarks.profiles import PAGE, fill_page, read_profiles, to_markdown
from cagepool._stages import StageTimes
from cagepool.bench.profile import STAGES, Overhead, Profile, Traffic
from cagepool.cli.train import parse_train

TEXT = PAGE.read_text(encoding="utf-8")
MEASURED = read_profiles()


def profile(**stages: Any) -> Profile:
    return Profile(
        kind="step",
        settings={},
        machine={"commit": "1a2b3c4"},
        load_after=0.1,
        busy_elsewhere=None,
        stolen=None,
        environments=2,
        steps=1000,
        wall_seconds=sum(stages.values()),
        stages=stages,
        threads={"main": StageTimes("other", sum(stages.values()), 0)},
        overhead=Overhead(1500, 4.2e-7, 0.0123, 1.0),
        traffic=Traffic(4, 90, None),
    )


def test_a_table_has_time_and_share_of_every_stage() -> None:
    text = to_markdown(
        {"profile_a": profile(env_step=0.5, other=1.5), "profile_b": profile(other=3.0)}
    )
    lines = text.splitlines()
    assert lines[0] == "| microseconds per step (share) | a | b |"
    assert "| env_step | 500.00 (25.0 %) |  |" in lines
    assert "| other | 1,500.00 (75.0 %) | 3,000.00 (100.0 %) |" in lines
    assert "| **wall time** | 2,000.00 (100.0 %) | 3,000.00 (100.0 %) |" in lines
    assert "| microseconds per stage | 0.42 | 0.42 |" in lines
    assert "| overhead | 1.23 % | 1.23 % |" in lines
    assert "| bytes in arrays per step | not counted | not counted |" in lines
    assert "| machine used by other processes | unknown | unknown |" in lines


def test_only_marked_sections_are_replaced() -> None:
    page = "before\n<!-- profiles: profile_a -->\nold\n<!-- end -->\nafter\n"
    text = fill_page(page, {"profile_a": profile(other=1.0)})
    assert text.startswith("before\n<!-- profiles: profile_a -->\n| micro")
    assert text.endswith("|\n<!-- end -->\nafter\n")
    assert "old" not in text


def test_the_page_has_the_measured_profiles() -> None:
    assert fill_page(TEXT, MEASURED) == TEXT, "run `make pages`"


@pytest.mark.parametrize("name", MEASURED)
def test_measured_stages_sum_to_the_wall_time_with_little_overhead(name: str) -> None:
    measured = MEASURED[name]
    assert sum(measured.stages.values()) == pytest.approx(measured.wall_seconds, rel=0.02)
    assert measured.overhead.share < 0.02


def test_the_page_explains_every_stage() -> None:
    listed = set(STAGES) - {"idle", "unsampled"}
    assert all(f"\n| {stage} | " in TEXT for stage in listed)


def test_the_commands_of_the_page_are_valid() -> None:
    trainings = re.findall(r"^cagepool profile .*-- train (.*)$", TEXT, re.MULTILINE)
    assert len(trainings) == 3
    assert all(parse_train(flags.split()).run.total_episodes > 0 for flags in trainings)
