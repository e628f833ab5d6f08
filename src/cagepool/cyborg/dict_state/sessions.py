"""Sessions of agents and their processes, as CybORG lists them."""

from functools import lru_cache
from typing import NamedTuple

from cagepool.cyborg.dict_state.enumerations import ProcessType, SessionType
from cagepool.cyborg.dict_state.images import DECOYS, IMAGES, HostImage, Process
from cagepool.cyborg.dict_state.own_images import read_image
from cagepool.scenarios import Scenario
from cagepool.scenarios.tables import StartingSession

SSH_PORT = 22
PRIVILEGED_ACCOUNTS = ("root", "SYSTEM")

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
