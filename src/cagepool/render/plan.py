"""Layout of a drawn scenario: positions, sizes, colors and words.

Drawings (`render.drawing`) and the replay of the report (`report/static/drawing.js`) have this one
layout. Lengths are in pixels of a frame; a baseline is the y of a text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import accumulate
from math import ceil, log
from typing import Any, Final, TypeAlias

from cagepool.scenarios import CAGE2, Scenario

Point: TypeAlias = tuple[float, float]
Curve: TypeAlias = tuple[Point, Point, Point, Point]  # cubic Bezier: start, two controls, end

COLORS: Final = {  # light and dark
    "bg": ("#f7f7f5", "#13171b"),
    "surface": ("#ffffff", "#1b2126"),
    "ink": ("#1d2329", "#e6e9eb"),
    "muted": ("#66707a", "#98a3ad"),
    "line": ("#e0e2e0", "#333b42"),
    "soft": ("#f0f1ef", "#232a30"),
    "red": ("#c8470a", "#f5834a"),
    "red-soft": ("#fbe6da", "#46281a"),
    "blue": ("#0a66a8", "#62b1ea"),
    "blue-soft": ("#dcebf6", "#1b3548"),
    "green": ("#00785c", "#3fc49f"),
    "user": ("#f2c14e", "#b98a1d"),
    "user-ink": ("#4a3500", "#fff6df"),
    "privileged": ("#c8470a", "#d4561a"),
    "privileged-ink": ("#ffffff", "#ffffff"),
}


def light_color(name: str) -> str:
    """Light color of that name; any other color as it is."""
    return COLORS[name][0] if name in COLORS else name


FONT_SIZES: Final = {
    "zone": 12.0,
    "service": 11.0,
    "name": 13.0,
    "caption": 9.5,
    "value": 12.0,
    "saw": 10.0,
    "decoys": 10.0,
    "unlike": 11.0,
    "tag": 10.5,
}

COLUMN_GAP = {"wide": 44.0, "narrow": 20.0}  # between the cards of a zone
ASPECT_RATIO = 1.8  # of the wide layout
_COST_OF_SHELF = 0.3  # of one more row of zones, as a logarithm of the aspect ratio
NAME_CHARACTERS = (20, 12)  # of a host's name on its card: alone, beside the label of an activity
ZONE: Final = {"padding": 14.0, "heading": 30.0, "gap": 40.0, "radius": 10.0, "baseline": 24.0}
CARD: Final = {
    "width": 184.0,
    "height": 88.0,
    "gap": 24.0,
    "radius": 8.0,
    "padding": 10.0,
    "name_x": 26.0,
    "name_baseline": 22.5,
    "known_x": 15.0,
    "known_y": 18.0,
    "known_radius": 3.6,
    "decoys_baseline": 79.5,
}
CELL: Final = {  # truth on the left side of a card, blue's belief on the right
    "y": 32.0,
    "width": 78.0,
    "height": 33.0,
    "radius": 4.0,
    "text_x": 7.0,
    "caption_baseline": 44.0,
    "value_baseline": 58.5,
    "unlike_radius": 7.5,
}
BAR: Final = {"y": 67.0, "height": 3.0, "number_x": 6.0}  # blue's exact belief, below the cells
TAG: Final = {  # on the edge of a card: its width is that of its characters and the padding
    "height": 17.0,
    "above": 11.0,
    "baseline": 1.5,
    "inset": 8.0,
    "character": 6.0,
    "padding": 14.0,
    "zone_x": -30.0,
    "zone_y": 20.0,
    "green_y": 7.0,
}
SAW: Final = {"y": 10.0, "height": 16.0, "baseline": 21.5, "character": 5.4, "padding": 10.0}

LEVELS: Final = {"none": "clean", "unknown": "unknown", "user": "user", "privileged": "privileged"}
ACCESS = ("none", "user", "privileged")  # keys of LEVELS, by `access` of a turn
BELIEF = ("none", "unknown", "user", "privileged")  # the same, by `belief`
ACTIVITY = ("", "saw scan", "saw exploit")
KNOWN = ("", "address", "scanned")
RED_WORDS: Final = {
    "DiscoverRemoteSystems": "sweep",
    "DiscoverNetworkServices": "scan",
    "ExploitRemoteService": "exploit",
    "PrivilegeEscalate": "escalate",
    "Impact": "impact",
    "Sleep": "sleep",
}
GREEN_WORD = "green scan"
DECOYS_SHOWN = 3


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Positions of everything that does not change during a game."""

    width: float
    height: float
    zones: Mapping[str, Box]
    hosts: Mapping[str, Point]  # upper left corner of each card
    links: Sequence[Curve]
    attacks: Mapping[str, Curve]  # from the foothold, by target


