"""Exports the true state of a native game as the dictionary of `get_agent_state('True')`."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from random import Random
from typing import Any, NamedTuple, TypeAlias

from cagepool import _core
from cagepool.cyborg.dict_state import scenario
from cagepool.cyborg.dict_state.scenario import Account, Process, Session
from cagepool.sim.batch import Batch
from cagepool.sim.names import HOST_SUBNET, HOSTS, SUBNET_HOSTS, host_index

Entry: TypeAlias = dict[str, Any]

_Endpoint: TypeAlias = tuple[int, IPv4Address]

_FIRST_DECOY, _FIRST_SESSION = 8, 512  # indices of a host's processes, from which ids are drawn
_SSH_PORT, _SHELL_PORT = 22, 4444
# Primes, so that every stride visits all numbers before one repeats.
_PID_COUNT = 32719  # with the 27 fixed ids of Defender still below 32768
_PORT_COUNT = 10847
_FIRST_PORT = 49152
_FIXED_PIDS = {
    host: sorted(process.pid for process in processes)
    for host, processes in scenario.PROCESSES.items()
}


def true_state_dict(batch: Batch, game: int) -> Entry:
    """Build a new dictionary for one game.

    Keys, values, their types and their order are CybORG's; the enumerations are those of
    `cagepool.cyborg.dict_state.scenario`, with CybORG's names and numbers. Differences:

    * Addresses, process ids and ephemeral ports are drawn from the key of the episode's random
      stream. They stay for the episode (but `reseed` changes them), and a decoy that is placed
      again has its former process id.
    * Decoys of a host are in the order of their numbers, not of their placement.
    * The connections of User0's `RedAbstractSession` list all successful exploits of the episode;
      in CybORG a Restore of User0 empties that list.

    Raises:
        IndexError: there is no such game.
    """
    builder = _DictBuilder(batch, game)
    return {"success": scenario.TrinaryEnum.UNKNOWN} | {host: builder.host(host) for host in HOSTS}


class _OpenSession(NamedTuple):
    """A session with its connections."""

    session: Session
    connections: list[Entry]


class _DictBuilder:
    """Builds the entries of one game's hosts."""

    def __init__(self, batch: Batch, game: int) -> None:
        self.labels = _episode_labels(batch.core.stream_key(game))
        self.true_state = batch.true_state[game]
        self.red_sessions = list(enumerate(batch.core.session_log(game), start=1))

    def host(self, host: str) -> Entry:
        sessions = self._starting_sessions(host) + self._red_sessions_on(host)
        return {
            "Processes": [
                *(self._service(host, process) for process in self._genuine_processes(host)),
                *(self._service(host, decoy) for decoy in self._decoys(host)),
                *(_process(session.process, connections) for session, connections in sessions),
            ],
            "Interface": self._interfaces(host),
            "Sessions": [_session(session) for session, _ in sessions],
            "User Info": [_account(account) for account in scenario.accounts(host)],
            "System info": _system(host),
        }

    def _genuine_processes(self, host: str) -> list[Process]:
        stopped = () if self.true_state["ot_running"] else (scenario.OT_SERVICE,)
        return [process for process in scenario.PROCESSES[host] if process not in stopped]

    def _service(self, host: str, process: Process) -> Entry:
        entry = _process(
            process, [_listening_socket(port, process.address) for port in process.ports]
        )
        if process.type is scenario.ProcessType.SMTP:
            immune = self.true_state["mail_immune"] & {"User3": 1, "User4": 2}.get(host, 0)
            version = scenario.ProcessVersion
            entry["Process Version"] = version.UNKNOWN if immune else version.HARAKA_2_7_0
        return entry

    def _decoys(self, host: str) -> list[Process]:
        bits = int(self.true_state["decoys"][host_index(host)])
        kinds = len(scenario.DECOYS)
        numbers = [decoy for decoy in range(kinds) if bits >> decoy & 1]
        numbers += range(kinds, kinds + (bits >> kinds))  # repetitions of the last kind, Vsftpd
        return [
            scenario.decoy_process(
                host, min(number, kinds - 1), pid=self.labels.pid(host, _FIRST_DECOY + number)
            )
            for number in numbers
        ]

    def _starting_sessions(self, host: str) -> list[_OpenSession]:
        result = []
        for number, session in enumerate(scenario.STARTING_SESSIONS[host]):
            exploits = self.red_sessions if session.agent == "Red" else []
            connections = [_connection(*reversed(self._endpoints(*entry))) for entry in exploits]
            result.append(_OpenSession(self._with_pid(session, host, number), connections))
        return result

    def _red_sessions_on(self, host: str) -> list[_OpenSession]:
        result = []
        for number, flags in self.red_sessions:
            if not flags & _core.SESSION_ALIVE or _session_host(flags) != host:
                continue
            session = scenario.red_session(
                host,
                number,
                ssh=bool(flags & _core.SESSION_SSH),
                privileged=bool(flags & _core.SESSION_PRIVILEGED),
            )
            connections = [_connection(*self._endpoints(number, flags))]
            result.append(
                _OpenSession(self._with_pid(session, host, _FIRST_SESSION + number), connections)
            )
        return result

    def _with_pid(self, session: Session, host: str, number: int) -> Session:
        process = session.process._replace(pid=self.labels.pid(host, number))
        return session._replace(process=process)

    def _endpoints(self, number: int, flags: int) -> tuple[_Endpoint, _Endpoint]:
        """Endpoints of a red session: on the exploited host and on User0."""
        port = self.labels.port(number)
        near, far = (_SSH_PORT, port) if flags & _core.SESSION_SSH else (port, _SHELL_PORT)
        return (near, self.labels.hosts[_session_host(flags)]), (far, self.labels.hosts["User0"])

    def _interfaces(self, host: str) -> list[Entry]:
        address = self.labels.hosts[host]
        extra_addresses = (scenario.RESOLVER, scenario.FORMER_ADDRESS) if host == "Defender" else ()
        return [
            *({"IP Address": other} for other in extra_addresses if other != address),
            _interface("lo", scenario.LOOPBACK, scenario.LOOPBACK_NETWORK),
            _interface("eth0", address, self.labels.networks[HOST_SUBNET[host]]),
        ]


