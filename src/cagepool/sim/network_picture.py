"""Draws a scenario as it is before a game: as text for a terminal, or as a picture."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Protocol

from cagepool.scenarios import Scenario
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.sim.network_layout import (
    CARD,
    COLORS,
    FONT_SIZES,
    ZONE,
    Box,
    Curve,
    Point,
    network_plan,
    short_name,
    wide_layout,
)

_VALUES = {0: "None", 1: "Low", 10: "Medium", 100: "High"}  # by tenths of the reward
_MODES = {"open": "", "gated": "gated", "closed": "closed"}
_MARGIN = 10
_LINE_HEIGHT = 13.5
_CHARACTERS = 36  # of a line on a card
_LIGHT = {name: light for name, (light, _) in COLORS.items()}
_COLUMNS = ("host", "image", "system", "ports", "value", "reveals", "notes")


# Text


def scenario_text(scenario: Scenario) -> str:
    """The network in lines: its settings, then subnets with their hosts in member order."""
    lines = [*_headings(scenario), ""]
    rows: list[tuple[Sequence[str], str]] = [(_COLUMNS, "")]
    for name in network_plan(scenario).zones:
        subnet = scenario.subnets.index(name)
        rows.append(((), f"{name}, {_mode_words(scenario, scenario.modes[subnet])}"))
        rows += [(_host_row(scenario, host), "") for host in scenario.members[subnet]]
    widths = [
        max(len(cells[column]) for cells, _ in rows if cells) for column in range(len(_COLUMNS))
    ]
    for cells, heading in rows:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=False))
        lines.append(heading or ("  " + "  ".join(padded)).rstrip())
    return "\n".join(lines) + "\n"


def _headings(scenario: Scenario) -> Iterator[str]:
    hosts, subnets = len(scenario.hosts), len(scenario.subnets)
    yield f"{scenario.name}: {hosts} hosts, {subnets} subnets, {len(scenario.actions)} actions"
    yield f"hash             {scenario.hash}"
    yield f"red enters at    {scenario.hosts[scenario.entry]}"
    yield f"order of play    {', '.join(scenario.order_of_play)}"
    yield f"blue's actions   {', '.join(scenario.action_kinds)}"
    scanned = [scenario.hosts[host] for host in scenario.green_hosts if host is not None]
    yield f"green scans      {', '.join(scanned) or 'nothing'}"
    for red in OFFICIAL_REDS:
        reason = scenario.red_refusal(red)
        yield f"{red:17}" + ("can play" if reason is None else f"cannot play: {reason}")


def _mode_words(scenario: Scenario, mode: str) -> str:
    if mode == "open":
        return "open to red"
    if mode == "closed":
        return "closed to red for good"
    keys = [scenario.hosts[host] for host in scenario.gate]
    if not keys:
        return "gated, and no host is a key"
    return f"gated: open while red has a session on one of {', '.join(keys)}"


def _host_row(scenario: Scenario, host: int) -> Sequence[str]:
    revealed = [scenario.hosts[other] for other in scenario.reveals_ip[host] if other != host]
    return (
        scenario.hosts[host],
        scenario.images[host],
        _system(scenario, host),
        ", ".join(map(str, scenario.ports[host])) or "none",
        _VALUES[scenario.confidentiality_tenths[host]],
        ", ".join(revealed) or "-",
        ", ".join(_notes(scenario, host)),
    )


def _system(scenario: Scenario, host: int) -> str:
    return "Windows" if scenario.windows[host] else "Linux"


def _notes(scenario: Scenario, host: int) -> Iterator[str]:
    if host == scenario.entry:
        yield "red's entry"
    if scenario.ot[host]:
        yield f"OTService {_VALUES[scenario.availability_tenths[host]]}"
    if host in scenario.gate:
        yield "gate key"
    if not scenario.agents[host]:
        yield "no blue agent"
    if not scenario.monitored[host]:
        yield "not monitored"


# Pictures


class Canvas(Protocol):
    """What a network is drawn on: an SVG image, or a picture of Pillow."""

    def rectangle(
        self, box: Box, radius: float, fill: str, outline: tuple[str, float] | None = None
    ) -> None:
        """Rectangle with rounded corners; an outline is a color and a width."""

    def curve(self, curve: Curve, color: str) -> None:
        """Thin line along a Bezier curve."""

    def write(self, place: Point, text: str, size: float, color: str, *, bold: bool) -> None:
        """Text at its baseline, from its left end."""


def draw_network(canvas: Canvas, scenario: Scenario) -> None:
    """Draw subnets, links and hosts."""
    layout = wide_layout(scenario)
    for subnet, name in enumerate(scenario.subnets):
        box = layout.zones[name]
        canvas.rectangle(box, ZONE["radius"], _LIGHT["soft"])
        mode = _MODES[scenario.modes[subnet]]
        place = (box.x + ZONE["padding"], box.y + ZONE["baseline"])
        title = f"{name} ({mode})" if mode else name
        color = _LIGHT["red" if mode else "muted"]
        canvas.write(place, title, FONT_SIZES["zone"], color, bold=True)
    for link in layout.links:
        canvas.curve(link, _LIGHT["muted"])
    for host in range(len(scenario.hosts)):
        _draw_host(canvas, scenario, host, layout.hosts[scenario.hosts[host]])


def _draw_host(canvas: Canvas, scenario: Scenario, host: int, corner: Point) -> None:
    x, y = corner
    is_entry = host == scenario.entry
    outline = (_LIGHT["red"], 2.0) if is_entry else (_LIGHT["line"], 1.0)
    card = Box(x, y, CARD["width"], CARD["height"])
    canvas.rectangle(card, CARD["radius"], _LIGHT["surface"], outline)
    name = short_name(scenario.hosts[host])
    left, baseline = x + CARD["padding"], y + 19
    canvas.write((left, baseline), name, FONT_SIZES["name"], _LIGHT["ink"], bold=True)
    lines = [
        (scenario.images[host], "muted"),
        (f"{_system(scenario, host)}: {', '.join(map(str, scenario.ports[host]))}", "muted"),
        (f"value {_VALUES[scenario.confidentiality_tenths[host]]}", "muted"),
        (", ".join(_notes(scenario, host)), "red" if is_entry else "blue"),
    ]
    for text, color in lines:
        baseline += _LINE_HEIGHT
        shown = text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 2]}.."
        size = FONT_SIZES["saw"]
        canvas.write((left, baseline + 2), shown, size, _LIGHT[color], bold=color != "muted")


class SvgCanvas:
    """Collects the elements of an SVG image."""

    def __init__(self) -> None:
        """Begin without elements."""
        self._elements: list[str] = []

    def rectangle(
        self, box: Box, radius: float, fill: str, outline: tuple[str, float] | None = None
    ) -> None:
        """Add a rectangle."""
        stroke = f' stroke="{outline[0]}" stroke-width="{outline[1]:g}"' if outline else ""
        size = f'width="{box.width:g}" height="{box.height:g}" rx="{radius:g}"'
        self._elements.append(f'<rect x="{box.x:g}" y="{box.y:g}" {size} fill="{fill}"{stroke}/>')

    def curve(self, curve: Curve, color: str) -> None:
        """Add a curve."""
        start, *rest = (f"{x:g} {y:g}" for x, y in curve)
        path = f"M{start}C{' '.join(rest)}"
        style = f'fill="none" stroke="{color}" stroke-opacity="0.45"'
        self._elements.append(f'<path d="{path}" {style}/>')

    def write(self, place: Point, text: str, size: float, color: str, *, bold: bool) -> None:
        """Add a text."""
        weight = ' font-weight="600"' if bold else ""
        style = f'font-size="{size:g}" fill="{color}"{weight}'
        self._elements.append(
            f'<text x="{place[0]:g}" y="{place[1]:g}" {style}>{escape(text)}</text>'
        )

    def image(self, width: float, height: float) -> str:
        """The image, with a margin."""
        view = f"{-_MARGIN} {-_MARGIN} {width + 2 * _MARGIN:g} {height + 2 * _MARGIN:g}"
        size = f'width="{width + 2 * _MARGIN:g}" height="{height + 2 * _MARGIN:g}"'
        font = 'font-family="system-ui, sans-serif"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" {size} {font}>'
        return "\n".join([head, *self._elements, "</svg>"]) + "\n"


def scenario_svg(scenario: Scenario) -> str:
    """The network as an SVG image."""
    canvas, layout = SvgCanvas(), wide_layout(scenario)
    canvas.rectangle(
        Box(-_MARGIN, -_MARGIN, layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN),
        0,
        _LIGHT["bg"],
    )
    draw_network(canvas, scenario)
    return canvas.image(layout.width, layout.height)


def scenario_html(scenario: Scenario) -> str:
    """The network as a page: the image and the text."""
    name = escape(scenario.name)
    style = f"body {{ margin: 24px; background: {_LIGHT['bg']}; }} pre {{ overflow-x: auto; }}"
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">\n'
        f"<title>{name}</title>\n<style>{style}</style></head>\n<body>\n"
        f"{scenario_svg(scenario)}<pre>{escape(scenario_text(scenario))}</pre>\n</body>\n</html>\n"
    )
