"""Plots of the report: learning curves, a search over orders, and benchmark results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    Formatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    StrMethodFormatter,
)

from cagepool.report.data import Group, RunData, SearchData, Sweep, Training
from cagepool.report.svg import color, series_color, svg_plot
from cagepool.runs import Columns
from cagepool.types import Float64s

LineStyle: TypeAlias = Literal["solid"] | tuple[float, tuple[float, float]]

DASH_LENGTH = 5.0  # in line widths, of curves that cover each other
MAX_POINTS = 300  # per curve: more cannot be distinguished at this size
SYMLOG_TICKS = (0, -5, -10, -20, -50, -100, -200, -500, -1000)
RANKED_ORDERS = 25  # rows of the ranking plot
RANKING_ROW_HEIGHT = 19  # pixels
BAR_ROW_HEIGHT = 21  # pixels
LOG_SCALE_RATIO = 20  # largest over smallest rate above which the axis is logarithmic


@dataclass(frozen=True)
class Panel:
    """Definition of a small plot of one metrics column."""

    column: str
    title: str
    note: str


@dataclass(frozen=True)
class PanelPlot:
    """A rendered panel with its caption."""

    title: str
    note: str
    svg: Markup


PANELS = (
    Panel("shaped_return_mean", "Shaped return", "per episode, by the reward function of the run"),
    Panel("entropy", "Entropy", "of the policy; 0 is deterministic"),
    Panel("kl", "KL divergence", "between old and new policy, per update"),
    Panel("explained_variance", "Explained variance", "of returns by the critic; 1 is all"),
    Panel("policy_loss", "Policy loss", "clipped surrogate"),
    Panel("value_loss", "Value loss", "of the critic"),
    Panel("clip_fraction", "Clip fraction", "share of samples outside the clip range"),
    Panel("gradient_norm", "Gradient norm", "before clipping"),
    Panel("learning_rate", "Learning rate", "as scheduled"),
    Panel("staleness", "Staleness", "updates between collection and use"),
    Panel("compliance", "Compliance", "share of fixes that follow the order"),
    Panel("coverage", "Coverage", "share of steps under threat with a fix"),
    Panel("wasted_fixes_per_episode", "Wasted fixes per episode", "while no host is threatened"),
)


# Learning curves


def return_plot(runs: Sequence[RunData]) -> Markup:
    """Plot return against episodes: training mean and deviation, periodic evaluation and error."""
    label = "Return against episodes for " + ", ".join(run.name for run in runs)
    with svg_plot(label, 760, 350) as plot:
        for run, look in zip(runs, _curve_looks(runs), strict=True):
            _draw_returns(plot.axes, run, look)
        _compress_early_returns(plot.axes, runs)
        _format_episode_axis(plot.axes)
        plot.axes.set_ylabel("return per episode")
    return plot.svg


def panel_plots(runs: Sequence[RunData]) -> list[PanelPlot]:
    """Plot each metrics column that has values in at least one run."""
    present = [panel for panel in PANELS if any(_has_values(r.metrics, panel.column) for r in runs)]
    return [PanelPlot(panel.title, panel.note, _panel_svg(runs, panel)) for panel in present]


def downsample(
    columns: Columns, names: Sequence[str], max_points: int = MAX_POINTS
) -> list[Float64s]:
    """Average neighboring rows until at most `max_points` remain; rows with NaN are dropped."""
    table = np.array([columns[name] for name in names], np.float64)
    table = table[:, ~np.isnan(table).any(axis=0)]
    groups = np.array_split(table, min(max_points, max(table.shape[1], 1)), axis=1)
    return list(np.stack([group.mean(axis=1) for group in groups if group.size], axis=1))


def return_moments(
    columns: Columns, max_points: int = MAX_POINTS
) -> tuple[Float64s, Float64s, Float64s]:
    """Downsampled episodes, mean return and standard deviation of single episodes.

    The deviation of merged rows is that of their episodes around the common mean.
    """
    rows = zip(columns["return_mean"], columns["return_std"], strict=True)
    moments = {
        "episodes": columns["episodes"],
        "mean": columns["return_mean"],
        "square": [mean**2 + deviation**2 for mean, deviation in rows],
    }
    episodes, mean, square = downsample(moments, list(moments), max_points)
    return episodes, mean, np.sqrt(np.maximum(square - mean**2, 0))


def _has_values(columns: Columns, name: str) -> bool:
    return bool(np.nan_to_num(columns.get(name, [])).any())


@dataclass(frozen=True)
class _CurveLook:
    """How a curve is drawn that `sharers` runs have in common, of which it is number `rank`."""

    color: str
    rank: int
    sharers: int

    @property
    def dashes(self) -> LineStyle:
        """Solid, or dashes in the gaps of the other runs' dashes."""
        if self.sharers == 1:
            return "solid"
        return -DASH_LENGTH * self.rank, (DASH_LENGTH, DASH_LENGTH * (self.sharers - 1))


