"""Colours that the style sheet names, so that plots follow the reader's light or dark scheme.

Matplotlib wants real colours: each name stands for one that nothing else uses, and is put back
into the finished SVG.
"""

_NAMES = ("ink", "muted", "line", "surface", *(f"series-{number}" for number in range(1, 7)))
_STAND_INS = {name: f"#0{number:02d}bad" for number, name in enumerate(_NAMES, start=10)}
SERIES = tuple(name for name in _NAMES if name.startswith("series"))


def stand_in(name: str) -> str:
    """The colour that Matplotlib draws in place of one of the style sheet's."""
    return _STAND_INS[name]


def series(number: int) -> str:
    """The name of the colour of the run with that number; after the last it starts anew."""
    return SERIES[number % len(SERIES)]


def named(svg: str) -> str:
    """The SVG with names of the style sheet in place of all stand-ins."""
    for name, colour in _STAND_INS.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg
