"""Plots of benches: bars with quartiles, curves over sizes."""

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, Formatter, FuncFormatter, LogLocator, NullFormatter

from cagepool.report.bench_data import Bar, Group, Sweep
from cagepool.report.colours import series, stand_in
from cagepool.report.svg import drawing

ROW = 21  # pixels a bar
FAR_APART = 20  # times: beyond, a scale of powers shows more


def bars_plot(bench: str, group: Group) -> Markup:
    """Median rates as bars; a line from the lower to the upper quartile."""
    with drawing(
        f"Steps a second, {bench}: {group.title}", 760, 60 + ROW * len(group.bars)
    ) as made:
        axes = made.axes
        names = list(dict.fromkeys(bar.name for bar in group.bars))
        for place, bar in enumerate(group.bars):
            low, middle, high = bar.rates
            colour = stand_in(series(names.index(bar.name)))
            axes.barh(place, middle, height=0.62, color=colour)
            axes.plot([low, high], [place, place], color=stand_in("ink"), linewidth=1.2)
            axes.annotate(
                _rate(middle), (high, place), (5, 0), textcoords="offset points", va="center"
            )
        axes.set_yticks(range(len(group.bars)), map(group.label, group.bars))
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        _rate_axis(axes, group.bars)
    return made.svg


def rate_plot(bench: str, sweep: Sweep) -> Markup:
    """Rates against sizes, a curve for each contender, quartiles as lines."""
    with drawing(f"Rate against size, {bench}: {sweep.title}", 520, 320) as made:
        for number, curve in enumerate(sweep.curves.values()):
            rates = [bar.rates for bar in curve.values()]
            middle = [rate for _, rate, _ in rates]
            made.axes.errorbar(
                list(curve),
                middle,
                [
                    [rate - low for low, rate, _ in rates],
                    [high - rate for _, rate, high in rates],
                ],
                color=stand_in(series(number)),
                marker="o",
                markersize=4,
                elinewidth=1,
            )
        _powers(made.axes, EngFormatter(sep=""))
        made.axes.set_ylabel("steps a second")
        _size_axis(made.axes, sweep)
    return made.svg


def efficiency_plot(bench: str, sweep: Sweep) -> Markup:
    """Rate of many against as many times the rate of one."""
    with drawing(f"Efficiency against size, {bench}: {sweep.title}", 520, 320) as made:
        made.axes.axhline(1, color=stand_in("muted"), linewidth=0.8, linestyle="--")
        for number, name in enumerate(sweep.curves):
            values = sweep.efficiency.get(name, {})
            colour = stand_in(series(number))
            made.axes.plot(
                list(values), list(values.values()), color=colour, marker="o", markersize=4
            )
        _powers(made.axes, FuncFormatter(lambda value, _: f"{value:.3g}"))
        made.axes.set_ylabel("rate of N / (N x rate of 1)")
        _size_axis(made.axes, sweep)
    return made.svg


def memory_plot(memory: Mapping[str, Sequence[Mapping[str, int]]]) -> Markup:
    """Bytes against environments, a curve for each row that has several sizes."""
    with drawing("Memory against environments", 760, 320) as made:
        for number, held in enumerate(memory.values()):
            if len(held) == 1:  # no curve
                continue
            counts = [one["environments"] for one in held]
            sizes = [one["bytes"] for one in held]
            colour = stand_in(series(number))
            made.axes.plot(counts, sizes, color=colour, marker="o", markersize=4)
        _powers(made.axes, EngFormatter(unit="B", sep=""))
        made.axes.set(xscale="log", xlabel="environments", ylabel="bytes")
        made.axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    return made.svg


def _powers(axes: Axes, formatter: Formatter) -> None:
    """Make the upright axis one of powers, with a few round values."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(formatter)
    axes.yaxis.set_minor_formatter(NullFormatter())


def _rate_axis(axes: Axes, bars: Iterable[Bar]) -> None:
    rates = [bar.rates[1] for bar in bars]
    if max(rates) / min(rates) > FAR_APART:
        axes.set_xscale("log")
        axes.set_xlim(left=min(rates) / 3)
    axes.margins(x=0.12)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("steps a second")


def _size_axis(axes: Axes, sweep: Sweep) -> None:
    sizes = sorted({size for curve in sweep.curves.values() for size in curve})
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" if size < 1000 else f"{size // 1000}k" for size in sizes])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("environments")


def _rate(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