def equal_runs(runs: Sequence[RunData]) -> list[list[RunData]]:
    """Groups of runs whose curves are equal, because seed and settings of training are."""
    groups: dict[str, list[RunData]] = {}
    for run in runs:
        curves = {name: values for name, values in run.metrics.items() if "seconds" not in name}
        groups.setdefault(repr([curves, run.evaluations.get("score")]), []).append(run)
    return [group for group in groups.values() if len(group) > 1]


def _curve_looks(runs: Sequence[RunData]) -> list[_CurveLook]:
    groups = equal_runs(runs)
    looks = []
    for number, run in enumerate(runs):
        sharers = next((group for group in groups if run in group), [run])
        looks.append(_CurveLook(series_color(number), sharers.index(run), len(sharers)))
    return looks


def _draw_returns(axes: Axes, run: RunData, look: _CurveLook) -> None:
    if _has_values(run.metrics, "return_mean"):
        episodes, mean, deviation = return_moments(run.metrics)
        band = (mean - deviation, mean + deviation)
        axes.fill_between(episodes, *band, color=look.color, alpha=0.16, linewidth=0)
        axes.plot(episodes, mean, color=look.color, linestyle=look.dashes)
    if _has_values(run.evaluations, "return_mean"):
        names = ["episodes", "return_mean", "return_error"]
        episodes, mean, error = downsample(run.evaluations, names, max_points=60)
        axes.errorbar(
            episodes,
            mean,
            error,
            fmt="o",
            markersize=4.6 + 3 * look.rank,
            color=look.color,
            markerfacecolor="none" if look.rank else color("surface"),
            elinewidth=1,
            zorder=3,
        )


def _compress_early_returns(axes: Axes, runs: Sequence[RunData]) -> None:
    """Use a symlog axis where poor early returns would flatten the rest of the curve."""
    means = np.concatenate([np.array(run.metrics.get("return_mean", [])) for run in runs])
    means = means[np.isfinite(means)]
    if not means.size or means.min() > -60 or means.max() > 0 or means.min() > 4 * means.max():
        return
    low, _ = axes.get_ylim()
    axes.set_yscale("symlog", linthresh=10, linscale=0.6)
    axes.set_ylim(low, 0)
    axes.yaxis.set_major_locator(FixedLocator(SYMLOG_TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))


def _panel_svg(runs: Sequence[RunData], panel: Panel) -> Markup:
    with svg_plot(f"{panel.title} against episodes", 240, 130) as plot:
        for run, look in zip(runs, _curve_looks(runs), strict=True):
            if _has_values(run.metrics, panel.column):
                episodes, values = downsample(run.metrics, ["episodes", panel.column], 150)
                plot.axes.plot(
                    episodes, values, color=look.color, linestyle=look.dashes, linewidth=1.2
                )
        plot.axes.yaxis.set_major_locator(MaxNLocator(4))
        _format_episode_axis(plot.axes, label=False)
    return plot.svg


def _format_episode_axis(axes: Axes, *, label: bool = True) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(6 if label else 4))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if label:
        axes.set_xlabel("episodes")


# Search over orders