@dataclass(frozen=True)
class ScenarioPlan:
    """What of a scenario decides its drawing."""

    zones: Mapping[str, Sequence[str]]  # hosts by subnet, in the order in which they are drawn
    links: Sequence[tuple[str, str]]  # privileged access to the first host reveals the second
    foothold: str  # host on which red starts
    targets: Sequence[str]  # hosts that run OTService
    defender: str  # host that stands for blue, where an action has no host


@lru_cache(maxsize=64)
def scenario_plan(scenario: Scenario = CAGE2) -> ScenarioPlan:
    """The plan of a scenario: subnets in the order in which red attacks them."""
    names = scenario.hosts
    links = [
        (names[host], names[other])
        for host, revealed in enumerate(scenario.reveals_ip)
        for other in revealed
        if other != host
    ]
    defender = _defender(scenario)
    zones: dict[str, list[str]] = {}
    drawn: list[str] = []
    for subnet in _attack_order(scenario):
        hosts = [names[host] for host in scenario.members[subnet]]
        zones[scenario.subnets[subnet]] = _sort_hosts(hosts, links, drawn, defender)
        drawn += zones[scenario.subnets[subnet]]
    targets = [host for host, is_ot in zip(names, scenario.ot, strict=True) if is_ot]
    return ScenarioPlan(zones, links, names[scenario.entry], targets, defender)


def _defender(scenario: Scenario) -> str:
    if "Defender" in scenario.hosts:
        return "Defender"
    has_agent = [host for host, agent in zip(scenario.hosts, scenario.agents, strict=True) if agent]
    return has_agent[0]


def _attack_order(scenario: Scenario) -> list[int]:
    """Subnets, first that of the entry host, then by the links that lead to them."""
    order = [scenario.subnet_of[scenario.entry]]
    for subnet in order:  # grows in the loop
        revealed = [
            scenario.subnet_of[other]
            for host in sorted(scenario.members[subnet])
            for other in scenario.reveals_ip[host]
        ]
        order += [other for other in dict.fromkeys(revealed) if other not in order]
    return order + [other for other in range(len(scenario.subnets)) if other not in order]


def _sort_hosts(
    hosts: list[str], links: list[tuple[str, str]], drawn: list[str], defender: str
) -> list[str]:
    """Hosts of a zone, so that few links cross: beside those that reveal them; blue's host last."""

    def place(host: str) -> tuple[bool, float, list[int | str]]:
        sources = [drawn.index(start) for start, end in links if end == host and start in drawn]
        middle = sum(sources) / len(sources) if sources else float("inf")
        return host == defender, middle, _natural_order(host)

    return sorted(hosts, key=place)


