"""One drawing, painted as SVG and with Pillow."""

from xml.etree import ElementTree

import numpy as np
import pytest

from cagepool.render import pillow, svg
from cagepool.render.drawing import FRAME_SIZE, frame_parts, scenario_part
from cagepool.render.plan import Box, light_color, wide_layout
from cagepool.scenarios import CAGE2
from tests.sim.games import play_step, start_batch

SVG = "{http://www.w3.org/2000/svg}"


def texts(image: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(image).iter(f"{SVG}text")]


def test_a_frame_is_painted_as_svg_too() -> None:
    batch = start_batch(1, red="given")
    play_step(batch, "DecoyTomcat User1", "DiscoverRemoteSystems User")
    (parts,) = frame_parts(batch, [0])
    image = svg.paint(parts)
    assert {*CAGE2.hosts, "DecoyTomcat User1", "sweep", "OTService runs"} <= {*texts(image)}
    root = ElementTree.fromstring(image)
    assert (root.get("viewBox"), root.get("width")) == ("0 0 960 576", "960")
    assert pillow.paint(parts).size == FRAME_SIZE


@pytest.mark.parametrize("name", ["User0", "Op_Server0"])
def test_both_painters_put_a_card_in_the_same_place(name: str) -> None:
    part = scenario_part(CAGE2)
    x, y = wide_layout().hosts[name]
    cards = [
        Box(*(float(rect.get(key, "nan")) for key in ("x", "y", "width", "height")))
        for rect in ElementTree.fromstring(svg.paint([(part, (0, 0))])).iter(f"{SVG}rect")
        if rect.get("fill") == light_color("surface")
    ]
    (card,) = (card for card in cards if (card.x, card.y) == (x, y))
    pixels = np.array(pillow.paint([(part, (0, 0))]))
    left, top = round(x - part.box.x), round(y - part.box.y)
    bottom, right = top + round(card.height) - 5, left + round(card.width) - 5
    surface = bytes.fromhex(light_color("surface")[1:])
    assert bytes(pixels[bottom, right]) == surface
    assert bytes(pixels[bottom, right + 10]) != surface


def test_a_page_of_a_scenario_fits_any_width() -> None:
    page = svg.scenario_html(CAGE2)
    assert "max-width: 100%" in page
    assert 'name="viewport"' in page
