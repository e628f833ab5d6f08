"""Learning curves of one or several runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    MaxNLocator,
    NullLocator,
    StrMethodFormatter,
)

from cagepool.report.colours import series, stand_in
from cagepool.report.run_data import Folder
from cagepool.report.svg import drawing
from cagepool.runs import Columns
from cagepool.types import Float64s

POINTS = 300  # more cannot be told apart in a plot of this size
TICKS = (0, -5, -10, -20, -50, -100, -200, -500, -1000)  # of the bent axis


@dataclass(frozen=True)
class Panel:
    """A small plot of one column of the metrics."""

    column: str
    title: str
    note: str


@dataclass(frozen=True)
class Plot:
    """A finished plot with its caption."""

    title: str
    note: str
    svg: Markup


PANELS = (
    Panel("entropy", "Entropy", "of the policy; 0 is a settled one"),
    Panel("kl", "KL divergence", "between old and new policy, an update"),
    Panel("explained_variance", "Explained variance", "of returns by the critic; 1 is all"),
    Panel("policy_loss", "Policy loss", "clipped surrogate"),
    Panel("value_loss", "Value loss", "of the critic"),
    Panel("clip_fraction", "Clipped samples", "share whose ratio left the clip range"),
    Panel("gradient_norm", "Gradient norm", "before clipping"),
    Panel("learning_rate", "Learning rate", "as scheduled"),
    Panel("staleness", "Staleness", "updates between collection and use"),
    Panel("compliance", "Compliance", "share of fixes that follow the order"),
    Panel("coverage", "Coverage", "share of steps under threat with a fix"),
    Panel("wasted_fixes", "Wasted fixes", "while no host is threatened"),
)


def return_plot(folders: Sequence[Folder]) -> Markup:
    """Return against episodes: mean, spread, and checks on other seeds with their errors."""
    label = "Return against episodes for " + ", ".join(folder.name for folder in folders)
    with drawing(label, 760, 350) as made:
        for number, folder in enumerate(folders):
            _draw_returns(made.axes, folder, number)
        _bend(made.axes, folders)
        _count_episodes(made.axes)
        made.axes.set_ylabel("return of an episode")
    return made.svg


def panels(folders: Sequence[Folder]) -> list[Plot]:
    """A small plot of each column that any of the runs has values for."""
    shown = [panel for panel in PANELS if any(_has(f.metrics, panel.column) for f in folders)]
    return [Plot(panel.title, panel.note, _panel_plot(folders, panel)) for panel in shown]


def thinned(columns: Columns, names: Sequence[str], points: int = POINTS) -> list[Float64s]:
    """Columns with at most so many rows, each the mean of neighbours; rows without a value go."""
    table = np.array([columns[name] for name in names], np.float64)
    table = table[:, ~np.isnan(table).any(axis=0)]
    groups = np.array_split(table, min(points, max(table.shape[1], 1)), axis=1)
    return list(np.stack([group.mean(axis=1) for group in groups if group.size], axis=1))


def spread(columns: Columns, points: int = POINTS) -> tuple[Float64s, Float64s, Float64s]:
    """Episodes, mean return and standard deviation of single episodes, thinned.

    The deviation of neighbours taken together is that of their episodes around the common mean.
    """
    moments = {
        "episodes": columns["episodes"],
        "mean": columns["return_mean"],
        "square": [m**2 + s**2 for m, s in _pairs(columns)],
    }
    episodes, mean, square = thinned(moments, list(moments), points)
    return episodes, mean, np.sqrt(np.maximum(square - mean**2, 0))


def _pairs(columns: Columns) -> "zip[tuple[float, float]]":
    return zip(columns["return_mean"], columns["return_std"], strict=True)


def _has(columns: Columns, name: str) -> bool:
    return bool(np.nan_to_num(columns.get(name, [])).any())


def _draw_returns(axes: Axes, folder: Folder, number: int) -> None:
    colour = stand_in(series(number))
    if _has(folder.metrics, "return_mean"):
        episodes, mean, deviation = spread(folder.metrics)
        band = (mean - deviation, mean + deviation)
        axes.fill_between(episodes, *band, color=colour, alpha=0.16, linewidth=0)
        axes.plot(episodes, mean, color=colour)
    if _has(folder.checks, "score"):
        names = ["episodes", "score", "standard_error"]
        episodes, score, error = thinned(folder.checks, names, points=60)
        axes.errorbar(
            episodes,
            score,
            error,
            fmt="o",
            markersize=3.6,
            color=colour,
            markerfacecolor=stand_in("surface"),
            elinewidth=1,
            zorder=3,
        )


def _bend(axes: Axes, folders: Sequence[Folder]) -> None:
    """Squeeze an axis on which the start would leave no room for the end."""
    means = np.concatenate([np.array(f.metrics.get("return_mean", [])) for f in folders])
    means = means[np.isfinite(means)]
    if not means.size or means.min() > -60 or means.max() > 0 or means.min() > 4 * means.max():
        return
    low, _ = axes.get_ylim()
    axes.set_yscale("symlog", linthresh=10, linscale=0.6)
    axes.set_ylim(low, 0)
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))


def _panel_plot(folders: Sequence[Folder], panel: Panel) -> Markup:
    with drawing(f"{panel.title} against episodes", 240, 130) as made:
        for number, folder in enumerate(folders):
            if _has(folder.metrics, panel.column):
                points = thinned(folder.metrics, ["episodes", panel.column], points=150)
                made.axes.plot(*points, color=stand_in(series(number)), linewidth=1.2)
        made.axes.yaxis.set_major_locator(MaxNLocator(4))
        _count_episodes(made.axes, label=False)
    return made.svg


def _count_episodes(axes: Axes, *, label: bool = True) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(6 if label else 4))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if label:
        axes.set_xlabel("episodes")