def _natural_order(name: str) -> list[int | str]:
    """Sort key by which User2 comes before User10."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


@lru_cache(maxsize=64)
def wide_layout(scenario: Scenario = CAGE2) -> Layout:
    """Layout of a scenario for wide screens and frames."""
    return make_wide_layout(scenario_plan(scenario))


def make_wide_layout(plan: ScenarioPlan) -> Layout:
    """Zones side by side, the foothold left of the other hosts: attacks run to the right.

    Scenarios with many hosts have several columns per zone and several rows of zones, those that
    come closest to `ASPECT_RATIO`.
    """
    longest = max(map(len, plan.zones.values()))
    best, lowest_cost = None, float("inf")
    for shelves in range(1, len(plan.zones) + 1):
        for rows in range(1, longest + 1):
            layout = _shelves(plan, rows, shelves)
            ratio = layout.width / layout.height / ASPECT_RATIO
            cost = abs(log(ratio)) + _COST_OF_SHELF * shelves
            if cost < lowest_cost:
                best, lowest_cost = layout, cost
    assert best is not None, "a scenario has at least one subnet"
    return best


def _shelves(plan: ScenarioPlan, rows: int, shelves: int) -> Layout:
    """Zones of at most so many rows of cards, on so many shelves of about the same width."""
    columns = {
        zone: ceil(len(_other_hosts(plan, zone)) / rows) + (plan.foothold in hosts)
        for zone, hosts in plan.zones.items()
    }
    ends = accumulate(columns.values())
    share = sum(columns.values()) / shelves
    shelf_of = {
        zone: min(shelves - 1, int((end - columns[zone] / 2) / share))
        for zone, end in zip(columns, ends, strict=True)
    }
    zones: dict[str, Box] = {}
    places: dict[str, Point] = {}
    top = 0.0
    for shelf in sorted({*shelf_of.values()}):
        names = [zone for zone in columns if shelf_of[zone] == shelf]
        used = max(min(rows, len(_other_hosts(plan, zone))) for zone in names) or 1
        left = 0.0
        for zone in names:
            width = _zone_width(columns[zone], COLUMN_GAP["wide"])
            zones[zone] = Box(left, top, width, _zone_height(used))
            places |= _places_in_zone(plan, zone, zones[zone], (rows, used))
            left += width + ZONE["gap"]
        top += _zone_height(used) + ZONE["gap"]
    return _layout(plan, zones, places)


def _other_hosts(plan: ScenarioPlan, zone: str) -> list[str]:
    return [host for host in plan.zones[zone] if host != plan.foothold]


def _places_in_zone(
    plan: ScenarioPlan, zone: str, box: Box, rows: tuple[int, int]
) -> dict[str, Point]:
    """Corners of the cards of a zone; `rows`: at most, and of the largest zone beside it."""
    limit, used = rows
    hosts = _other_hosts(plan, zone)
    has_foothold = plan.foothold in plan.zones[zone]
    step = CARD["width"] + COLUMN_GAP["wide"]
    first = box.x + ZONE["padding"] + step * has_foothold
    places = {
        host: (first + step * (number // limit), _card_top(box.y, number % limit))
        for number, host in enumerate(hosts)
    }
    if has_foothold:
        places[plan.foothold] = (box.x + ZONE["padding"], _card_top(box.y, (used - 1) / 2))
    return places


def make_narrow_layout(plan: ScenarioPlan) -> Layout:
    """Zones stacked, two cards per row: for narrow screens."""
    between, gap = COLUMN_GAP["narrow"], 16
    zones: dict[str, Box] = {}
    places: dict[str, Point] = {}
    top = 0.0
    for zone, members in plan.zones.items():
        hosts = sorted(members, key=lambda host: host != plan.foothold)
        zones[zone] = Box(0, top, _zone_width(2, between), _zone_height((len(hosts) + 1) // 2))
        for number, host in enumerate(hosts):
            x = ZONE["padding"] + number % 2 * (CARD["width"] + between)
            places[host] = (x, _card_top(top, number // 2))
        top += zones[zone].height + gap
    return _layout(plan, zones, places)


def drawing_description(plan: ScenarioPlan | None = None) -> dict[str, Any]:
    """All of this module that static/drawing.js needs to draw a scenario, as JSON values."""
    plan = plan or scenario_plan()
    return {
        "foothold": plan.foothold,
        "targets": list(plan.targets),
        "defender": plan.defender,
        "layouts": {
            "wide": asdict(make_wide_layout(plan)),
            "narrow": asdict(make_narrow_layout(plan)),
        },
        "services": service_zones(plan),
        "shapes": {"zone": ZONE, "card": CARD, "cell": CELL, "bar": BAR, "tag": TAG, "saw": SAW},
        "words": {
            "levels": LEVELS,
            "access": ACCESS,
            "belief": BELIEF,
            "activity": ACTIVITY,
            "known": KNOWN,
            "red": RED_WORDS,
            "green": GREEN_WORD,
        },
        "decoys_shown": DECOYS_SHOWN,
        "name_characters": NAME_CHARACTERS,
    }


def service_zones(plan: ScenarioPlan) -> dict[str, list[str]]:
    """Hosts that run OTService by zone; the headings of these zones show its state."""
    zones = {
        zone: [host for host in hosts if host in plan.targets] for zone, hosts in plan.zones.items()
    }
    return {zone: hosts for zone, hosts in zones.items() if hosts}


def short_name(name: str, *, has_label: bool = False) -> str:
    """Name of a host as its card shows it."""
    limit = NAME_CHARACTERS[has_label]
    return name if len(name) <= limit else f"{name[: limit - 2]}.."


def text_box_width(text: str, shape: Mapping[str, float]) -> float:
    """Width of a tag, or of the label of an activity, by its number of characters."""
    return len(text) * shape["character"] + shape["padding"]


def _layout(plan: ScenarioPlan, zones: dict[str, Box], hosts: dict[str, Point]) -> Layout:
    start = hosts[plan.foothold]
    return Layout(
        width=max(box.x + box.width for box in zones.values()),
        height=max(box.y + box.height for box in zones.values()),
        zones=zones,
        hosts=hosts,
        links=[_link_route(hosts[first], hosts[second]) for first, second in plan.links],
        attacks={host: _route(start, place) for host, place in hosts.items() if place != start},
    )


def _zone_width(columns: int, between: float) -> float:
    return 2 * ZONE["padding"] + columns * CARD["width"] + (columns - 1) * between


def _zone_height(rows: int) -> float:
    cards = rows * (CARD["height"] + CARD["gap"]) - CARD["gap"]
    return ZONE["heading"] + 2 * ZONE["padding"] + cards


def _card_top(zone_top: float, row: float) -> float:
    return zone_top + ZONE["heading"] + ZONE["padding"] + row * (CARD["height"] + CARD["gap"])


def _link_route(start: Point, end: Point) -> Curve:
    """Curve of a link; to a card above or below, it runs beside the cards."""
    if end[0] != start[0] or abs(end[1] - start[1]) <= CARD["height"] + CARD["gap"]:
        return _route(start, end)
    right, middle = start[0] + CARD["width"], CARD["height"] / 2
    bend = right + 0.9 * COLUMN_GAP["narrow"]
    (y1, y2) = (start[1] + middle, end[1] + middle)
    return (right, y1), (bend, y1), (bend, y2), (right, y2)


def _route(start: Point, end: Point) -> Curve:
    """Curve from one card to the edge of another."""
    gap = 3
    if end[0] > start[0]:
        middle = CARD["height"] / 2
        x1, y1 = start[0] + CARD["width"], start[1] + middle
        x2, y2 = end[0] - gap, end[1] + middle
        bend = max(20.0, (x2 - x1) * 0.5)
        return (x1, y1), (x1 + bend, y1), (x2 - bend, y2), (x2, y2)
    bend = 40
    x1, y1 = start[0] + CARD["width"] / 2, start[1] + CARD["height"]
    x2, y2 = end[0] + CARD["width"] / 2, end[1] - gap
    return (x1, y1), (x1, y1 + bend), (x2, y2 - bend), (x2, y2)
