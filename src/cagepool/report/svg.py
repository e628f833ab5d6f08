"""Matplotlib figures as small SVG that can stand inside a page."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cagepool.report.colours import named, stand_in

_STYLE: Any = {  # keys are one of 300 literals to a type checker
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.sans-serif": ["Liberation Sans", "Arial", "DejaVu Sans"],
    "font.size": 9.5,
    "text.color": stand_in("ink"),
    "axes.labelcolor": stand_in("muted"),
    "axes.edgecolor": stand_in("line"),
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
    "grid.color": stand_in("line"),
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "xtick.color": stand_in("muted"),
    "ytick.color": stand_in("muted"),
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "path.simplify_threshold": 0.3,
}
_POINTS = 72


class Drawing:
    """A figure with one plot, of a size in pixels, and the SVG it becomes."""

    def __init__(self, width: int, height: int) -> None:
        """Make an empty plot; draw inside of `drawing`."""
        self.figure = Figure((width / _POINTS, height / _POINTS), layout="constrained")
        self.axes: Axes = self.figure.subplots()
        self.svg = Markup()

    def finish(self, label: str) -> None:
        """Turn the figure into SVG that says in words what it shows."""
        text = io.StringIO()
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        # The label is the salt: plots on one page must not share names of clipping paths.
        with mpl.rc_context({"svg.hashsalt": label}):
            self.figure.savefig(text, format="svg", metadata=nothing)
        self.svg = _embedded(text.getvalue(), label)


@contextmanager
def drawing(label: str, width: int, height: int) -> Iterator[Drawing]:
    """A plot in the page's style; its SVG is ready after the block."""
    with mpl.rc_context(_STYLE):
        made = Drawing(width, height)
        yield made
        made.finish(label)


def _embedded(svg: str, label: str) -> Markup:
    """The SVG without what only a file needs, in two decimals, coloured by the style sheet."""
    size = re.search(r'viewBox="[^"]*"', svg)
    assert size, "Matplotlib writes a viewBox"
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    # A style sheet in here would hold for the whole page; page.css says the same of plots alone.
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r' id="[a-z0-9]+_[\d_]+"', "", body)
    body = re.sub(r'="[^"]*"', _rounded, body)
    body = re.sub(r"\s*\n\s*", " ", body)
    heading = Markup('<svg class="plot" role="img" aria-label="{}" ').format(label)
    return heading + Markup(f"{size.group()}>{named(body)}")


def _rounded(attribute: "re.Match[str]") -> str:
    return re.sub(r"(\d\.\d\d)\d+", r"\1", attribute.group())
