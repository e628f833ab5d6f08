"""Dictionaries of the true state in a form in which CybORG's and ours can be compared."""

from enum import Enum
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from cagepool.cyborg.dict_state.images import DECOYS
from cagepool.cyborg.dict_state.sessions import host_images
from cagepool.scenarios import CAGE2, Scenario

EPHEMERAL = 49152
DECOY_NAMES = [process.name for process in DECOYS]


def summarize(state: dict[str, Any], scenario: Scenario = CAGE2) -> list[str]:
    """One line per host, without random labels, decoys in the order of their numbers."""
    names = {state[host]["Interface"][-1]["IP Address"]: host for host in scenario.hosts}
    lines = [f"{list(state)} {state['success']}"]
    for host, image in zip(scenario.hosts, host_images(scenario), strict=True):
        fixed = [process.pid for process in image.processes]
        parts = without_labels(state[host], names, fixed)
        processes = parts["Processes"]
        places = [place for place, entry in enumerate(processes) if is_decoy(entry)]
        decoys = [processes[place] for place in places]
        decoys.sort(key=lambda entry: DECOY_NAMES.index(entry["Process Name"]))
        for place, entry in zip(places, decoys, strict=True):
            processes[place] = entry
        lines.append(f"{host} {parts}")
    return lines


def is_decoy(entry: dict[str, Any]) -> bool:
    name = entry["Process Name"]
    return entry.get("PPID") == 1 and "Path" not in entry and name in DECOY_NAMES


def without_labels(value: Any, names: dict[IPv4Address, str], fixed: list[int]) -> Any:
    if isinstance(value, Enum):
        return type(value).__name__, value.name, value.value, str(value)
    if isinstance(value, IPv4Address):
        return names.get(value, value)
    if isinstance(value, IPv4Network):
        return value.prefixlen
    if isinstance(value, list):
        return [without_labels(item, names, fixed) for item in value]
    if not isinstance(value, dict):
        return value
    entry = {key: without_labels(item, names, fixed) for key, item in value.items()}
    if "PID" in entry and entry["PID"] not in fixed:
        entry["PID"] = "random"
    for end in {"local_port", "remote_port"} & entry.keys():
        entry[end] = min(entry[end], EPHEMERAL)
    if entry.get("Process Name") == "RedAbstractSession":
        entry.pop("Connections", None)  # in ours they outlive a Restore of User0
    return entry
