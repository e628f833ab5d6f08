"""Sessions of agents and their processes, as CybORG lists them."""

from functools import lru_cache
from typing import NamedTuple

from cagepool.cyborg.dict_state.enumerations import ProcessType, SessionType
from cagepool.cyborg.dict_state.images import DECOYS, IMAGES, HostImage, Process
from cagepool.cyborg.dict_state.own_images import read_image
from cagepool.scenarios import Scenario

SSH_PORT = 22
PRIVILEGED_ACCOUNTS = ("root", "SYSTEM")

_SESSION_TYPES = {
    "VelociraptorServer": SessionType.VELOCIRAPTOR_SERVER,
    "VelociraptorClient": SessionType.VELOCIRAPTOR_CLIENT,
    "green_session": SessionType.GREY_SESSION,
    "RedAbstractSession": SessionType.RED_ABSTRACT_SESSION,
}


class Session(NamedTuple):
    """A session of an agent, and its process."""

    agent: str
    number: int
    type: SessionType
    process: Process


def host_image(scenario: Scenario, host: int) -> HostImage:
    """Facts of the image of a host."""
    name = scenario.images[host]
    return _own_images(scenario)[name] if name in scenario.own_images else IMAGES[name]


@lru_cache(maxsize=64)
def _own_images(scenario: Scenario) -> dict[str, HostImage]:
    return {name: read_image(content) for name, content in scenario.own_images.items()}


@lru_cache(maxsize=1024)
def starting_sessions(scenario: Scenario) -> dict[str, list[Session]]:
    """Sessions from the start of an episode to its end, by host, in the order of their processes.

    An agent's sessions are numbered in the order of the file, those without parent first.
    """
    numbers = dict.fromkeys(scenario.order_of_play, 0)
    found: dict[str, list[Session]] = {host: [] for host in scenario.hosts}
    for start in scenario.sessions:
        process = Process(0, None, start.type, start.account)
        session = Session(start.agent, numbers[start.agent], _SESSION_TYPES[start.type], process)
        found[start.host].append(session)
        numbers[start.agent] += 1
    return found


def decoy_process(sessions: list[Session], number: int, pid: int) -> Process:
    """Process of a decoy on a host with these sessions, in the account of blue's first one."""
    process = DECOYS[number]
    blue = next(session.process.user for session in sessions if session.agent == "Blue")
    return process._replace(pid=pid, user=process.user or blue)


def red_process(scenario: Scenario, host: int, exploit: str | None, *, ssh: bool) -> Process:
    """Process of a session that red opened with an exploit, in the account that it yields."""
    if ssh:
        server = _ssh_server(scenario, host)
        account = scenario.vulnerabilities[host]["SSHBruteForce"] or ""
        return Process(0, server.pid, "sshd", account, server.path, (), ProcessType.SSH)
    name, path = ("cmd.exe", "C:\\temp\\") if scenario.windows[host] else ("cmd.sh", "/tmp/")
    return Process(0, 1, name, _shell_account(scenario, host, exploit), path)


def privileged_account(scenario: Scenario, host: int) -> str:
    """Account of an escalated session."""
    return "SYSTEM" if scenario.windows[host] else "root"


def _ssh_server(scenario: Scenario, host: int) -> Process:
    return next(
        process
        for process in host_image(scenario, host).processes
        if process.type is ProcessType.SSH and SSH_PORT in process.ports
    )


def _shell_account(scenario: Scenario, host: int, exploit: str | None) -> str:
    """Account of a shell before its escalation; without the exploit, an unprivileged one."""
    accounts = scenario.vulnerabilities[host]
    if exploit is not None:
        return accounts[exploit] or ""
    users = (user for name, user in accounts.items() if name != "SSHBruteForce" and user)
    return next((user for user in users if user not in PRIVILEGED_ACCOUNTS), "")
