"""Sessions of agents and their processes, as CybORG lists them."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address
from typing import Any, NamedTuple

from cagepool.cyborg.dict_state.enumerations import (
    OperatingSystemDistribution,
    OperatingSystemVersion,
    ProcessType,
    ProcessVersion,
    SessionType,
)
from cagepool.cyborg.dict_state.images import (
    ANY_ADDRESS,
    DECOYS,
    IMAGES,
    LOOPBACK,
    Account,
    HostImage,
    Process,
)
from cagepool.scenarios import Scenario
from cagepool.scenarios.tables import StartingSession
from cagepool.scenarios.vocabulary import PRIVILEGED_ACCOUNTS

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


SSH_PORT = 22

_SESSION_TYPES = {  # by name in a scenario file, in any case; others are UNKNOWN
    "velociraptorserver": SessionType.VELOCIRAPTOR_SERVER,
    "velociraptorclient": SessionType.VELOCIRAPTOR_CLIENT,
    "green_session": SessionType.GREY_SESSION,
    "redabstractsession": SessionType.RED_ABSTRACT_SESSION,
    "red_reverse_shell": SessionType.RED_REVERSE_SHELL,
    "ssh": SessionType.SSH,
    "shell": SessionType.SHELL,
    "meterpreter": SessionType.METERPRETER,
    "msf shell": SessionType.MSF_SHELL,
    "msf_shell": SessionType.MSF_SHELL,
    "metasploitserver": SessionType.MSF_SERVER,
}


class Session(NamedTuple):
    """A session of an agent, and its process."""

    agent: str
    number: int
    type: SessionType
    process: Process


def host_images(scenario: Scenario) -> list[HostImage]:
    """Facts of the images of all hosts."""
    own = {name: read_image(content) for name, content in scenario.own_images.items()}
    return [own[name] if name in own else IMAGES[name] for name in scenario.images]


def starting_sessions(scenario: Scenario) -> dict[str, list[Session]]:
    """Sessions from the start of an episode to its end, by host, in the order of their processes.

    An agent's sessions are numbered in the order of the file, those without parent first.
    """
    return _starting_sessions(scenario.hosts, scenario.sessions)


@lru_cache(maxsize=1024)  # not of scenarios, which are equal whatever their sessions are
def _starting_sessions(
    hosts: tuple[str, ...], sessions: tuple[StartingSession, ...]
) -> dict[str, list[Session]]:
    numbers = dict.fromkeys((start.agent for start in sessions), 0)
    found: dict[str, list[Session]] = {host: [] for host in hosts}
    for start in sessions:
        process = Process(0, None, start.type, start.account)
        type_ = _session_type(start.type)
        found[start.host].append(Session(start.agent, numbers[start.agent], type_, process))
        numbers[start.agent] += 1
    return found


def _session_type(name: str) -> SessionType:
    if name.lower().replace(" ", "").replace("_", "") == "localshell":
        return SessionType.LOCAL_SHELL
    return _SESSION_TYPES.get(name.lower(), SessionType.UNKNOWN)


def decoy_process(sessions: list[Session], number: int, pid: int) -> Process:
    """Process of a decoy on a host with these sessions, in the account of blue's first one."""
    process = DECOYS[number]
    blue = next(session.process.user for session in sessions if session.agent == "Blue")
    return process._replace(pid=pid, user=process.user or blue)


def red_process(
    scenario: Scenario, host: int, image: HostImage, exploit: str | None, *, ssh: bool
) -> Process:
    """Process of a session that red opened with an exploit, in the account that it yields."""
    if ssh:
        server = _ssh_server(image)
        account = scenario.vulnerabilities[host]["SSHBruteForce"] or ""
        return Process(0, server.pid, "sshd", account, server.path, (), ProcessType.SSH)
    name, path = ("cmd.exe", "C:\\temp\\") if scenario.windows[host] else ("cmd.sh", "/tmp/")
    return Process(0, 1, name, _shell_account(scenario, host, exploit), path)


def privileged_account(scenario: Scenario, host: int) -> str:
    """Account of an escalated session."""
    return "SYSTEM" if scenario.windows[host] else "root"


def _ssh_server(image: HostImage) -> Process:
    return next(
        process
        for process in image.processes
        if process.type is ProcessType.SSH and SSH_PORT in process.ports
    )


def _shell_account(scenario: Scenario, host: int, exploit: str | None) -> str:
    """Account of a shell before its escalation; without the exploit, an unprivileged one."""
    accounts = scenario.vulnerabilities[host]
    if exploit is not None:
        return accounts[exploit] or ""
    users = (user for name, user in accounts.items() if name != "SSHBruteForce" and user)
    return next((user for user in users if user not in PRIVILEGED_ACCOUNTS), "")
