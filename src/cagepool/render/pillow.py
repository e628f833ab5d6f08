"""Paints drawings with Pillow: frames of games, and pictures of scenarios.

Pillow does not antialias shapes: each part is painted `SCALE` times larger and averaged down.
Painted parts are cached, so that a frame costs little more than the parts that changed.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from math import ceil

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from cagepool.render.drawing import (
    Circle,
    Line,
    Link,
    Part,
    Placed,
    Polygon,
    Rectangle,
    Shape,
    Text,
    curve_points,
    frame_parts,
    scenario_part,
)
from cagepool.render.plan import Box, Point, light_color
from cagepool.scenarios import Scenario
from cagepool.sim.batch import Batch
from cagepool.types import Bytes, Float64s

SCALE = 3


def draw_frames(batch: Batch, games: Sequence[int]) -> Iterator[Bytes]:
    """Draw games as arrays, (height, width, 3): see `frame_parts`."""
    for parts in frame_parts(batch, games):
        yield np.array(paint(parts))


def scenario_png(scenario: Scenario) -> bytes:
    """A scenario as a PNG image."""
    file = BytesIO()
    paint([(scenario_part(scenario), (0, 0))]).save(file, "PNG")
    return file.getvalue()


def paint(parts: Sequence[Placed]) -> Image.Image:
    """An image of the size of the first part."""
    (first, (left, top)), *others = parts
    image = _painted(first).copy()
    left, top = left + first.box.x, top + first.box.y
    for part, (x, y) in others:
        corner = (round(x + part.box.x - left), round(y + part.box.y - top))
        sprite = _painted(part)
        image.paste(sprite, corner, sprite if sprite.mode == "RGBA" else None)
    return image


@lru_cache(maxsize=1024)
def _painted(part: Part) -> Image.Image:
    size = (round(part.box.width * SCALE), round(part.box.height * SCALE))
    if part.background:
        image = Image.new("RGB", size, light_color(part.background))
    else:
        image = Image.new("RGBA", size, (255, 255, 255, 0))
    painter = _ShapePainter(image, part.box)
    for shape in part.shapes:
        painter.paint(shape)
    image = image.reduce(SCALE)
    for shape in part.shapes:
        if isinstance(shape, Text):
            _write(image, part.box, shape)
    return image


def _write(image: Image.Image, box: Box, text: Text) -> None:
    mask, ascent = _text_mask(text.text, text.size, bold=text.bold)
    left = text.place[0] - box.x - mask.width * {"l": 0, "m": 0.5, "r": 1}[text.anchor]
    corner = (round(left), round(text.place[1] - box.y) - ascent)
    image.paste(light_color(text.color), corner, mask)


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


class _ShapePainter:
    """Paints shapes in an enlarged image of a box."""

    def __init__(self, image: Image.Image, box: Box) -> None:
        self._draw = ImageDraw.Draw(image)
        self._box = box

    def paint(self, shape: Shape) -> None:
        match shape:
            case Rectangle():
                self._rectangle(shape)
            case Circle(center, radius, fill, outline):
                color, width = outline or (None, 0)
                self._draw.circle(
                    self._scaled(center),
                    (radius + width / 2) * SCALE,  # Pillow draws an outline inside
                    fill and light_color(fill),
                    color and light_color(color),
                    round(width * SCALE),
                )
            case Line(points, color, width, dashes):
                for piece in _dashes(np.array(points), *dashes) if dashes else [points]:
                    self._line(piece, color, width)
            case Link(curve, color):
                self._line(curve_points(curve), color, 1)
            case Polygon(corners, fill):
                self._draw.polygon([*map(self._scaled, corners)], light_color(fill))

    def _rectangle(self, shape: Rectangle) -> None:
        """Paint an outline that is centered on the edge, as in SVG."""
        box, (color, width) = shape.box, shape.outline or (None, 0)
        half = width / 2
        corners = [
            self._scaled((box.x - half, box.y - half)),
            self._scaled((box.x + box.width + half, box.y + box.height + half)),
        ]
        self._draw.rounded_rectangle(
            corners,
            (shape.radius + half) * SCALE,
            light_color(shape.fill),
            color and light_color(color),
            round(width * SCALE),
        )

    def _line(self, points: Sequence[Point], color: str, width: float) -> None:
        scaled = [*map(self._scaled, points)]
        self._draw.line(scaled, light_color(color), max(1, round(width * SCALE)), joint="curve")

    def _scaled(self, point: Point) -> Point:
        return (point[0] - self._box.x) * SCALE, (point[1] - self._box.y) * SCALE


def _dashes(points: Float64s, length: float, gap: float) -> Iterator[list[Point]]:
    """Pieces of a line that is given by its points, (n, 2)."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    distances = np.concatenate([[0.0], np.cumsum(steps)])
    for start in np.arange(0, distances[-1], length + gap):
        along = np.linspace(start, min(start + length, distances[-1]), 6)
        x, y = (np.interp(along, distances, axis).tolist() for axis in points.T)
        yield [*zip(x, y, strict=True)]
