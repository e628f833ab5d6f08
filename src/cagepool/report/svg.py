"""Matplotlib figures as inline SVG that takes its colors from the style sheet of the page."""

import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_POINTS_PER_INCH = 72
MAX_ENLARGEMENT = 1.35  # of a plot that has more room: its text grows with it
_LEGEND_ROW_HEIGHT = 15  # pixels
_LEGEND_HANDLE_WIDTH = 56  # pixels, with the space between columns
_LEGEND_LETTER_WIDTH = 5.7  # pixels
SERIES_COUNT = 6  # colors of data series
_SERIES = tuple(f"series-{number}" for number in range(1, SERIES_COUNT + 1))
# Matplotlib cannot write CSS variables. Each variable of static/page.css has a placeholder color
# that no plot uses otherwise; `_to_css_colors` replaces the placeholders in the finished SVG.
_PLACEHOLDERS = {
    name: f"#0{number:02d}bad"
    for number, name in enumerate(("ink", "muted", "line", "surface", *_SERIES), start=10)
}


def color(name: str) -> str:
    """Matplotlib color that becomes the CSS variable `--name` in the SVG."""
    return _PLACEHOLDERS[name]


def series_name(number: int) -> str:
    """CSS variable of the data series with that number; the colors repeat after the sixth."""
    return _SERIES[number % len(_SERIES)]


def series_color(number: int) -> str:
    """Matplotlib color of the data series with that number."""
    return color(series_name(number))


_STYLE: Any = {  # mypy wants each key to be one of 300 literals
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.sans-serif": ["Liberation Sans", "Arial", "DejaVu Sans"],
    "font.size": 9.5,
    "text.color": color("ink"),
    "axes.labelcolor": color("muted"),
    "axes.edgecolor": color("line"),
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.xmargin": 0.01,
    "figure.facecolor": "none",
    "grid.color": color("line"),
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "xtick.color": color("muted"),
    "ytick.color": color("muted"),
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "path.simplify_threshold": 0.3,
}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


class SvgPlot:
    """A figure with one pair of axes; it is rendered when the block of `svg_plot` ends.

    Data with labels gets a legend below the axes of `document` only: a page has its own.
    """

    def __init__(self, width: int, height: int) -> None:
        """Create empty axes; the size is in pixels."""
        size = (width / _POINTS_PER_INCH, height / _POINTS_PER_INCH)
        self.figure = Figure(size, layout="constrained")
        self.axes: Axes = self.figure.subplots()
        self.svg = Markup()
        self.document = ""  # the SVG file, for `to_file`


@contextmanager
def svg_plot(label: str, width: int, height: int) -> Iterator[SvgPlot]:
    """Yield axes in the style of the page, then render them with `label` for screen readers."""
    # `label` salts the ids of clip paths and markers: two plots of a page must not share them.
    with mpl.rc_context({**_STYLE, "svg.hashsalt": label}):
        plot = SvgPlot(width, height)
        yield plot
        plot.document = _rendered(plot.figure)
        plot.svg = _inline(plot.document, label, max_width=round(width * MAX_ENLARGEMENT))
        if _add_legend(plot):
            plot.document = _rendered(plot.figure)


def to_file(document: str, colors: Mapping[str, str]) -> str:
    """An SVG file with these colors in the place of the variables of the style sheet."""
    for name, placeholder in _PLACEHOLDERS.items():
        document = document.replace(placeholder, colors[name])
    return document


def _rendered(figure: Figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=_NO_METADATA)
    return text.getvalue()


def _add_legend(plot: SvgPlot) -> bool:
    """Enlarge the figure by a legend of the data with labels, if there is any."""
    handles, labels = plot.axes.get_legend_handles_labels()
    if not labels:
        return False
    width, height = plot.figure.get_size_inches() * _POINTS_PER_INCH
    entry_width = _LEGEND_HANDLE_WIDTH + _LEGEND_LETTER_WIDTH * max(map(len, labels))
    columns = max(1, int(width / entry_width))
    height += _LEGEND_ROW_HEIGHT * (math.ceil(len(labels) / columns) + 1)
    plot.figure.set_size_inches(width / _POINTS_PER_INCH, height / _POINTS_PER_INCH)
    plot.figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, handlelength=2.6, frameon=False
    )
    return True


def _inline(document: str, label: str, max_width: int) -> Markup:
    """The `<svg>` element of an SVG document without the XML prolog, in a labeled block."""
    svg = _to_css_colors(document[document.index("<svg") :])
    opening = Markup(
        '<div class="plot" role="img" aria-label="{}" style="max-width: {}px">'
    ).format(label, max_width)
    return opening + Markup(svg) + Markup("</div>")


def _to_css_colors(svg: str) -> str:
    for name, placeholder in _PLACEHOLDERS.items():
        svg = svg.replace(placeholder, f"var(--{name})")
    return svg