class _Labels:
    """Addresses, process ids and ports of one episode; no rule reads them (docs/rules.md, 3.4)."""

    networks: dict[str, IPv4Network]  # by subnet
    hosts: dict[str, IPv4Address]

    def __init__(self, key: int) -> None:
        rng = Random(key)
        blocks = rng.sample(range(4096), len(SUBNET_HOSTS))
        self.networks, self.hosts = {}, {}
        for (subnet, hosts), block in zip(SUBNET_HOSTS.items(), blocks, strict=True):
            network = IPv4Network((int(IPv4Address("10.0.0.0")) + 16 * block, 28))
            self.networks[subnet] = network
            addresses = rng.sample(list(network.hosts()), len(hosts))
            self.hosts.update(zip(hosts, addresses, strict=True))
        self._pid_walks = {
            host: (rng.randrange(_PID_COUNT), rng.randrange(1, _PID_COUNT))
            for host in scenario.PROCESSES
        }
        self._port_walk = rng.randrange(_PORT_COUNT), rng.randrange(1, _PORT_COUNT)

    def pid(self, host: str, number: int) -> int:
        """Process id that no other number on the host has, nor any of its fixed processes."""
        start, stride = self._pid_walks[host]
        pid = 1 + (start + stride * number) % _PID_COUNT
        for fixed in _FIXED_PIDS[host]:
            pid += pid >= fixed
        return pid

    def port(self, session: int) -> int:
        """Ephemeral port of a red session."""
        start, stride = self._port_walk
        return _FIRST_PORT + (start + stride * session) % _PORT_COUNT


@lru_cache(maxsize=1024)
def _episode_labels(stream_key: int) -> _Labels:
    return _Labels(stream_key)


def _session_host(flags: int) -> str:
    return HOSTS[flags & _core.SESSION_HOST]


def _process(process: Process, connections: list[Entry]) -> Entry:
    entry: Entry = {"PID": process.pid}
    if process.parent is not None:
        entry["PPID"] = process.parent
    entry["Process Name"] = process.name
    entry["Known Process"] = scenario.KNOWN_PROCESSES.get(
        process.name, scenario.ProcessName.UNKNOWN
    )
    entry["Username"] = process.user
    if process.path is not None:
        entry["Path"] = process.path
        entry["Known Path"] = scenario.KNOWN_PATHS.get(process.path, scenario.Path.UNKNOWN)
    if connections:
        entry["Connections"] = connections
    entry["Process Type"] = process.type
    return entry


def _listening_socket(port: int, address: IPv4Address) -> Entry:
    return {
        "local_port": port,
        "local_address": address,
        "Transport Protocol": scenario.TransportProtocol.UNKNOWN,
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
    if account.group is not None:
        entry["Groups"] = [{"GID": account.group}]
    return entry


def _system(host: str) -> Entry:
    windows = host in scenario.WINDOWS
    family, distribution = scenario.OperatingSystemType, scenario.OperatingSystemDistribution
    version = scenario.OperatingSystemVersion
    return {
        "Hostname": host,
        "OSType": family.WINDOWS if windows else family.LINUX,
        "OSDistribution": distribution.WINDOWS_SVR_2008 if windows else distribution.UBUNTU,
        "OSVersion": version.W6_1_7601 if windows else version.U18_04_3,
        "Architecture": scenario.Architecture.x64,
    }
