"""What is drawn of a game or a scenario: shapes in places, which svg.py and pillow.py paint.

A `Part` is drawn around its own origin. Functions that make the parts of a frame are cached, and
parts compare by identity: a painter keeps what it made of a part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil, hypot
from typing import NamedTuple, TypeAlias

import numpy as np

from cagepool.render import plan
from cagepool.render.game import (
    HostStates,
    Moves,
    Targets,
    game_scenario,
    host_states,
    last_moves,
    last_targets,
)
from cagepool.render.plan import CARD, CELL, FONT_SIZES, SAW, TAG, ZONE, Box, Curve, Point
from cagepool.render.text import VALUES, host_notes, system_name
from cagepool.scenarios import Scenario
from cagepool.sim.batch import Batch
from cagepool.sim.names import EDITIONS, RED_AGENTS
from cagepool.sim.red_observation import red_knowledge

FRAME_SIZE = (960, 576)
"""Size of a frame, unless a scenario needs more: multiples of 16, as video encoders want them."""
MARGIN = 8
PANEL_HEIGHT = 70
_PANEL_GAP = 12
_PANEL_WIDTHS = (170, 236, 330, 172)  # step, blue, red, green
_ORIGIN = (MARGIN, MARGIN + PANEL_HEIGHT + MARGIN)  # of the scenario in a frame
_LINK_COLOR = "#c0c4c6"  # muted, at 35 % opacity on soft
_HATCH_COLOR = "#b4b9bd"  # muted, at 55 % opacity on soft
_WORDS = {True: "succeeded", False: "failed", None: ""}
_DETECTED = {True: ", detected", False: ", not detected", None: ""}
_MODES = {"open": "", "gated": "gated", "closed": "closed"}
_LINE_HEIGHT = 13.5
_CHARACTERS = 36  # of a line on the card of a scenario


class Rectangle(NamedTuple):
    """An outline, a color and a width, is centered on the edge."""

    box: Box
    radius: float
    fill: str  # colors are names of `plan.COLORS`, or of the form #rrggbb
    outline: tuple[str, float] | None = None


class Circle(NamedTuple):
    """A disk, or a ring of the color `outline`."""

    center: Point
    radius: float
    fill: str | None
    outline: tuple[str, float] | None = None


class Line(NamedTuple):
    """A line through points, in dashes and gaps of these lengths if there are any."""

    points: Sequence[Point]
    color: str
    width: float
    dashes: tuple[float, float] | None = None


class Link(NamedTuple):
    """A thin line along a Bezier curve."""

    curve: Curve
    color: str


class Polygon(NamedTuple):
    """A filled shape."""

    corners: Sequence[Point]
    fill: str


class Text(NamedTuple):
    """A text at its baseline, from its left end, middle or right end (l, m, r)."""

    place: Point
    text: str
    size: float
    color: str
    bold: bool = False
    anchor: str = "l"


Shape: TypeAlias = Rectangle | Circle | Line | Link | Polygon | Text


@dataclass(frozen=True, eq=False)
class Part:
    """Shapes within a box, whose corner need not be the origin; texts are above other shapes."""

    box: Box
    shapes: Sequence[Shape]
    background: str | None = None  # None: transparent


Placed: TypeAlias = tuple[Part, Point]  # a part, and the place of its origin


# Scenarios before a game


def scenario_part(scenario: Scenario) -> Part:
    """Subnets, links and hosts of a scenario."""
    layout = plan.wide_layout(scenario)
    box = Box(-MARGIN, -MARGIN, layout.width + 2 * MARGIN, layout.height + 2 * MARGIN)
    modes = {
        name: _MODES[mode] for name, mode in zip(scenario.subnets, scenario.modes, strict=True)
    }
    cards = [
        shape
        for host, name in enumerate(scenario.hosts)
        for shape in _scenario_card(scenario, host, layout.hosts[name])
    ]
    return Part(box, [*_zones(layout, modes), *cards], "bg")


def _zones(layout: plan.Layout, modes: dict[str, str]) -> Iterator[Shape]:
    for name, box in layout.zones.items():
        yield Rectangle(box, ZONE["radius"], "soft")
        mode = modes.get(name)
        place = (box.x + ZONE["padding"], box.y + ZONE["baseline"])
        title = f"{name} ({mode})" if mode else name
        yield Text(place, title, FONT_SIZES["zone"], "red" if mode else "muted", bold=True)
    for curve in layout.links:
        yield Link(curve, _LINK_COLOR)


def _scenario_card(scenario: Scenario, host: int, corner: Point) -> Iterator[Shape]:
    x, y = corner
    is_entry = host == scenario.entry
    outline = ("red", 2.0) if is_entry else ("line", 1.0)
    yield Rectangle(Box(x, y, CARD["width"], CARD["height"]), CARD["radius"], "surface", outline)
    left, baseline = x + CARD["padding"], y + 19
    name = plan.short_name(scenario.hosts[host])
    yield Text((left, baseline), name, FONT_SIZES["name"], "ink", bold=True)
    ports = ", ".join(map(str, scenario.ports[host]))
    lines = [
        (scenario.images[host], "muted"),
        (f"{system_name(scenario, host)}: {ports}", "muted"),
        (f"value {VALUES[scenario.confidentiality_tenths[host]]}", "muted"),
        (", ".join(host_notes(scenario, host)), "red" if is_entry else "blue"),
    ]
    for text, color in lines:
        baseline += _LINE_HEIGHT
        shown = text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 2]}.."
        place = (left, baseline + 2)
        yield Text(place, shown, FONT_SIZES["saw"], color, bold=color != "muted")


# Games


def frame_parts(batch: Batch, games: Sequence[int]) -> Iterator[list[Placed]]:
    """Parts of each game, a background of the frame's size first: moves above the scenario.

    All frames of a batch have one size, `FRAME_SIZE` or what its largest scenario needs.
    """
    known = red_knowledge(batch)
    size = frame_size(batch.scenarios)
    for game in games:
        has_moves = batch.core.steps(game) > 0  # otherwise the moves are those of the last episode
        moves = last_moves(batch, game) if has_moves else None
        targets = last_targets(batch, game) if has_moves else None
        scenario = game_scenario(batch, game)
        parts = _game_parts(scenario, host_states(batch, game, known), moves, targets)
        x, y = _ORIGIN
        yield [
            (_background(scenario, size), _ORIGIN),
            *_panel(_headline(batch, game), moves),
            *((part, (x + place[0], y + place[1])) for part, place in parts),
        ]


@lru_cache(maxsize=16)
def frame_size(scenarios: tuple[Scenario, ...]) -> tuple[int, int]:
    """Width and height of frames of these scenarios."""
    layouts = [plan.wide_layout(scenario) for scenario in scenarios]
    width = max(layout.width for layout in layouts) + 2 * MARGIN
    height = max(layout.height for layout in layouts) + _ORIGIN[1] + MARGIN
    return max(FRAME_SIZE[0], 16 * ceil(width / 16)), max(FRAME_SIZE[1], 16 * ceil(height / 16))


@lru_cache(maxsize=64)
def _background(scenario: Scenario, size: tuple[int, int]) -> Part:
    box = Box(-_ORIGIN[0], -_ORIGIN[1], *size)
    return Part(box, [*_zones(plan.wide_layout(scenario), {})], "bg")


def _game_parts(
    scenario: Scenario, states: HostStates, moves: Moves | None, targets: Targets | None
) -> Iterator[Placed]:
    drawn, layout = plan.scenario_plan(scenario), plan.wide_layout(scenario)
    if moves:
        yield from _red_move(layout, moves)
    for zone, hosts in plan.service_zones(drawn).items():
        box = layout.zones[zone]
        stopped = not {*hosts}.isdisjoint(states["stopped_hosts"])
        yield _service(stopped=stopped), (box.x + box.width - ZONE["padding"], box.y)
    for index, host in enumerate(scenario.hosts):
        frame = "line"
        if targets and host in (targets["red_target"], targets["blue_target"]):
            frame = "blue" if targets["blue_target"] == host else "red"
        card = _Card(
            host=host,
            truth=plan.ACCESS[states["access"][index]],
            belief=plan.BELIEF[states["belief"][index]],
            activity=plan.ACTIVITY[states["activity"][index]],
            known=plan.KNOWN[states["known"][index]],
            decoys=tuple(states["decoys"][index]),
            frame=frame,
            broken=host in states["stopped_hosts"],
            is_foothold=host == drawn.foothold,
        )
        yield _card(card), layout.hosts[host]
    if moves and targets:
        yield from _tags(drawn, layout, moves, targets)


def _red_move(layout: plan.Layout, moves: Moves) -> Iterator[Placed]:
    kind, _, place = moves["red"].partition(" ")
    if kind == "DiscoverRemoteSystems":
        zone = layout.zones[place]
        yield _swept_zone(zone.width, zone.height), (zone.x, zone.y)
    elif place in layout.attacks:
        yield _arrow(layout.attacks[place], failed=moves["red_success"] is False), (0, 0)


@lru_cache(maxsize=2)
def _service(*, stopped: bool) -> Part:
    """State of OTService, left of its place in the heading of a zone."""
    text = "OTService stopped" if stopped else "OTService runs"
    color = "red" if stopped else "muted"
    place, size = (0, ZONE["baseline"]), FONT_SIZES["service"]
    shown = Text(place, text, size, color, bold=stopped, anchor="r")
    return Part(Box(-110, 8, 110, 20), [shown], "soft")


@lru_cache(maxsize=64)
def _swept_zone(width: float, height: float) -> Part:
    corners = [(1, 1), (width, 1), (width, height), (1, height), (1, 1)]
    sides = [Line(side, "red", 1.5, (5, 4)) for side in pairwise(corners)]
    return Part(Box(0, 0, width + 2, height + 2), sides)


@lru_cache(maxsize=512)
def _arrow(curve: Curve, *, failed: bool) -> Part:
    points = curve_points(curve)
    (x1, y1), (x2, y2) = points[-2:]
    along_x, along_y = (x2 - x1) / hypot(x2 - x1, y2 - y1), (y2 - y1) / hypot(x2 - x1, y2 - y1)
    x, y = x2 - 10 * along_x, y2 - 10 * along_y
    head = [
        (x2, y2),
        (x - 6 * along_y, y + 6 * along_x),
        (x + 6 * along_y, y - 6 * along_x),
    ]
    shaft = [*points[:-1], ((x1 + x2) / 2, (y1 + y2) / 2)]
    low = [min(axis) - 8 for axis in zip(*points, strict=True)]
    high = [max(axis) + 8 for axis in zip(*points, strict=True)]
    box = Box(low[0], low[1], ceil(high[0] - low[0]), ceil(high[1] - low[1]))
    line = Line(points, "red", 2.4, (5, 5)) if failed else Line(shaft, "red", 2.4)
    return Part(box, [line, Polygon(head, "red")])


def curve_points(curve: Curve) -> list[Point]:
    """60 points of a Bezier curve."""
    t = np.linspace(0, 1, 60)[:, None]
    weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
    return [(x, y) for x, y in (np.hstack(weights) @ np.array(curve)).tolist()]


class _Card(NamedTuple):
    """All that decides how the card of a host looks."""

    host: str
    truth: str
    belief: str
    activity: str
    known: str
    decoys: tuple[str, ...]
    frame: str  # color
    broken: bool
    is_foothold: bool


@lru_cache(maxsize=512)
def _card(card: _Card) -> Part:
    """Card of a host, with a margin of 2 for its outline."""
    box = Box(-2, -2, CARD["width"] + 4, CARD["height"] + 4)
    return Part(box, [*_card_shapes(card)], "soft")


def _card_shapes(card: _Card) -> Iterator[Shape]:
    whole = Box(0, 0, CARD["width"], CARD["height"])
    outline = (card.frame, 1 if card.frame == "line" else 2.2)
    yield Rectangle(whole, CARD["radius"], "red-soft" if card.broken else "surface", outline)
    yield Circle(
        (CARD["known_x"], CARD["known_y"]),
        CARD["known_radius"],
        "red" if card.known == "scanned" else None,
        ("red" if card.known else "line", 1.6),
    )
    title = plan.short_name(card.host, has_label=bool(card.activity) or card.is_foothold)
    name = (CARD["name_x"], CARD["name_baseline"])
    yield Text(name, title, FONT_SIZES["name"], "ink", bold=True)
    yield from _cell(CARD["padding"], "truth", card.truth)
    right = CARD["width"] - CARD["padding"]
    yield from _cell(right - CELL["width"], "blue sees", card.belief)
    if card.activity:
        width = plan.text_box_width(card.activity, SAW)
        yield Rectangle(Box(right - width, SAW["y"], width, SAW["height"]), 4, "blue-soft")
        place = (right - width / 2, SAW["baseline"])
        yield Text(place, card.activity, FONT_SIZES["saw"], "blue", bold=True, anchor="m")
    # Blue cannot clear the foothold: truth and belief always differ there.
    if card.is_foothold and not card.activity:
        yield Text((right, 22), "red's foothold", FONT_SIZES["decoys"], "muted", anchor="r")
    elif not card.is_foothold and card.truth != card.belief:
        x, y = CARD["width"] / 2, CELL["y"] + CELL["height"] / 2
        yield Circle((x, y), CELL["unlike_radius"], "ink")
        for shift in (-1.5, 1.5):
            yield Line([(x - 3, y + shift), (x + 3, y + shift)], "surface", 1.3)
        yield Line([(x + 2, y - 4), (x - 2, y + 4)], "surface", 1.3)
    if card.decoys:
        x, y = CARD["padding"] + 4, CARD["decoys_baseline"] - 3.5
        yield Polygon([(x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)], "blue")
        more = len(card.decoys) - plan.DECOYS_SHOWN
        text = ", ".join(card.decoys[: plan.DECOYS_SHOWN]) + (f" +{more}" if more > 0 else "")
        yield Text((x + 8, CARD["decoys_baseline"]), text, FONT_SIZES["decoys"], "muted")


def _cell(x: float, caption: str, level: str) -> Iterator[Shape]:
    box = Box(x, CELL["y"], CELL["width"], CELL["height"])
    has_color = level in ("user", "privileged")
    yield Rectangle(box, CELL["radius"], level if has_color else "soft")
    if level == "unknown":
        for left in np.arange(x, x + box.width + box.height, 8.5).tolist():
            top = max(box.y, box.y + left - x - box.width)
            bottom = min(box.y + box.height, box.y + left - x)
            yield Line([(left - (y - box.y), y) for y in (top, bottom)], _HATCH_COLOR, 1.2)
    ink = f"{level}-ink" if has_color else "ink" if level == "unknown" else "muted"
    caption_ink = "muted" if level == "unknown" else ink
    left = x + CELL["text_x"]
    yield Text((left, CELL["caption_baseline"]), caption, FONT_SIZES["caption"], caption_ink)
    value = (left, CELL["value_baseline"])
    yield Text(value, plan.LEVELS[level], FONT_SIZES["value"], ink, bold=has_color)


def _tags(
    drawn: plan.ScenarioPlan, layout: plan.Layout, moves: Moves, targets: Targets
) -> Iterator[Placed]:
    """Short names of the actions, on the edges of their targets."""
    blue_word = moves["blue"].split(" ")[0].replace("Decoy", "decoy ").lower()
    x, y = layout.hosts[targets["blue_target"] or drawn.defender]
    tag = _tag("blue", blue_word, moves["blue_success"])
    yield tag, (x + CARD["width"] - TAG["inset"] - _tag_width(tag), y - TAG["above"])
    kind, _, place = moves["red"].partition(" ")
    if kind == "DiscoverRemoteSystems":
        zone = layout.zones[place]
        x, y = zone.x + zone.width / 2 + TAG["zone_x"], zone.y + TAG["zone_y"]
    else:
        x, y = layout.hosts[targets["red_target"] or drawn.foothold]
        x += TAG["inset"]
    yield _tag("red", plan.RED_WORDS[kind], moves["red_success"]), (x, y - TAG["above"])
    if moves["green"]:
        x, y = layout.hosts[moves["green"]]
        tag = _tag("green", plan.GREEN_WORD, None)
        bottom = y + CARD["height"] + TAG["green_y"]
        yield tag, (x + CARD["width"] - TAG["inset"] - _tag_width(tag), bottom - TAG["above"])


def _tag_width(tag: Part) -> float:
    return tag.box.width - 2


@lru_cache(maxsize=128)
def _tag(side: str, word: str, success: bool | None) -> Part:  # noqa: FBT001
    """Tag with a margin of 1 for its outline; hollow if the action failed."""
    width = plan.text_box_width(word + ("" if success is None else " x"), TAG)
    failed = success is False
    ink = side if failed else "surface"
    middle = width / 2 - (0 if success is None else 6)
    place = (middle, TAG["above"] + TAG["baseline"])
    shapes: list[Shape] = [
        Rectangle(
            Box(0, 0, width, TAG["height"]),
            TAG["height"] / 2,
            "surface" if failed else side,
            (side, 1.5),
        ),
        Text(place, word, FONT_SIZES["tag"], ink, bold=True, anchor="m"),
    ]
    x, y = width - 14, TAG["height"] / 2
    if success:
        shapes.append(Line([(x - 3.5, y), (x - 1, y + 3), (x + 3.5, y - 3.5)], ink, 1.6))
    elif failed:
        shapes.append(Line([(x - 3, y - 3), (x + 3, y + 3)], ink, 1.6))
        shapes.append(Line([(x - 3, y + 3), (x + 3, y - 3)], ink, 1.6))
    return Part(Box(-1, -1, width + 2, TAG["height"] + 2), shapes)


# The panel of moves


def _headline(batch: Batch, game: int) -> tuple[str, str, str]:
    """Step, reward, and red agent with edition."""
    state = batch.true_state[game]
    red, edition = [*RED_AGENTS][state["red"]], [*EDITIONS][state["edition"]]
    step = batch.core.steps(game)
    reward = f"{batch.rewards[game]:.1f}" if step else ""
    horizon = np.broadcast_to(batch.config.max_steps, batch.games)[game]
    return f"Step {step} of {horizon}", reward, f"{red}, {edition}"


def _panel(headline: tuple[str, str, str], moves: Moves | None) -> Iterator[Placed]:
    blue = red = green = ("", "")
    if moves:
        exploit = moves["exploit"]
        how = f"{exploit}{_DETECTED[moves['detected']]}" if exploit else ""
        blue = moves["blue"], _WORDS[moves["blue_success"]]
        red = moves["red"], "; ".join(filter(None, [_WORDS[moves["red_success"]], how]))
        green = (f"PortScan {moves['green']}" if moves["green"] else ""), ""
    x = MARGIN
    for part in (
        _headline_part(*headline),
        _move_part("blue", _PANEL_WIDTHS[1], *blue),
        _move_part("red", _PANEL_WIDTHS[2], *red),
        _move_part("green", _PANEL_WIDTHS[3], *green),
    ):
        yield part, (x, MARGIN)
        x += round(part.box.width) + _PANEL_GAP


@lru_cache(maxsize=256)
def _headline_part(step: str, reward: str, game: str) -> Part:
    texts = [Text((4, 16), step, 13, "muted"), Text((4, 65), game, 12, "muted")]
    if reward:
        color = "red" if float(reward) < 0 else "ink"
        texts.append(Text((4, 44), reward, 24, color, bold=True))
        texts.append(Text((72, 44), "reward", 12, "muted"))
    return Part(Box(0, 0, _PANEL_WIDTHS[0], PANEL_HEIGHT), texts, "bg")


@lru_cache(maxsize=256)
def _move_part(side: str, width: float, move: str, fate: str) -> Part:
    box = Box(0, 0, width, PANEL_HEIGHT)
    shapes: list[Shape] = [
        Rectangle(box, 6, "soft"),
        Rectangle(Box(0, 0, 3, PANEL_HEIGHT), 0, side),
        Text((14, 19), side.capitalize(), 12, side, bold=True),
        Text((14, 39), move, 14, "ink", bold=True),
        Text((14, 59), fate, 13, "muted"),
    ]
    return Part(box, shapes, "bg")