def ranking_plot(search: SearchData) -> Markup:
    """Plot the rewards of the best orders with standard errors over the model's posterior."""
    ranked = search.ranking[:RANKED_ORDERS]
    height = 70 + RANKING_ROW_HEIGHT * len(ranked)
    with svg_plot("Rewards of the best orders", 760, height) as plot:
        axes = plot.axes
        for row, result in enumerate(ranked):
            if result.posterior is not None:
                mean, deviation = result.posterior
                band = ([mean - deviation, mean + deviation], [row, row])
                axes.plot(*band, color=color("line"), linewidth=6, solid_capstyle="butt")
            marker = _OrderMarker(x=result.reward, y=row, order=result.order,
                                  passes=result.passes, error_x=result.standard_error)  # fmt: skip
            marker.draw(axes, search)
        axes.set_yticks(range(len(ranked)), [result.order for result in ranked])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.set_xlabel("mean reward per episode")
    return plot.svg


def compliance_plot(search: SearchData) -> Markup:
    """Plot reward against compliance; hollow markers are orders that do not pass."""
    with svg_plot("Compliance against reward", 420, 280) as plot:
        threshold = search.compliance_threshold
        plot.axes.axvline(threshold, color=color("muted"), linewidth=0.8, linestyle="--")
        for result in search.ranking:
            if result.compliance is not None:
                marker = _OrderMarker(x=result.compliance, y=result.reward, order=result.order,
                                      passes=result.passes,
                                      error_y=result.standard_error)  # fmt: skip
                marker.draw(plot.axes, search)
        plot.axes.set_xlabel("compliance")
        plot.axes.set_ylabel("mean reward per episode")
    return plot.svg


def progress_plot(search: SearchData) -> Markup:
    """Plot the reward of each training against episodes spent, and the best so far that passes."""
    with svg_plot("Progress of the search", 760, 300) as plot:
        for training in search.trainings:
            marker = _OrderMarker(x=training.total_episodes, y=training.reward,
                                  order=training.order, passes=training.passes,
                                  error_y=training.standard_error)  # fmt: skip
            marker.draw(plot.axes, search)
        spent, best = _best_so_far(search.trainings)
        if spent:
            ends = [*spent, search.trainings[-1].total_episodes]
            plot.axes.step(ends, [*best, best[-1]], where="post", color=color("muted"), linewidth=1)
        plot.axes.xaxis.set_major_locator(MaxNLocator(6))
        plot.axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        plot.axes.set_xlabel("training episodes spent")
        plot.axes.set_ylabel("mean reward per episode")
    return plot.svg


def prediction_plot(search: SearchData) -> Markup:
    """Plot the measured reward of each training against the model's prediction before it."""
    predicted = [
        (training, training.prediction)
        for training in search.trainings
        if training.prediction is not None and training.iteration > 1
    ]
    with svg_plot("Measured against predicted reward", 420, 280) as plot:
        for training, (mean, deviation) in predicted:
            marker = _OrderMarker(x=mean, y=training.reward, order=training.order,
                                  passes=training.passes, error_x=deviation,
                                  error_y=training.standard_error)  # fmt: skip
            marker.draw(plot.axes, search)
        limits = plot.axes.axis()  # of the data: the line must not move them
        plot.axes.axline((0, 0), slope=1, color=color("muted"), linewidth=0.8, linestyle="--")
        plot.axes.axis(limits)
        plot.axes.set_xlabel("predicted before training ± deviation")
        plot.axes.set_ylabel("measured after training")
    return plot.svg


@dataclass(frozen=True, kw_only=True)
class _OrderMarker:
    """A circle in the color of the order's class, hollow if the order does not pass."""

    x: float
    y: float
    order: str
    passes: bool
    error_x: float | None = None
    error_y: float | None = None

    def draw(self, axes: Axes, search: SearchData) -> None:
        class_color = series_color(search.class_index(self.order))
        axes.errorbar(
            self.x,
            self.y,
            self.error_y,
            self.error_x,
            fmt="o",
            markersize=4.5,
            color=class_color,
            markerfacecolor=class_color if self.passes else color("surface"),
            elinewidth=1,
            zorder=3,
        )


def _best_so_far(trainings: Iterable[Training]) -> tuple[list[int], list[float]]:
    spent: list[int] = []
    best: list[float] = []
    for training in trainings:
        if training.passes and training.reward > max(best, default=-np.inf):
            spent.append(training.total_episodes)
            best.append(training.reward)
    return spent, best


# Benchmarks


