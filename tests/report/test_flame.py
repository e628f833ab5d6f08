"""The picture of a profile."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cagepool.bench.profile.clock import Stage
from cagepool.report.flame import COLOURS, boxes, draw_flame


def block(label: str, seconds: float, *parts: Any, stage: str = "other") -> dict[str, Any]:
    return {"label": label, "stage": stage, "seconds": seconds, "calls": 1, "parts": [*parts]}


STEP = block("envs.step", 1.0, block("core.step", 2.0, stage="env step"), stage="transport")
RUN = block("run", 0.5, block("update", 1.5, stage="update"), STEP)
PROFILE = {
    "wall_seconds": 5.0,
    "stages": {"env step": 2.0, "transport": 1.0, "update": 1.5, "other": 0.5},
    "threads": {"main": RUN, "helper": block("helper", 5.0, stage="idle")},
}


def test_every_call_is_under_its_caller_and_as_wide_as_its_time() -> None:
    found = {box.label: box for box in boxes(RUN, 5.0)}
    assert [box.depth for box in found.values()] == [0, 1, 2, 1]
    assert [box.width for box in found.values()] == pytest.approx([1.0, 0.6, 0.4, 0.3])
    inner, outer = found["core.step"], found["envs.step"]
    assert outer.start <= inner.start
    assert inner.start + inner.width <= outer.start + outer.width


def test_neighbours_do_not_overlap() -> None:
    row = sorted((box for box in boxes(RUN, 5.0) if box.depth == 1), key=lambda box: box.start)
    assert all(a.start + a.width <= b.start + 1e-9 for a, b in pairwise(row))


def test_every_stage_has_a_colour_of_its_own() -> None:
    assert {str(stage) for stage in Stage} == COLOURS.keys()
    assert len(set(COLOURS.values())) == len(COLOURS)


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_picture_is_written_and_is_always_the_same(tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    draw_flame(PROFILE, first)
    draw_flame(PROFILE, second)
    assert first.read_bytes() == second.read_bytes()
    if suffix == ".svg":
        text = first.read_text()
        assert all(word in text for word in ("core.step", "update 30.0 %", "helper"))
