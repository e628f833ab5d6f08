"""Exports the true state of a native game as the dictionary of `get_agent_state('True')`."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from random import Random
from typing import Any, NamedTuple, TypeAlias

from cagepool.cyborg.dict_state.enumerations import (
    Architecture,
    OperatingSystemType,
    Path,
    ProcessName,
    ProcessVersion,
    SessionType,
    TransportProtocol,
    TrinaryEnum,
)
from cagepool.cyborg.dict_state.images import (
    ANY_ADDRESS,
    DECOYS,
    KNOWN_PATHS,
    KNOWN_PROCESSES,
    LOOPBACK,
    LOOPBACK_NETWORK,
    Account,
    Process,
)
from cagepool.cyborg.dict_state.sessions import (
    SSH_PORT,
    Session,
    decoy_process,
    host_images,
    privileged_account,
    red_process,
    starting_sessions,
)
from cagepool.scenarios import Scenario
from cagepool.sim.batch import Batch
from cagepool.sim.names import EXPLOITS

Entry: TypeAlias = dict[str, Any]

_Endpoint: TypeAlias = tuple[int, IPv4Address]

_FIRST_DECOY, _FIRST_SESSION = 8, 512  # indices of a host's processes, from which ids are drawn
_SHELL_PORT = 4444
_VSFTPD = 7  # number of the decoy that can be placed repeatedly
# Primes, so that every stride visits all numbers before one repeats.
_PID_COUNT = 32693  # with the 66 fixed ids of a Kali_Box still below 32768
_PORT_COUNT = 10847
_FIRST_PORT = 49152


def true_state_dict(batch: Batch, game: int) -> Entry:
    """Build a new dictionary for one game.

    Keys, values, their types and their order are CybORG's; the enumerations are those of
    `cagepool.cyborg.dict_state.enumerations`, with CybORG's names and numbers. Differences:

    * Addresses, process ids and ephemeral ports are drawn from the key of the episode's random
      stream. They stay for the episode (but `reseed` changes them), and a decoy that is placed
      again has its former process id.
    * Decoys of a host are in the order of their numbers, not of their placement.
    * The connections of the `RedAbstractSession` list all successful exploits of the episode; in
      CybORG a Restore of the entry host empties that list.
    * A decoy has the account of blue's first session on the host; CybORG draws one of several.
    """
    builder = _DictBuilder(batch, game)
    hosts = {name: builder.host(host) for host, name in enumerate(builder.scenario.hosts)}
    return {"success": TrinaryEnum.UNKNOWN} | hosts


class RedSession(NamedTuple):
    """A session of the core's log."""

    number: int
    host: int
    alive: bool
    privileged: bool
    ssh: bool
    exploit: str | None  # that opened it; None where the log does not say it


def session_log(batch: Batch, game: int) -> list[RedSession]:
    """Sessions that red opened in the episode, in the order of their numbers."""
    return [
        RedSession(
            number,
            host=int(session["host"]),
            alive=bool(session["alive"]),
            privileged=bool(session["privileged"]),
            ssh=bool(session["ssh"]),
            exploit=EXPLOITS[session["exploit"]] if session["exploit"] >= 0 else None,
        )
        for number, session in enumerate(batch.session_log(game), start=1)
    ]


class _OpenSession(NamedTuple):
    """A session with its connections."""

    session: Session
    connections: list[Entry]


