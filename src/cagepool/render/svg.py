"""Paints drawings as SVG."""

from collections.abc import Iterator, Sequence
from html import escape

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
    scenario_part,
)
from cagepool.render.plan import Point, light_color
from cagepool.render.text import scenario_text
from cagepool.scenarios import Scenario

_ANCHORS = {"l": "", "m": ' text-anchor="middle"', "r": ' text-anchor="end"'}


def scenario_svg(scenario: Scenario) -> str:
    """A scenario as an SVG image."""
    return paint([(scenario_part(scenario), (0, 0))])


def scenario_html(scenario: Scenario) -> str:
    """A scenario as a page of any width: the image and the text."""
    name = escape(scenario.name)
    style = (
        f"body {{ margin: 24px; background: {light_color('bg')}; }} "
        "svg { display: block; max-width: 100%; height: auto; } pre { overflow-x: auto; }"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{style}</style></head>\n<body>\n"
        f"{scenario_svg(scenario)}<pre>{escape(scenario_text(scenario))}</pre>\n</body>\n</html>\n"
    )


def paint(parts: Sequence[Placed]) -> str:
    """An image of the size of the first part."""
    (first, place), *_ = parts
    box = first.box
    size = f"{box.width:g} {box.height:g}"
    view = f"{box.x + place[0]:g} {box.y + place[1]:g} {size}"
    lines = (line for part, place in parts for line in _part_lines(part, place))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" width="{box.width:g}" '
        f'height="{box.height:g}" font-family="system-ui, sans-serif">'
    )
    return "\n".join([head, *lines, "</svg>"]) + "\n"


def _part_lines(part: Part, place: Point) -> Iterator[str]:
    yield f'<g transform="translate({place[0]:g} {place[1]:g})">'
    if part.background:
        yield _rectangle(Rectangle(part.box, 0, part.background))
    for shape in sorted(part.shapes, key=lambda shape: isinstance(shape, Text)):
        yield _element(shape)
    yield "</g>"


def _element(shape: Shape) -> str:
    match shape:
        case Rectangle():
            return _rectangle(shape)
        case Circle((x, y), radius, fill, outline):
            style = f'fill="{light_color(fill) if fill else "none"}"{_stroke(outline)}'
            return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {style}/>'
        case Line(points, color, width, dashes):
            dash = f' stroke-dasharray="{dashes[0]:g} {dashes[1]:g}"' if dashes else ""
            style = f'fill="none"{_stroke((color, width))}{dash}'
            return f'<polyline points="{_points(points)}" {style}/>'
        case Link((start, *rest), color):
            path = f"M{_points([start])}C{_points(rest)}"
            return f'<path d="{path}" fill="none"{_stroke((color, 1))}/>'
        case Polygon(corners, fill):
            return f'<polygon points="{_points(corners)}" fill="{light_color(fill)}"/>'
        case Text((x, y), text, size, color, bold, anchor):
            weight = ' font-weight="600"' if bold else ""
            style = f'font-size="{size:g}" fill="{light_color(color)}"{weight}{_ANCHORS[anchor]}'
            return f'<text x="{x:g}" y="{y:g}" {style}>{escape(text)}</text>'


def _rectangle(shape: Rectangle) -> str:
    box = shape.box
    size = f'width="{box.width:g}" height="{box.height:g}" rx="{shape.radius:g}"'
    style = f'fill="{light_color(shape.fill)}"{_stroke(shape.outline)}'
    return f'<rect x="{box.x:g}" y="{box.y:g}" {size} {style}/>'


def _stroke(outline: tuple[str, float] | None) -> str:
    return f' stroke="{light_color(outline[0])}" stroke-width="{outline[1]:g}"' if outline else ""


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{x:g} {y:g}" for x, y in points)
