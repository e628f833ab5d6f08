"""A profile as a picture: calls under their callers, as wide as the time that they took."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

COLOURS = {
    "policy forward": "#0a66a8",
    "sampling": "#3aa0d8",
    "env step": "#008566",
    "transport": "#e0a100",
    "waiting": "#b9b3a5",
    "true state, compliance": "#7a6200",
    "storing": "#8cc6ea",
    "advantage": "#a8518a",
    "update": "#d55e00",
    "logging": "#5b7083",
    "checks": "#7fb58f",
    "start and end": "#9aa7b4",
    "other": "#d8d8d8",
    "profiler": "#202020",
    "not looked into": "#efe6c8",
    "idle": "#f2f2f2",
}
WIDTH = 9.0  # inches
ROW = 0.32
LEAST = 0.0005  # share of the time below which nothing is drawn
STYLE: Any = {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "cagepool"}


class Box(NamedTuple):
    """A block in its place, in shares of the wall time."""

    label: str
    stage: str
    start: float
    width: float
    depth: int


def boxes(block: Mapping[str, Any], wall: float) -> Iterator[Box]:
    """The block and all its parts, each under its caller; what the caller did itself comes last."""
    return _boxes(block, wall, 0.0, 0)


def _boxes(block: Mapping[str, Any], wall: float, start: float, depth: int) -> Iterator[Box]:
    yield Box(block["label"], block["stage"], start, total(block) / wall, depth)
    for part in sorted(block["parts"], key=total, reverse=True):
        yield from _boxes(part, wall, start, depth + 1)
        start += total(part) / wall


def total(block: Mapping[str, Any]) -> float:
    """Seconds with all that was called from there."""
    return float(block["seconds"]) + sum(map(total, block["parts"]))


def draw_flame(profile: Mapping[str, Any], out: Path) -> None:
    """Draw what `cagepool profile --out` writes, every thread in a part of its own."""
    wall = profile["wall_seconds"]
    drawn = {name: list(boxes(block, wall)) for name, block in profile["threads"].items()}
    rows = [1 + max(box.depth for box in found) for found in drawn.values()]
    with mpl.rc_context(STYLE):
        height = ROW * (sum(rows) + 2 * len(rows)) + 1.1
        figure = Figure((WIDTH, height), layout="constrained")
        plots = figure.subplots(len(drawn), 1, height_ratios=rows, squeeze=False)[:, 0]
        for plot, (name, found) in zip(plots, drawn.items(), strict=True):
            _draw(plot, found)
            plot.set_title(f"{name}: {wall:.2f} s", loc="left", fontsize=9)
        _explain(figure, profile["stages"], wall)
        nothing = {"Date": None} if out.suffix == ".svg" else None
        figure.savefig(out, dpi=150, metadata=nothing)


def _draw(plot: Axes, found: list[Box]) -> None:
    for box in found:
        if box.width < LEAST:
            continue
        colour = COLOURS[box.stage]
        plot.barh(
            -box.depth, box.width, left=box.start, height=0.92, color=colour, edgecolor="white",
            linewidth=0.5,
        )  # fmt: skip
        letters = int(box.width * WIDTH * 14)  # that fit
        if letters > 4:
            label = box.label if len(box.label) <= letters else f"{box.label[: letters - 1]}…"
            plot.text(
                box.start + 0.004, -box.depth, label, va="center", clip_on=True,
                color=_ink(colour), fontsize=7,
            )  # fmt: skip
    plot.set_xlim(0, 1)
    plot.set_yticks([])
    plot.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    for side in ("left", "right", "top"):
        plot.spines[side].set_visible(False)


def _ink(colour: str) -> str:
    """Black or white, whichever can be read on it."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 140 else "white"


def _explain(figure: Figure, stages: Mapping[str, float], wall: float) -> None:
    patches = [
        Patch(color=COLOURS[stage], label=f"{stage} {100 * seconds / wall:.1f} %")
        for stage, seconds in stages.items()
    ]
    figure.legend(handles=patches, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