class _DictBuilder:
    """Builds the entries of one game's hosts."""

    def __init__(self, batch: Batch, game: int) -> None:
        self.red_sessions = session_log(batch, game)
        self.scenario = batch.scenarios[batch.scenario_ids[game]]
        self.labels = _episode_labels(self.scenario, batch.core.stream_key(game))
        self.true_state = batch.true_state[game]
        self.starting_sessions = starting_sessions(self.scenario)
        self.images = host_images(self.scenario)
        self.fixed_pids = [
            sorted(process.pid for process in image.processes) for image in self.images
        ]

    def host(self, host: int) -> Entry:
        image = self.images[host]
        opened = self._sessions_on(host)
        entry: Entry = {
            "Processes": [
                *(self._service(host, process) for process in self._genuine_processes(host)),
                *(self._service(host, decoy) for decoy in self._decoys(host)),
                *(_process(session.process, connections) for session, connections in opened),
            ],
            "Interface": self._interfaces(host),
        }
        if opened:
            entry["Sessions"] = [_session(session) for session, _ in opened]
        entry["User Info"] = [_account(account) for account in image.accounts]
        entry["System info"] = self._system(host)
        return entry

    def _sessions_on(self, host: int) -> list[_OpenSession]:
        """Sessions of a host by agent, in the order in which the agents first came."""
        starting = self._starting_sessions(host)
        agents = list(dict.fromkeys([*(opened.session.agent for opened in starting), "Red"]))
        sessions = starting + self._red_sessions_on(host)
        return sorted(sessions, key=lambda opened: agents.index(opened.session.agent))

    def _genuine_processes(self, host: int) -> list[Process]:
        running = self.true_state["ot_running"][host]
        return [
            process
            for process in self.images[host].processes
            if running or process.name != "OTService"
        ]

    def _service(self, host: int, process: Process) -> Entry:
        entry = _process(
            process, [_listening_socket(port, process.address) for port in process.ports]
        )
        if process.version is not None:
            is_genuine = process.pid in self.fixed_pids[host]
            immune = is_genuine and self.true_state["mail_immune"][host]
            entry["Process Version"] = ProcessVersion.UNKNOWN if immune else process.version
        return entry

    def _decoys(self, host: int) -> list[Process]:
        bits = int(self.true_state["decoys"][host])
        # The upper byte counts further Vsftpd; where blue has Misinform, its own decoys have two
        # bits of that byte.
        misinform = bits >> 14 if "Misinform" in self.scenario.action_kinds else 0
        kinds = bits & 0xFF | misinform << 8
        numbers = [number for number in range(len(DECOYS)) if kinds >> number & 1]
        repeated = (bits - (misinform << 14)) >> 8
        numbers += range(len(DECOYS), len(DECOYS) + repeated)
        sessions = self.starting_sessions[self.scenario.hosts[host]]
        return [
            decoy_process(
                sessions,
                number if number < len(DECOYS) else _VSFTPD,
                pid=self._pid(host, _FIRST_DECOY + number),
            )
            for number in numbers
        ]

    def _starting_sessions(self, host: int) -> list[_OpenSession]:
        result = []
        for number, session in enumerate(self.starting_sessions[self.scenario.hosts[host]]):
            exploits = self.red_sessions if session.agent == "Red" else []
            connections = [_connection(*reversed(self._endpoints(entry))) for entry in exploits]
            result.append(_OpenSession(self._with_pid(session, host, number), connections))
        return result

    def _red_sessions_on(self, host: int) -> list[_OpenSession]:
        result = []
        for entry in self.red_sessions:
            if not entry.alive or entry.host != host:
                continue
            image = self.images[host]
            process = red_process(self.scenario, host, image, entry.exploit, ssh=entry.ssh)
            if entry.privileged:
                process = process._replace(user=privileged_account(self.scenario, host))
            type_ = SessionType.SSH if entry.ssh else SessionType.RED_REVERSE_SHELL
            session = Session("Red", entry.number, type_, process)
            session = self._with_pid(session, host, _FIRST_SESSION + entry.number)
            result.append(_OpenSession(session, [_connection(*self._endpoints(entry))]))
        return result

    def _with_pid(self, session: Session, host: int, number: int) -> Session:
        process = session.process._replace(pid=self._pid(host, number))
        return session._replace(process=process)

    def _pid(self, host: int, number: int) -> int:
        """Process id that no other number on the host has, nor any of its genuine processes."""
        pid = self.labels.pid(host, number)
        for fixed in self.fixed_pids[host]:
            pid += pid >= fixed
        return pid

    def _endpoints(self, entry: RedSession) -> tuple[_Endpoint, _Endpoint]:
        """Endpoints of a red session: on the exploited host and on the entry host."""
        port = self.labels.port(entry.number)
        near, far = (SSH_PORT, port) if entry.ssh else (port, _SHELL_PORT)
        addresses = self.labels.addresses
        return (near, addresses[entry.host]), (far, addresses[self.scenario.entry])

    def _interfaces(self, host: int) -> list[Entry]:
        address = self.labels.addresses[host]
        processes = self.images[host].processes
        others = dict.fromkeys(process.address for process in processes if process.ports)
        return [
            *({"IP Address": other} for other in others if other not in (ANY_ADDRESS, address)),
            _interface("lo", LOOPBACK, LOOPBACK_NETWORK),
            _interface("eth0", address, self.labels.subnets[self.scenario.subnet_of[host]]),
        ]

    def _system(self, host: int) -> Entry:
        image = self.images[host]
        family = OperatingSystemType
        return {
            "Hostname": self.scenario.hosts[host],
            "OSType": family.WINDOWS if self.scenario.windows[host] else family.LINUX,
            "OSDistribution": image.distribution,
            "OSVersion": image.version,
            "Architecture": Architecture.x64,
        }


