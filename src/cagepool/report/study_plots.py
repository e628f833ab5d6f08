"""Plots of the page about a study: intervals, profiles, curves with bands."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    LogLocator,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
    StrMethodFormatter,
)

from cagepool.report.plots import SYMLOG_TICKS
from cagepool.report.svg import SERIES_COUNT, SvgPlot, color, series_name, svg_plot
from cagepool.runs.study_schema import Curve, EditionResults, ResultsFile
from cagepool.types import Float64s

ROW_HEIGHT = 26  # pixels
DASHES: tuple[tuple[float, ...], ...] = ((), (4, 2), (1, 1.5), (6, 2, 1, 2))
"""Dashes and gaps in widths of the line: the first round of colors is solid."""
SYMLOG_RATIO = 4  # worst over best score above which the axis is compressed
MARGIN = 1.5  # factor between extreme means and the ends of a logarithmic axis
TOTAL = "total of the nine cells"


class Caption(NamedTuple):
    """Words of a plot."""

    name: str  # of the file
    title: str
    note: str


class Quantity(NamedTuple):
    """What curves show."""

    label: str
    scale: Callable[[Axes, Sequence[Curve]], None]


@dataclass(frozen=True)
class Key:
    """Look of the line of a setting, in plots and legends."""

    name: str
    series: str  # CSS variable of the color
    dashes: tuple[float, ...]  # empty: solid

    @property
    def color(self) -> str:
        """Color for Matplotlib."""
        return color(self.series)

    @property
    def line(self) -> dict[str, Any]:
        """Arguments of Matplotlib for a line that legends name."""
        style = (0, self.dashes) if self.dashes else "solid"
        return {"color": self.color, "linestyle": style, "label": _escape(self.name)}


@dataclass(frozen=True)
class StudyPlot:
    """A plot with its caption, on the page and as a file."""

    name: str  # of the file
    title: str
    note: str
    svg: Markup
    document: str  # with a legend


def study_keys(study: ResultsFile) -> dict[str, Key]:
    """Looks of the settings that have results, the same in all plots of the study."""
    return _keys(curve.setting for curve in study.returns)


def study_curves(study: ResultsFile) -> list[StudyPlot]:
    """All plots along the trainings."""
    keys = study_keys(study)
    band = "Mean over seeds with its 95 % interval"
    drawn = []
    if study.milestones:
        title = "Total at milestones"
        note = f"{band}; the policy of that moment plays the official games."
        drawn = [
            curve_plot(
                study.milestones,
                Caption(f"milestones-{axis}", title, note),
                Quantity(TOTAL, _compress),
                keys=keys,
                axis=axis,
            )
            for axis in ("steps", "seconds")
        ]
    if study.returns:
        note = f"{band}; training episodes of the exploring policy."
        caption = Caption("returns", "Return in training", note)
        quantity = Quantity("return per episode", _compress)
        drawn.append(curve_plot(study.returns, caption, quantity, keys=keys, axis="episodes"))
    for name, curves, quantity in (
        ("variance", study.gradient_variance,
         Quantity("trace of the covariance over rollouts", _use_logarithm)),
        ("signal", study.gradient_signal,
         Quantity("squared norm of the expected gradient", _use_symmetric_logarithm)),
    ):  # fmt: skip
        if curves:
            note = f"{band}; {quantity.label}, at milestones."
            caption = Caption(f"gradient-{name}", f"Policy gradient: {name}", note)
            drawn.append(curve_plot(curves, caption, quantity, keys=keys, axis="steps"))
    return drawn


def interval_plot(edition: EditionResults, keys: Mapping[str, Key] | None = None) -> StudyPlot:
    """Interquartile means with intervals; small dots are seeds."""
    keys = keys or _edition_keys(edition)
    title = f"Total by setting, edition {edition.edition}"
    with svg_plot(title, 760, 60 + ROW_HEIGHT * len(edition.settings)) as plot:
        axes = plot.axes
        for row, setting in enumerate(edition.settings):
            found, look = setting.statistics["iqm"], keys[setting.name].color
            shifts = np.linspace(-0.2, 0.2, len(setting.totals))
            axes.plot(
                setting.totals, row + shifts, ".", color=color("muted"), alpha=0.5, markersize=4
            )
            axes.plot([found.low, found.high], [row, row], color=look, linewidth=4)
            axes.plot(found.estimate, row, "o", color=look, markersize=8,
                      markeredgecolor=color("surface"))  # fmt: skip
        axes.set_yticks(
            range(len(edition.settings)), [_escape(one.name) for one in edition.settings]
        )
        axes.set_ylim(len(edition.settings) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.set_xlabel(TOTAL)
    note = "Interquartile mean over seeds with its 95 % interval; small dots are seeds."
    return _finish(plot, Caption(f"intervals-{edition.edition}", title, note))


def profile_plot(edition: EditionResults, keys: Mapping[str, Key] | None = None) -> StudyPlot:
    """Performance profiles; arguments as of `interval_plot`."""
    keys = keys or _edition_keys(edition)
    title = f"Performance profiles, edition {edition.edition}"
    with svg_plot(title, 760, 330) as plot:
        for setting in edition.settings:
            key = keys[setting.name]
            low, high = setting.profile_band
            plot.axes.fill_between(
                edition.thresholds, low, high, color=key.color, alpha=0.1, linewidth=0
            )
            plot.axes.plot(edition.thresholds, setting.profile, **key.line)
        plot.axes.set_xlabel(TOTAL)
        plot.axes.set_ylabel("share of runs above")
        plot.axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    note = "Share of runs with a higher total, with its pointwise 95 % band: higher is better."
    return _finish(plot, Caption(f"profiles-{edition.edition}", title, note))


def curve_plot(
    curves: Sequence[Curve],
    caption: Caption,
    quantity: Quantity,
    *,
    keys: Mapping[str, Key],
    axis: str,
) -> StudyPlot:
    """Means over seeds with their bands, against episodes, steps or seconds."""
    caption = caption._replace(title=f"{caption.title} against {axis}")
    with svg_plot(caption.title, 760, 330) as plot:
        for curve in curves:
            places: list[float] = getattr(curve, axis)
            key = keys[curve.setting]
            plot.axes.fill_between(
                places, curve.low, curve.high, color=key.color, alpha=0.14, linewidth=0
            )
            marker = "o" if len(places) < 10 else ""
            plot.axes.plot(places, curve.mean, marker=marker, markersize=3.5, **key.line)
        quantity.scale(plot.axes, curves)
        plot.axes.xaxis.set_major_locator(MaxNLocator(6))
        plot.axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        plot.axes.set_xlabel("seconds of training" if axis == "seconds" else axis)
        plot.axes.set_ylabel(quantity.label)
    return _finish(plot, caption)


def _escape(name: str) -> str:
    """A name that Matplotlib does not read as a formula."""
    return name.replace("$", r"\$")


def _finish(plot: SvgPlot, caption: Caption) -> StudyPlot:
    return StudyPlot(*caption, plot.svg, plot.document)


def _keys(names: Iterable[str]) -> dict[str, Key]:
    return {
        name: Key(name, series_name(number), DASHES[number // SERIES_COUNT % len(DASHES)])
        for number, name in enumerate(names)
    }


def _edition_keys(edition: EditionResults) -> dict[str, Key]:
    return _keys(setting.name for setting in edition.settings)


def _compress(axes: Axes, curves: Sequence[Curve]) -> None:
    """Use a symlog axis where poor early scores would flatten the rest."""
    means = _means(curves)
    if means.max() >= 0 or means.min() > SYMLOG_RATIO * means.max():
        return
    low = means.min() * 1.2
    axes.set_yscale("symlog", linthresh=10, linscale=0.6)
    axes.set_ylim(low, means.max() / 1.5)
    axes.yaxis.set_major_locator(FixedLocator(SYMLOG_TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))


def _use_logarithm(axes: Axes, curves: Sequence[Curve]) -> None:
    """Use a logarithmic axis for positive means; bands below 0 end at the edge."""
    means = _means(curves)
    if means.min() <= 0:
        return
    axes.set_yscale("log")
    axes.set_ylim(means.min() / MARGIN, means.max() * MARGIN)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _use_symmetric_logarithm(axes: Axes, curves: Sequence[Curve]) -> None:
    """Use an axis that is logarithmic on both sides of 0, and linear up to typical means."""
    typical = float(np.median(np.abs(_means(curves))))
    if typical == 0:
        return
    linear = 10.0 ** math.floor(math.log10(typical))
    axes.set_yscale("symlog", linthresh=linear, linscale=0.5)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _means(curves: Sequence[Curve]) -> Float64s:
    return np.concatenate([curve.mean for curve in curves])
