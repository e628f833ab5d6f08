"""Layout of the drawing of the network: positions, sizes, colors and words.

Frames (`sim.frames`) and the replay of the report (`report/static/network.js`) draw from this one
description. Lengths are in pixels of a frame; a baseline is the y of a text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from cagepool.sim.names import SUBNET_HOSTS

Point: TypeAlias = tuple[float, float]
Curve: TypeAlias = tuple[Point, Point, Point, Point]  # cubic Bezier: start, two controls, end

FOOTHOLD, TARGET, DEFENDER = "User0", "Op_Server0", "Defender"
_FIRST_ROWS = (FOOTHOLD, TARGET, "Enterprise1")  # then links do not cross
ZONES: Final = {  # in the order in which red attacks them; blue's own host is last
    zone: sorted(
        SUBNET_HOSTS[zone], key=lambda host: (host not in _FIRST_ROWS, host == DEFENDER, host)
    )
    for zone in ("User", "Enterprise", "Operational")
}
# A privileged session on the first host reveals the second one to red (docs/rules.md, 1.1).
LINKS = (
    ("User1", "Enterprise1"),
    ("User2", "Enterprise1"),
    ("User3", "Enterprise0"),
    ("User4", "Enterprise0"),
    ("Enterprise2", "Op_Server0"),
)

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


def wide_layout() -> Layout:
    """Zones side by side, the foothold left of the other hosts: attacks run to the right."""
    rows = max(len(hosts) for hosts in ZONES.values() if FOOTHOLD not in hosts)
    zones: dict[str, Box] = {}
    places: dict[str, Point] = {}
    left = 0.0
    for zone, hosts in ZONES.items():
        has_foothold = FOOTHOLD in hosts
        width = _zone_width(2 if has_foothold else 1, between=44)
        zones[zone] = Box(left, 0, width, _zone_height(rows))
        x = left + width - ZONE["padding"] - CARD["width"]
        others = [host for host in hosts if host != FOOTHOLD]
        places |= {host: (x, _card_top(0, row)) for row, host in enumerate(others)}
        if has_foothold:
            places[FOOTHOLD] = (left + ZONE["padding"], _card_top(0, (rows - 1) / 2))
        left += width + ZONE["gap"]
    return _layout(zones, places)


def narrow_layout() -> Layout:
    """Zones stacked, two cards per row: for narrow screens."""
    between, gap = 20, 16
    zones: dict[str, Box] = {}
    places: dict[str, Point] = {}
    top = 0.0
    for zone, hosts in ZONES.items():
        zones[zone] = Box(0, top, _zone_width(2, between), _zone_height((len(hosts) + 1) // 2))
        for number, host in enumerate(hosts):
            x = ZONE["padding"] + number % 2 * (CARD["width"] + between)
            places[host] = (x, _card_top(top, number // 2))
        top += zones[zone].height + gap
    return _layout(zones, places)


def drawing_description() -> dict[str, Any]:
    """All of this module that static/network.js needs, as JSON values."""
    return {
        "foothold": FOOTHOLD,
        "target": TARGET,
        "defender": DEFENDER,
        "layouts": {"wide": asdict(wide_layout()), "narrow": asdict(narrow_layout())},
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
    }


def text_box_width(text: str, shape: Mapping[str, float]) -> float:
    """Width of a tag, or of the label of an activity, by its number of characters."""
    return len(text) * shape["character"] + shape["padding"]


def _layout(zones: dict[str, Box], hosts: dict[str, Point]) -> Layout:
    return Layout(
        width=max(box.x + box.width for box in zones.values()),
        height=max(box.y + box.height for box in zones.values()),
        zones=zones,
        hosts=hosts,
        links=[_route(hosts[start], hosts[end]) for start, end in LINKS],
        attacks={host: _route(hosts[FOOTHOLD], hosts[host]) for host in hosts if host != FOOTHOLD},
    )


def _zone_width(columns: int, between: float) -> float:
    return 2 * ZONE["padding"] + columns * CARD["width"] + (columns - 1) * between


def _zone_height(rows: int) -> float:
    cards = rows * (CARD["height"] + CARD["gap"]) - CARD["gap"]
    return ZONE["heading"] + 2 * ZONE["padding"] + cards


def _card_top(zone_top: float, row: float) -> float:
    return zone_top + ZONE["heading"] + ZONE["padding"] + row * (CARD["height"] + CARD["gap"])


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