class _Labels:
    """Random addresses and process ids of an episode, distinct where CybORG needs them to be."""

    subnets: list[IPv4Network]  # by subnet
    addresses: list[IPv4Address]  # by host

    def __init__(self, scenario: Scenario, key: int) -> None:
        rng = Random(key)
        sizes = [max(4, (len(members) + 1).bit_length()) for members in scenario.members]  # in bits
        blocks = rng.sample(range(2 ** (16 - max(sizes))), len(scenario.subnets))
        self.subnets = []
        self.addresses = [ANY_ADDRESS] * len(scenario.hosts)
        for members, block, bits in zip(scenario.members, blocks, sizes, strict=True):
            first = int(IPv4Address("10.0.0.0")) + (block << max(sizes))
            network = IPv4Network((first, 32 - bits))
            self.subnets.append(network)
            chosen = rng.sample(list(network.hosts()), len(members))
            for host, address in zip(members, chosen, strict=True):
                self.addresses[host] = address
        self._pid_walks = [
            (rng.randrange(_PID_COUNT), rng.randrange(1, _PID_COUNT)) for _ in scenario.hosts
        ]
        self._port_walk = rng.randrange(_PORT_COUNT), rng.randrange(1, _PORT_COUNT)

    def pid(self, host: int, number: int) -> int:
        """Process id that no other number on the host has."""
        start, stride = self._pid_walks[host]
        return 1 + (start + stride * number) % _PID_COUNT

    def port(self, session: int) -> int:
        """Ephemeral port of a red session."""
        start, stride = self._port_walk
        return _FIRST_PORT + (start + stride * session) % _PORT_COUNT


@lru_cache(maxsize=1024)
def _episode_labels(scenario: Scenario, stream_key: int) -> _Labels:
    return _Labels(scenario, stream_key)


def _process(process: Process, connections: list[Entry]) -> Entry:
    entry: Entry = {"PID": process.pid}
    if process.parent is not None:
        entry["PPID"] = process.parent
    entry["Process Name"] = process.name
    entry["Known Process"] = KNOWN_PROCESSES.get(process.name.lower(), ProcessName.UNKNOWN)
    entry["Username"] = process.user
    if process.path is not None:
        entry["Path"] = process.path
        entry["Known Path"] = KNOWN_PATHS.get(process.path.lower(), Path.UNKNOWN)
    if connections:
        entry["Connections"] = connections
    entry["Process Type"] = process.type
    return entry


def _listening_socket(port: int, address: IPv4Address) -> Entry:
    return {
        "local_port": port,
        "local_address": address,
        "Transport Protocol": TransportProtocol.UNKNOWN,
    }


def _connection(local: _Endpoint, remote: _Endpoint) -> Entry:
    return {
        "local_port": local[0],
        "remote_port": remote[0],
        "local_address": local[1],
        "remote_address": remote[1],
    }


def _interface(name: str, address: IPv4Address, network: IPv4Network) -> Entry:
    return {"Interface Name": name, "IP Address": address, "Subnet": network}


def _session(session: Session) -> Entry:
    return {
        "Username": session.process.user,
        "ID": session.number,
        "Timeout": 0,
        "PID": session.process.pid,
        "Type": session.type,
        "Agent": session.agent,
    }


def _account(account: Account) -> Entry:
    entry: Entry = {"Username": account.name}
    if account.password is not None:
        entry["Password"] = account.password
    if account.groups:
        entry["Groups"] = [{"GID": group} for group in account.groups]
    return entry
