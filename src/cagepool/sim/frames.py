"""Draws games as RGB frames with Pillow, by the layout that the replay of the report has too.

Pillow does not antialias shapes: each part is drawn `SCALE` times larger and averaged down. Parts
are cached, so that a frame costs little more than the parts that changed since the last one.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from io import BytesIO
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from cagepool.scenarios import Scenario
from cagepool.sim import network_layout as layout
from cagepool.sim.batch import Batch
from cagepool.sim.names import EDITIONS, RED_AGENTS
from cagepool.sim.network_layout import CARD, CELL, SAW, TAG, ZONE, Box, Curve, Point
from cagepool.sim.network_picture import draw_network
from cagepool.sim.red_observation import red_knowledge
from cagepool.sim.render import (
    HostStates,
    Moves,
    Targets,
    game_scenario,
    host_states,
    last_moves,
    last_targets,
)
from cagepool.types import Bytes, Float64s

SCALE = 3
FRAME_SIZE = (960, 576)
"""Size of a frame, unless the network needs more: multiples of 16, as video encoders want them."""
MARGIN = 8
PANEL_HEIGHT = 70
PANEL_GAP = 12
PANEL_WIDTHS = (170, 236, 330, 172)  # step, blue, red, green
_WORDS = {True: "succeeded", False: "failed", None: ""}
_DETECTED = {True: ", detected", False: ", not detected", None: ""}
_COLORS = {name: light for name, (light, _) in layout.COLORS.items()}
_ORIGIN = (MARGIN, MARGIN + PANEL_HEIGHT + MARGIN)  # of the network in a frame


def draw_frames(batch: Batch, games: Sequence[int]) -> Iterator[Bytes]:
    """Draw games as arrays, (height, width, 3): their last moves above the network after them.

    All frames of a batch have one size, `FRAME_SIZE` or what its largest network needs.
    """
    known = red_knowledge(batch)
    size = frame_size(batch.scenarios)
    for game in games:
        states = host_states(batch, game, known)
        has_moves = batch.core.steps(game) > 0  # otherwise the moves are those of the last episode
        moves = last_moves(batch, game) if has_moves else None
        targets = last_targets(batch, game) if has_moves else None
        painter = _painter(game_scenario(batch, game), size)
        frame = painter.background.copy()
        _draw_panel(frame, _headline(batch, game), moves)
        painter.draw(frame, states, moves, targets)
        yield np.array(frame)


@lru_cache(maxsize=16)
def frame_size(scenarios: tuple[Scenario, ...]) -> tuple[int, int]:
    """Width and height of frames of these scenarios."""
    layouts = [layout.wide_layout(scenario) for scenario in scenarios]
    width = max(drawing.width for drawing in layouts) + 2 * MARGIN
    height = max(drawing.height for drawing in layouts) + _ORIGIN[1] + MARGIN
    return max(FRAME_SIZE[0], 16 * ceil(width / 16)), max(FRAME_SIZE[1], 16 * ceil(height / 16))


class _Text(NamedTuple):
    """A text at its baseline, from its left end, middle or right end (l, m, r)."""

    place: Point
    text: str
    size: float
    color: str
    bold: bool = False
    anchor: str = "l"


class _Sprite:
    """Picture of a box of the drawing, transparent without a background; texts are above shapes."""

    def __init__(self, box: Box, background: str | None = None) -> None:
        self._x, self._y = box.x, box.y
        size = (round(box.width * SCALE), round(box.height * SCALE))
        if background:
            self._image = Image.new("RGB", size, background)
        else:
            self._image = Image.new("RGBA", size, (255, 255, 255, 0))
        self._draw = ImageDraw.Draw(self._image)
        self._texts: list[_Text] = []

    def image(self) -> Image.Image:
        image = self._image.reduce(SCALE)
        for place, text, size, color, bold, anchor in self._texts:
            mask, ascent = _text_mask(text, size, bold=bold)
            left = place[0] - self._x - mask.width * {"l": 0, "m": 0.5, "r": 1}[anchor]
            image.paste(color, (round(left), round(place[1] - self._y) - ascent), mask)
        return image

    def text(self, *texts: _Text) -> None:
        self._texts += texts

    def rectangle(
        self,
        box: Box,
        radius: float,
        fill: str | None,
        outline: tuple[str, float] | None = None,
    ) -> None:
        """Rectangle whose outline, a color and a width, is centered on its edge, as in SVG."""
        color, width = outline or (None, 0)
        half = width / 2
        corners = [
            self._scaled((box.x - half, box.y - half)),
            self._scaled((box.x + box.width + half, box.y + box.height + half)),
        ]
        self._draw.rounded_rectangle(
            corners, (radius + half) * SCALE, fill, color, round(width * SCALE)
        )

    def circle(
        self, center: Point, radius: float, fill: str | None, outline: str | None = None
    ) -> None:
        self._draw.circle(self._scaled(center), radius * SCALE, fill, outline, round(1.6 * SCALE))

    def line(self, points: Sequence[Point] | Float64s, fill: str, width: float) -> None:
        scaled = [self._scaled((x, y)) for x, y in points]
        self._draw.line(scaled, fill, max(1, round(width * SCALE)), joint="curve")

    def polygon(self, corners: Sequence[Point] | Float64s, fill: str) -> None:
        self._draw.polygon([self._scaled((x, y)) for x, y in corners], fill)

    def _scaled(self, point: Point) -> Point:
        return (point[0] - self._x) * SCALE, (point[1] - self._y) * SCALE


class _Card(NamedTuple):
    """All that decides how the card of a host looks."""

    host: str
    truth: str
    belief: str
    activity: str
    known: str
    decoys: tuple[str, ...]
    frame: str  # name of the color
    broken: bool
    is_foothold: bool


@lru_cache(maxsize=512)
def _text_mask(text: str, size: float, *, bold: bool) -> tuple[Image.Image, int]:
    """Mask of a text, and the pixels above its baseline."""
    font = _font(size)
    ascent, descent = (ceil(size), ceil(size / 2))
    width = ceil(font.getlength(text) / SCALE) + 1
    mask = Image.new("L", (width * SCALE, (ascent + descent) * SCALE))
    stroke = size * SCALE / 60 if bold else 0  # the font of Pillow has one weight
    ImageDraw.Draw(mask).text(
        (0, ascent * SCALE), text, 255, font, anchor="ls", stroke_width=stroke
    )
    return mask.reduce(SCALE), ascent


@lru_cache(maxsize=64)
def _font(size: float) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size * SCALE)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow must be compiled with FreeType"
    return font


# The network before a game


def scenario_png(scenario: Scenario) -> bytes:
    """The network as a PNG image: see `network_picture.draw_network`."""
    drawing = layout.wide_layout(scenario)
    width, height = drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN
    canvas = _PictureCanvas(Box(-MARGIN, -MARGIN, width, height), _COLORS["bg"])
    draw_network(canvas, scenario)
    file = BytesIO()
    canvas.image().save(file, "PNG")
    return file.getvalue()


class _PictureCanvas(_Sprite):
    """Canvas of `draw_network`."""

    def curve(self, curve: Curve, color: str) -> None:  # noqa: ARG002 - lines are opaque here
        self.line(_points(curve), "#c0c4c6", 1)  # muted, at 35 % opacity on soft

    def write(self, place: Point, text: str, size: float, color: str, *, bold: bool) -> None:
        self.text(_Text(place, text, size, color, bold=bold))


# The network


class _NetworkPainter:
    """Draws the games of one scenario; caches what does not change."""

    def __init__(self, scenario: Scenario, size: tuple[int, int]) -> None:
        self._hosts = scenario.hosts
        self._plan = layout.network_plan(scenario)
        self._layout = layout.wide_layout(scenario)
        self._services = layout.service_zones(self._plan)
        self._size = size
        self._swept_zones: dict[str, Image.Image] = {}
        self._attacks: dict[tuple[str, bool], tuple[Image.Image, Point]] = {}

    def draw(
        self, frame: Image.Image, states: HostStates, moves: Moves | None, targets: Targets | None
    ) -> None:
        """Draw the network above its background."""
        places = self._layout
        red_kind, _, red_place = (moves["red"] if moves else "").partition(" ")
        is_sweep = red_kind == "DiscoverRemoteSystems"
        if is_sweep:
            _paste(frame, self._swept_zone(red_place), _corner(places.zones[red_place]))
        elif moves and red_place in places.attacks:
            _paste(frame, *self._attack(red_place, failed=moves["red_success"] is False))
        for zone, hosts in self._services.items():
            if not {*hosts}.isdisjoint(states["stopped_hosts"]):
                box = places.zones[zone]
                _paste(frame, _service(box.width, stopped=True), _corner(box))
        for index, host in enumerate(self._hosts):
            x, y = places.hosts[host]
            _paste(frame, _card(self._card_state(host, index, states, targets)), (x - 2, y - 2))
        if moves and targets:
            for sprite, place in self._tags(moves, targets):
                _paste(frame, sprite, place)

    def _card_state(
        self, host: str, index: int, states: HostStates, targets: Targets | None
    ) -> _Card:
        frame = "line"
        if targets and host in (targets["red_target"], targets["blue_target"]):
            frame = "blue" if targets["blue_target"] == host else "red"
        return _Card(
            host=host,
            truth=layout.ACCESS[states["access"][index]],
            belief=layout.BELIEF[states["belief"][index]],
            activity=layout.ACTIVITY[states["activity"][index]],
            known=layout.KNOWN[states["known"][index]],
            decoys=tuple(states["decoys"][index]),
            frame=frame,
            broken=host in states["stopped_hosts"],
            is_foothold=host == self._plan.foothold,
        )

    @cached_property
    def background(self) -> Image.Image:
        """All that never changes: zones, their names, links, and the service while it runs."""
        whole = Box(-_ORIGIN[0], -_ORIGIN[1], *self._size)
        sprite = _Sprite(whole, _COLORS["bg"])
        for name, box in self._layout.zones.items():
            sprite.rectangle(box, ZONE["radius"], _COLORS["soft"])
            place = (box.x + ZONE["padding"], box.y + ZONE["baseline"])
            sprite.text(_Text(place, name, layout.FONT_SIZES["zone"], _COLORS["muted"], bold=True))
        for curve in self._layout.links:
            sprite.line(_points(curve), "#c0c4c6", 1)  # muted, at 35 % opacity on soft
        frame = sprite.image()
        for zone in self._services:
            box = self._layout.zones[zone]
            _paste(frame, _service(box.width, stopped=False), _corner(box))
        return frame

    def _swept_zone(self, name: str) -> Image.Image:
        if name not in self._swept_zones:
            self._swept_zones[name] = _dashed_frame(self._layout.zones[name])
        return self._swept_zones[name]

    def _attack(self, target: str, *, failed: bool) -> tuple[Image.Image, Point]:
        if (target, failed) not in self._attacks:
            curve = self._layout.attacks[target]
            self._attacks[target, failed] = _arrow(_points(curve), is_dashed=failed)
        return self._attacks[target, failed]

    def _tags(self, moves: Moves, targets: Targets) -> Iterator[tuple[Image.Image, Point]]:
        """Short names of the actions, on the edges of their targets."""
        places = self._layout
        blue_word = moves["blue"].split(" ")[0].replace("Decoy", "decoy ").lower()
        x, y = places.hosts[targets["blue_target"] or self._plan.defender]
        right = x + CARD["width"] - TAG["inset"]
        sprite, width = _tag("blue", blue_word, moves["blue_success"])
        yield sprite, (right - width, y - TAG["above"])
        kind, _, place = moves["red"].partition(" ")
        sprite, _ = _tag("red", layout.RED_WORDS[kind], moves["red_success"])
        if kind == "DiscoverRemoteSystems":
            zone = places.zones[place]
            x, y = zone.x + zone.width / 2 + TAG["zone_x"], zone.y + TAG["zone_y"]
        else:
            x, y = places.hosts[targets["red_target"] or self._plan.foothold]
            x += TAG["inset"]
        yield sprite, (x, y - TAG["above"])
        if moves["green"]:
            x, y = places.hosts[moves["green"]]
            sprite, width = _tag("green", layout.GREEN_WORD, None)
            bottom = y + CARD["height"] + TAG["green_y"]
            yield sprite, (x + CARD["width"] - TAG["inset"] - width, bottom - TAG["above"])


@lru_cache(maxsize=64)
def _painter(scenario: Scenario, size: tuple[int, int]) -> _NetworkPainter:
    return _NetworkPainter(scenario, size)


@lru_cache(maxsize=32)
def _service(zone_width: float, *, stopped: bool) -> Image.Image:
    """State of OTService in the heading of a zone; covers the other state."""
    sprite = _Sprite(Box(0, 0, zone_width, ZONE["heading"]))
    right = zone_width - ZONE["padding"]
    middle = right - 110
    sprite.rectangle(Box(middle, 8, right - middle, 20), 0, _COLORS["soft"])
    text = "OTService stopped" if stopped else "OTService runs"
    color = _COLORS["red" if stopped else "muted"]
    size = layout.FONT_SIZES["service"]
    sprite.text(_Text((right, ZONE["baseline"]), text, size, color, bold=stopped, anchor="r"))
    return sprite.image()


def _dashed_frame(box: Box) -> Image.Image:
    """Frame of a zone that red has swept."""
    sprite = _Sprite(Box(0, 0, box.width + 2, box.height + 2))
    corners = [(1, 1), (box.width, 1), (box.width, box.height), (1, box.height), (1, 1)]
    for start, end in pairwise(corners):
        for dash in _dashes(np.linspace(start, end, 200), 5, 4):
            sprite.line(dash, _COLORS["red"], 1.5)
    return sprite.image()


def _arrow(points: Float64s, *, is_dashed: bool) -> tuple[Image.Image, Point]:
    """Arrow along points, (n, 2), and its place."""
    tip, before = points[-1], points[-2]
    shaft = np.vstack([points[:-1], (tip + before) / 2])
    low, high = points.min(axis=0) - 8, points.max(axis=0) + 8
    sprite = _Sprite(Box(low[0], low[1], *np.ceil(high - low).tolist()))
    for dash in _dashes(points, 5, 5) if is_dashed else [shaft]:
        sprite.line(dash, _COLORS["red"], 2.4)
    along = (tip - before) / np.linalg.norm(tip - before)
    across = np.array([-along[1], along[0]])
    tail = tip - 10 * along
    sprite.polygon(np.stack([tip, tail + 6 * across, tail - 6 * across]), _COLORS["red"])
    return sprite.image(), (low[0], low[1])


@lru_cache(maxsize=256)
def _card(card: _Card) -> Image.Image:
    """Card of a host, with a margin of 2 for its outline."""
    sprite = _Sprite(Box(-2, -2, CARD["width"] + 4, CARD["height"] + 4), _COLORS["soft"])
    outline_width = 1 if card.frame == "line" else 2.2
    fill = _COLORS["red-soft" if card.broken else "surface"]
    whole = Box(0, 0, CARD["width"], CARD["height"])
    sprite.rectangle(whole, CARD["radius"], fill, (_COLORS[card.frame], outline_width))
    sprite.circle(
        (CARD["known_x"], CARD["known_y"]),
        CARD["known_radius"] + 0.8,  # with half of the outline, which Pillow draws inside
        _COLORS["red"] if card.known == "scanned" else None,
        _COLORS["red" if card.known else "line"],
    )
    name = (CARD["name_x"], CARD["name_baseline"])
    title = layout.short_name(card.host, has_label=bool(card.activity) or card.is_foothold)
    sprite.text(_Text(name, title, layout.FONT_SIZES["name"], _COLORS["ink"], bold=True))
    _draw_cell(sprite, CARD["padding"], "truth", card.truth)
    right = CARD["width"] - CARD["padding"] - CELL["width"]
    _draw_cell(sprite, right, "blue sees", card.belief)
    if card.activity:
        _draw_activity(sprite, card.activity)
    # Blue cannot clear the foothold: truth and belief always differ there.
    if card.is_foothold and not card.activity:
        place = (CARD["width"] - CARD["padding"], 22)
        size = layout.FONT_SIZES["decoys"]
        sprite.text(_Text(place, "red's foothold", size, _COLORS["muted"], anchor="r"))
    elif not card.is_foothold and card.truth != card.belief:
        _draw_unlike(sprite)
    if card.decoys:
        _draw_decoys(sprite, card.decoys)
    return sprite.image()


def _draw_cell(sprite: _Sprite, x: float, caption: str, level: str) -> None:
    box = Box(x, CELL["y"], CELL["width"], CELL["height"])
    has_color = level in ("user", "privileged")
    sprite.rectangle(box, CELL["radius"], _COLORS[level if has_color else "soft"])
    if level == "unknown":
        for left in np.arange(box.x, box.x + box.width + box.height, 8.5):
            top = max(box.y, box.y + left - box.x - box.width)
            bottom = min(box.y + box.height, box.y + left - box.x)
            ends = [(left - (y - box.y), y) for y in (top, bottom)]
            sprite.line(ends, "#b4b9bd", 1.2)  # muted, at 55 % opacity on soft
    ink = _COLORS[f"{level}-ink" if has_color else "ink" if level == "unknown" else "muted"]
    caption_ink = _COLORS["muted"] if level == "unknown" else ink
    left = x + CELL["text_x"]
    sprite.text(
        _Text((left, CELL["caption_baseline"]), caption, layout.FONT_SIZES["caption"], caption_ink)
    )
    place = (left, CELL["value_baseline"])
    size = layout.FONT_SIZES["value"]
    sprite.text(_Text(place, layout.LEVELS[level], size, ink, bold=has_color))


def _draw_activity(sprite: _Sprite, text: str) -> None:
    width = layout.text_box_width(text, SAW)
    x = CARD["width"] - CARD["padding"] - width
    sprite.rectangle(Box(x, SAW["y"], width, SAW["height"]), 4, _COLORS["blue-soft"])
    place = (x + width / 2, SAW["baseline"])
    size = layout.FONT_SIZES["saw"]
    sprite.text(_Text(place, text, size, _COLORS["blue"], bold=True, anchor="m"))


def _draw_unlike(sprite: _Sprite) -> None:
    x, y = CARD["width"] / 2, CELL["y"] + CELL["height"] / 2
    sprite.circle((x, y), CELL["unlike_radius"], _COLORS["ink"])
    for shift in (-1.5, 1.5):
        sprite.line([(x - 3, y + shift), (x + 3, y + shift)], _COLORS["surface"], 1.3)
    sprite.line([(x + 2, y - 4), (x - 2, y + 4)], _COLORS["surface"], 1.3)


def _draw_decoys(sprite: _Sprite, names: Sequence[str]) -> None:
    x, y = CARD["padding"] + 4, CARD["decoys_baseline"] - 3.5
    diamond = [(x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)]
    sprite.polygon(diamond, _COLORS["blue"])
    more = len(names) - layout.DECOYS_SHOWN
    text = ", ".join(names[: layout.DECOYS_SHOWN]) + (f" +{more}" if more > 0 else "")
    place = (x + 8, CARD["decoys_baseline"])
    sprite.text(_Text(place, text, layout.FONT_SIZES["decoys"], _COLORS["muted"]))


@lru_cache(maxsize=128)
def _tag(side: str, word: str, success: bool | None) -> tuple[Image.Image, float]:  # noqa: FBT001
    """Tag and its width; hollow if the action failed."""
    width = layout.text_box_width(word + ("" if success is None else " x"), TAG)
    sprite = _Sprite(Box(-1, -1, width + 2, TAG["height"] + 2))
    failed = success is False
    box = Box(0, 0, width, TAG["height"])
    fill = _COLORS["surface" if failed else side]
    sprite.rectangle(box, TAG["height"] / 2, fill, (_COLORS[side], 1.5))
    ink = _COLORS[side if failed else "surface"]
    middle = width / 2 - (0 if success is None else 6)
    baseline = TAG["above"] + TAG["baseline"]
    sprite.text(
        _Text((middle, baseline), word, layout.FONT_SIZES["tag"], ink, bold=True, anchor="m")
    )
    if success is not None:
        _draw_mark(sprite, (width - 14, TAG["height"] / 2), ink, success=success)
    return sprite.image(), width


def _draw_mark(sprite: _Sprite, center: Point, color: str, *, success: bool) -> None:
    x, y = center
    if success:
        sprite.line([(x - 3.5, y), (x - 1, y + 3), (x + 3.5, y - 3.5)], color, 1.6)
    else:
        sprite.line([(x - 3, y - 3), (x + 3, y + 3)], color, 1.6)
        sprite.line([(x - 3, y + 3), (x + 3, y - 3)], color, 1.6)


# The panel of moves


def _headline(batch: Batch, game: int) -> tuple[str, str, str]:
    """Step, reward, and red agent with edition."""
    state = batch.true_state[game]
    red, edition = [*RED_AGENTS][state["red"]], [*EDITIONS][state["edition"]]
    step = batch.core.steps(game)
    reward = f"{batch.rewards[game]:.1f}" if step else ""
    horizon = np.broadcast_to(batch.config.max_steps, batch.games)[game]
    return f"Step {step} of {horizon}", reward, f"{red}, {edition}"


def _draw_panel(frame: Image.Image, headline: tuple[str, str, str], moves: Moves | None) -> None:
    blue = red = green = ("", "")
    if moves:
        exploit = moves["exploit"]
        how = f"{exploit}{_DETECTED[moves['detected']]}" if exploit else ""
        blue = moves["blue"], _WORDS[moves["blue_success"]]
        red = moves["red"], "; ".join(filter(None, [_WORDS[moves["red_success"]], how]))
        green = (f"PortScan {moves['green']}" if moves["green"] else ""), ""
    boxes = [
        _headline_box(*headline),
        _move_box("blue", *blue),
        _move_box("red", *red),
        _move_box("green", *green),
    ]
    x = MARGIN
    for width, box in zip(PANEL_WIDTHS, boxes, strict=True):
        frame.paste(box, (x, MARGIN))
        x += width + PANEL_GAP


def _headline_box(step: str, reward: str, game: str) -> Image.Image:
    sprite = _Sprite(Box(0, 0, PANEL_WIDTHS[0], PANEL_HEIGHT), _COLORS["bg"])
    sprite.text(_Text((4, 16), step, 13, _COLORS["muted"]))
    if reward:
        color = _COLORS["red" if float(reward) < 0 else "ink"]
        sprite.text(_Text((4, 44), reward, 24, color, bold=True))
        sprite.text(_Text((72, 44), "reward", 12, _COLORS["muted"]))
    sprite.text(_Text((4, 65), game, 12, _COLORS["muted"]))
    return sprite.image()


@lru_cache(maxsize=256)
def _move_box(side: str, move: str, fate: str) -> Image.Image:
    width = PANEL_WIDTHS[("", "blue", "red", "green").index(side)]
    sprite = _Sprite(Box(0, 0, width, PANEL_HEIGHT), _COLORS["bg"])
    sprite.rectangle(Box(0, 0, width, PANEL_HEIGHT), 6, _COLORS["soft"])
    sprite.rectangle(Box(0, 0, 3, PANEL_HEIGHT), 0, _COLORS[side])
    sprite.text(_Text((14, 19), side.capitalize(), 12, _COLORS[side], bold=True))
    sprite.text(_Text((14, 39), move, 14, _COLORS["ink"], bold=True))
    sprite.text(_Text((14, 59), fate, 13, _COLORS["muted"]))
    return sprite.image()


# Shapes


def _paste(frame: Image.Image, sprite: Image.Image, place: Point) -> None:
    """Paste a sprite at a place of the network."""
    corner = (round(_ORIGIN[0] + place[0]), round(_ORIGIN[1] + place[1]))
    frame.paste(sprite, corner, sprite if sprite.mode == "RGBA" else None)


def _corner(box: Box) -> Point:
    return box.x, box.y


def _points(curve: Curve) -> Float64s:
    """Points of a Bezier curve, (60, 2)."""
    t = np.linspace(0, 1, 60)[:, None]
    weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
    points: Float64s = np.hstack(weights) @ np.array(curve)
    return points


def _dashes(points: Float64s, length: float, gap: float) -> list[Float64s]:
    """Pieces of a line that is given by its points, (n, 2)."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    distances = np.concatenate([[0.0], np.cumsum(steps)])
    starts = np.arange(0, distances[-1], length + gap)
    ends = np.minimum(starts + length, distances[-1])
    return [
        np.column_stack(
            [np.interp(np.linspace(start, end, 6), distances, axis) for axis in points.T]
        )
        for start, end in zip(starts, ends, strict=True)
    ]
