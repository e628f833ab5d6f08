"""Plots of the page about a study: intervals, profiles, curves with bands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
    StrMethodFormatter,
)

from cagepool.report.plots import SYMLOG_TICKS
from cagepool.report.svg import SERIES_COUNT, SvgPlot, color, series_color, svg_plot
from cagepool.runs.study_schema import Curve, EditionResults, ResultsFile

ROW_HEIGHT = 26  # pixels
DASHES = ("solid", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))  # after each round of colors
SYMLOG_RATIO = 4  # worst over best score above which the axis is compressed


class Caption(NamedTuple):
    """Words of a plot."""

    name: str  # of the file
    title: str
    note: str


@dataclass(frozen=True)
class StudyPlot:
    """A plot with its caption, on the page and as a file."""

    name: str  # of the file
    title: str
    note: str
    svg: Markup
    document: str


def study_curves(study: ResultsFile) -> list[StudyPlot]:
    """All plots along the trainings."""
    band = "Mean over seeds with its 95 % interval"
    drawn = []
    if study.milestones:
        title = "Total at milestones"
        note = f"{band}; the policy of that moment plays the official games."
        drawn = [
            curve_plot(study.milestones, Caption(f"milestones-{axis}", title, note), axis=axis)
            for axis in ("steps", "seconds")
        ]
    if study.returns:
        note = f"{band}; training episodes of the exploring policy."
        caption = Caption("returns", "Return in training", note)
        drawn.append(
            curve_plot(study.returns, caption, axis="episodes", label="return per episode")
        )
    for name, curves, what in (
        ("variance", study.gradient_variance, "trace of the covariance over rollouts"),
        ("signal", study.gradient_signal, "squared norm of the expected gradient"),
    ):
        if curves:
            note = f"{band}; {what}, at milestones."
            caption = Caption(f"gradient-{name}", f"Policy gradient: {name}", note)
            drawn.append(curve_plot(curves, caption, axis="steps", label=what))
    return drawn


def interval_plot(edition: EditionResults) -> StudyPlot:
    """Interquartile means with intervals; small dots are seeds."""
    title = f"Total by setting, edition {edition.edition}"
    with svg_plot(title, 760, 60 + ROW_HEIGHT * len(edition.settings)) as plot:
        axes = plot.axes
        for row, setting in enumerate(edition.settings):
            found = setting.statistics["iqm"]
            shifts = np.linspace(-0.2, 0.2, len(setting.totals))
            axes.plot(
                setting.totals, row + shifts, ".", color=color("muted"), alpha=0.5, markersize=4
            )
            axes.plot([found.low, found.high], [row, row], color=series_color(row), linewidth=4)
            axes.plot(found.estimate, row, "o", color=series_color(row), markersize=8,
                      markeredgecolor=color("surface"))  # fmt: skip
        axes.set_yticks(range(len(edition.settings)), [one.name for one in edition.settings])
        axes.set_ylim(len(edition.settings) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.set_xlabel("total of the nine cells")
    note = "Interquartile mean over seeds with its 95 % interval; small dots are seeds."
    return _finish(plot, Caption(f"intervals-{edition.edition}", title, note))


def profile_plot(edition: EditionResults) -> StudyPlot:
    """Performance profiles."""
    title = f"Performance profiles, edition {edition.edition}"
    with svg_plot(title, 760, 330) as plot:
        for number, setting in enumerate(edition.settings):
            look = series_color(number)
            low, high = setting.profile_band
            plot.axes.fill_between(
                edition.thresholds, low, high, color=look, alpha=0.1, linewidth=0
            )
            plot.axes.plot(
                edition.thresholds, setting.profile, color=look, linestyle=_dashes(number)
            )
        plot.axes.set_xlabel("total of the nine cells")
        plot.axes.set_ylabel("share of runs above")
        plot.axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    note = "Share of runs with a higher total, with its pointwise 95 % band: higher is better."
    return _finish(plot, Caption(f"profiles-{edition.edition}", title, note))


def curve_plot(
    curves: Sequence[Curve], caption: Caption, *, axis: str, label: str = "total of the nine cells"
) -> StudyPlot:
    """Means over seeds with their bands, against episodes, steps or seconds."""
    caption = caption._replace(title=f"{caption.title} against {axis}")
    with svg_plot(caption.title, 760, 330) as plot:
        for number, curve in enumerate(curves):
            places: list[float] = getattr(curve, axis)
            look = series_color(number)
            plot.axes.fill_between(
                places, curve.low, curve.high, color=look, alpha=0.14, linewidth=0
            )
            marker = "o" if len(places) < 10 else ""
            plot.axes.plot(
                places, curve.mean, color=look, linestyle=_dashes(number), marker=marker,
                markersize=3.5,
            )  # fmt: skip
        _compress(plot.axes, curves)
        plot.axes.xaxis.set_major_locator(MaxNLocator(6))
        plot.axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        plot.axes.set_xlabel("seconds of training" if axis == "seconds" else axis)
        plot.axes.set_ylabel(label)
    return _finish(plot, caption)


def _finish(plot: SvgPlot, caption: Caption) -> StudyPlot:
    return StudyPlot(*caption, plot.svg, plot.document)


def _dashes(number: int) -> "str | tuple[float, Sequence[float]]":
    return DASHES[number // SERIES_COUNT % len(DASHES)]


def _compress(axes: Axes, curves: Sequence[Curve]) -> None:
    """Use a symlog axis where poor early scores would flatten the rest."""
    means = np.concatenate([curve.mean for curve in curves])
    if means.max() >= 0 or means.min() > SYMLOG_RATIO * means.max():
        return
    low = means.min() * 1.2
    axes.set_yscale("symlog", linthresh=10, linscale=0.6)
    axes.set_ylim(low, means.max() / 1.5)
    axes.yaxis.set_major_locator(FixedLocator(SYMLOG_TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
