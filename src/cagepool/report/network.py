"""The network as the replay draws it, and the recorded games."""

import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from cagepool.report.run_data import Folder
from cagepool.sim.names import SUBNET_HOSTS

ZONES = ("User", "Enterprise", "Operational")  # from red's foothold to its aim
FOOTHOLD, AIM, HOME = "User0", "Op_Server0", "Defender"
# Red learns the way from one to the other when it is privileged there (docs/rules.md, 1.1).
LINKS = (
    ("User1", "Enterprise1"),
    ("User2", "Enterprise1"),
    ("User3", "Enterprise0"),
    ("User4", "Enterprise0"),
    ("Enterprise2", "Op_Server0"),
)


def replay(folders: Sequence[Folder]) -> Markup:
    """Network and games as JSON that can stand inside of a script element."""
    content = {"network": _network(), "games": _games(folders)}
    text = json.dumps(content, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _network() -> dict[str, Any]:
    zones = [{"name": zone, "hosts": sorted(SUBNET_HOSTS[zone], key=_place)} for zone in ZONES]
    return {"zones": zones, "links": LINKS, "foothold": FOOTHOLD, "aim": AIM, "home": HOME}


def _place(host: str) -> tuple[int, str]:
    """Order within a zone: so that no links cross, and blue's own host is last."""
    return {FOOTHOLD: 0, AIM: 0, "Enterprise1": 0, HOME: 2}.get(host, 1), host


def _games(folders: Sequence[Folder]) -> list[dict[str, Any]]:
    return [
        {**game, "run": folder.name, "hosts": folder.games["hosts"]}
        for folder in folders
        if folder.games
        for game in folder.games["games"]
    ]