def rate_plot(bench: str, group: Group) -> Markup:
    """Plot median rates with a line from the lower to the upper quartile.

    Medians are bars from 0, or points on a logarithmic axis, where a bar's length means nothing.
    """
    height = 60 + BAR_ROW_HEIGHT * len(group.contenders)
    with svg_plot(f"Steps per second, {bench}: {group.title}", 760, height) as plot:
        axes = plot.axes
        names = list(dict.fromkeys(contender.name for contender in group.contenders))
        rates = [contender.rates[1] for contender in group.contenders]
        is_logarithmic = max(rates) / min(rates) > LOG_SCALE_RATIO
        for row, contender in enumerate(group.contenders):
            low, median, high = contender.rates
            row_color = series_color(names.index(contender.name))
            if is_logarithmic:
                axes.plot(median, row, "o", color=row_color, markersize=7)
            else:
                axes.barh(row, median, height=0.62, color=row_color)
            axes.plot([low, high], [row, row], color=color("ink"), linewidth=1.2)
            axes.annotate(
                _format_rate(median), (high, row), (8, 0), textcoords="offset points", va="center"
            )
        axes.set_yticks(range(len(group.contenders)), map(group.label, group.contenders))
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        if is_logarithmic:
            axes.set_xscale("log")
            axes.set_xlim(left=min(rates) / 2)
        axes.margins(x=0.12)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_xlabel("steps per second")
    return plot.svg


def rate_curves(bench: str, sweep: Sweep) -> Markup:
    """Plot the rate against the size, one curve per contender with quartiles."""
    with svg_plot(f"Rate against size, {bench}: {sweep.title}", 520, 320) as plot:
        for number, curve in enumerate(sweep.curves.values()):
            rates = [contender.rates for contender in curve.values()]
            plot.axes.errorbar(
                list(curve),
                [median for _, median, _ in rates],
                [
                    [median - low for low, median, _ in rates],
                    [high - median for _, median, high in rates],
                ],
                color=series_color(number),
                marker="o",
                markersize=4,
                elinewidth=1,
            )
        _use_log_y_axis(plot.axes, EngFormatter(sep=""))
        plot.axes.set_ylabel("steps per second")
        _format_size_axis(plot.axes, sweep)
    return plot.svg


def efficiency_curves(bench: str, sweep: Sweep) -> Markup:
    """Plot the rate at size N divided by N times the rate at size 1."""
    with svg_plot(f"Efficiency against size, {bench}: {sweep.title}", 520, 320) as plot:
        plot.axes.axhline(1, color=color("muted"), linewidth=0.8, linestyle="--")
        for number, name in enumerate(sweep.curves):
            values = sweep.efficiency.get(name, {})
            plot.axes.plot(
                list(values),
                list(values.values()),
                color=series_color(number),
                marker="o",
                markersize=4,
            )
        _use_log_y_axis(plot.axes, FuncFormatter(lambda value, _: f"{value:.3g}"))
        plot.axes.set_ylabel("rate of N / (N x rate of 1)")
        _format_size_axis(plot.axes, sweep)
    return plot.svg


def memory_curves(memory: Mapping[str, Sequence[Mapping[str, int]]]) -> Markup:
    """Plot bytes against environments, one curve per contender with several sizes."""
    with svg_plot("Memory against environments", 760, 320) as plot:
        for number, rows in enumerate(memory.values()):
            if len(rows) == 1:
                continue
            plot.axes.plot(
                [row["environments"] for row in rows],
                [row["bytes"] for row in rows],
                color=series_color(number),
                marker="o",
                markersize=4,
            )
        _use_log_y_axis(plot.axes, EngFormatter(unit="B", sep=""))
        plot.axes.set(xscale="log", xlabel="environments", ylabel="bytes")
        plot.axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    return plot.svg


def _use_log_y_axis(axes: Axes, formatter: Formatter) -> None:
    """Set a logarithmic y axis with labels at 1, 2 and 5 of each decade."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(formatter)
    axes.yaxis.set_minor_formatter(NullFormatter())


def _format_size_axis(axes: Axes, sweep: Sweep) -> None:
    sizes = sorted({size for curve in sweep.curves.values() for size in curve})
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" if size < 1000 else f"{size // 1000}k" for size in sizes])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("environments")


def _format_rate(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
