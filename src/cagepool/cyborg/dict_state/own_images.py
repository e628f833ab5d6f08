"""Image files of one's own as facts for the dictionary of the true state."""

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

from cagepool.cyborg.dict_state.enumerations import (
    OperatingSystemDistribution,
    OperatingSystemVersion,
    ProcessType,
    ProcessVersion,
)
from cagepool.cyborg.dict_state.images import ANY_ADDRESS, LOOPBACK, Account, HostImage, Process

_TYPES = {
    **dict.fromkeys(("ssh", "sshd", "sshd.exe"), ProcessType.SSH),
    **dict.fromkeys(("webserver", "http", "https"), ProcessType.WEBSERVER),
    "svchost": ProcessType.SVCHOST,
    "smtp": ProcessType.SMTP,
    "femitter": ProcessType.FEMITTER,
    "mysql": ProcessType.MYSQL,
    "smb": ProcessType.SMB,
    "rdp": ProcessType.RDP,
}
_ADDRESSES = {"broadcast": ANY_ADDRESS, "local": LOOPBACK}


def read_image(content: Mapping[str, Any]) -> HostImage:
    """Facts of an image, from the content of its file."""
    system = content["System info"]
    return HostImage(
        processes=_merged([_process(one) for one in content.get("Processes") or ()]),
        accounts=tuple(_account(one) for one in content.get("User Info") or ()),
        distribution=_member(OperatingSystemDistribution, system["OSDistribution"]),
        version=_member(OperatingSystemVersion, system["OSVersion"]),
    )


def _process(content: Mapping[str, Any]) -> Process:
    sockets = content.get("Connections") or ()
    type_ = content.get("Process Type") or content.get("Process Name") or ""
    address = sockets[0].get("local_address", "broadcast") if sockets else "broadcast"
    is_mail = str(content.get("Process Version")).lower() == "haraka 2.7.0"
    return Process(
        pid=content["PID"],
        parent=content.get("PPID"),
        name=content["Process Name"],
        user=content.get("Username") or "",
        path=content.get("Path"),
        ports=tuple(socket["local_port"] for socket in sockets),
        type=_TYPES.get(type_.lower(), ProcessType.UNKNOWN),
        address=_ADDRESSES.get(address) or IPv4Address(address),
        version=ProcessVersion.HARAKA_2_7_0 if is_mail else None,
    )


def _merged(processes: list[Process]) -> tuple[Process, ...]:
    """Processes as CybORG lists them: those with one id are one, in the place of the last."""
    found: dict[int, Process] = {}
    for process in processes:
        earlier = found.pop(process.pid, None)
        ports = process.ports if earlier is None else earlier.ports + process.ports
        found[process.pid] = process._replace(ports=ports)
    return tuple(found.values())


def _account(content: Mapping[str, Any]) -> Account:
    groups = tuple(group["GID"] for group in content.get("Groups") or () if "GID" in group)
    return Account(content["Username"], groups, content.get("Password"))


def _member(enumeration: Any, name: str) -> Any:
    """Member of that name, in any case; UNKNOWN if there is none."""
    return enumeration.__members__.get(name.upper(), enumeration.UNKNOWN)
