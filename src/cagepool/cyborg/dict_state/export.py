"""The true state of one game in the form of CybORG's `get_agent_state('True')`."""

from ipaddress import IPv4Address, IPv4Network
from typing import Any, NamedTuple, TypeAlias

from cagepool import _core
from cagepool.cyborg.dict_state import addresses, enums, scenario
from cagepool.cyborg.dict_state.scenario import Account, Process, Session
from cagepool.sim.batch import Batch
from cagepool.sim.names import HOST_SUBNET, HOSTS, host_index

Entry: TypeAlias = dict[str, Any]

_End: TypeAlias = tuple[int, IPv4Address]

_FIRST_DECOY, _FIRST_SESSION = 8, 512  # places of a host's processes, for their ids
_SSH_PORT, _SHELL_PORT = 22, 4444


def true_state_dict(batch: Batch, game: int) -> Entry:
    """The dictionary for one game, built anew at each call.

    Keys, values, their types and their order are CybORG's; the enumerations are those of
    `cagepool.cyborg.dict_state.enums`, with CybORG's names and numbers. What differs:

    * Addresses, process ids and ephemeral ports are random ones of our own. They last for the
      episode (but `reseed` changes them), and a decoy placed anew has the process id it had.
    * Decoys of a host stand in the order of their numbers, not in that of their placement.
    * The connections of User0's `RedAbstractSession` list all successful exploits of the episode;
      in CybORG a Restore of User0 empties that list.

    Raises:
        IndexError: there is no such game.
    """
    export = _Export(batch, game)
    return {"success": enums.TrinaryEnum.UNKNOWN} | {host: export.host(host) for host in HOSTS}


class _Running(NamedTuple):
    """A session with its connections."""

    session: Session
    connections: list[Entry]


class _Export:
    """One game's facts, and the entries made of them."""

    def __init__(self, batch: Batch, game: int) -> None:
        self.labels = addresses.of_episode(batch.core.stream_key(game))
        self.truth = batch.true_state[game]
        self.opened = list(enumerate(batch.core.session_log(game), start=1))

    def host(self, host: str) -> Entry:
        running = self._starting(host) + self._red(host)
        return {
            "Processes": [
                *(self._listener(host, process) for process in self._genuine(host)),
                *(self._listener(host, decoy) for decoy in self._decoys(host)),
                *(_process(session.process, connections) for session, connections in running),
            ],
            "Interface": self._interfaces(host),
            "Sessions": [_session(session) for session, _ in running],
            "User Info": [_account(account) for account in scenario.accounts(host)],
            "System info": _system(host),
        }

    def _genuine(self, host: str) -> list[Process]:
        stopped = () if self.truth["ot_running"] else (scenario.OT_SERVICE,)
        return [process for process in scenario.PROCESSES[host] if process not in stopped]

    def _listener(self, host: str, process: Process) -> Entry:
        entry = _process(process, [_listening(port, process.address) for port in process.ports])
        if process.type is enums.ProcessType.SMTP:
            immune = self.truth["mail_immune"] & {"User3": 1, "User4": 2}.get(host, 0)
            version = enums.ProcessVersion
            entry["Process Version"] = version.UNKNOWN if immune else version.HARAKA_2_7_0
        return entry

    def _decoys(self, host: str) -> list[Process]:
        placed = int(self.truth["decoys"][host_index(host)])
        kinds = len(scenario.DECOYS)
        places = [decoy for decoy in range(kinds) if placed >> decoy & 1]
        places += range(kinds, kinds + (placed >> kinds))  # more of the last kind, Vsftpd
        return [
            scenario.decoy(
                host, min(place, kinds - 1), pid=self.labels.pid(host, _FIRST_DECOY + place)
            )
            for place in places
        ]

    def _starting(self, host: str) -> list[_Running]:
        running = []
        for place, session in enumerate(scenario.STARTING_SESSIONS[host]):
            exploits = self.opened if session.agent == "Red" else []
            connections = [_connection(*reversed(self._ends(*entry))) for entry in exploits]
            running.append(_Running(self._with_pid(session, host, place), connections))
        return running

    def _red(self, host: str) -> list[_Running]:
        running = []
        for number, flags in self.opened:
            if not flags & _core.SESSION_ALIVE or _host(flags) != host:
                continue
            session = scenario.red_session(
                host,
                number,
                ssh=bool(flags & _core.SESSION_SSH),
                privileged=bool(flags & _core.SESSION_PRIVILEGED),
            )
            connections = [_connection(*self._ends(number, flags))]
            running.append(
                _Running(self._with_pid(session, host, _FIRST_SESSION + number), connections)
            )
        return running

    def _with_pid(self, session: Session, host: str, place: int) -> Session:
        process = session.process._replace(pid=self.labels.pid(host, place))
        return session._replace(process=process)

    def _ends(self, number: int, flags: int) -> tuple[_End, _End]:
        """Both ends of one of red's connections: on the host that was taken and on User0."""
        port = self.labels.port(number)
        near, far = (_SSH_PORT, port) if flags & _core.SESSION_SSH else (port, _SHELL_PORT)
        return (near, self.labels.hosts[_host(flags)]), (far, self.labels.hosts["User0"])

    def _interfaces(self, host: str) -> list[Entry]:
        address = self.labels.hosts[host]
        bare = (scenario.RESOLVER, scenario.FORMER_ADDRESS) if host == "Defender" else ()
        return [
            *({"IP Address": other} for other in bare if other != address),
            _interface("lo", scenario.LOOPBACK, scenario.LOOPBACK_NETWORK),
            _interface("eth0", address, self.labels.networks[HOST_SUBNET[host]]),
        ]


def _host(flags: int) -> str:
    return HOSTS[flags & _core.SESSION_HOST]


def _process(process: Process, connections: list[Entry]) -> Entry:
    entry: Entry = {"PID": process.pid}
    if process.parent is not None:
        entry["PPID"] = process.parent
    entry["Process Name"] = process.name
    entry["Known Process"] = scenario.KNOWN_PROCESSES.get(process.name, enums.ProcessName.UNKNOWN)
    entry["Username"] = process.user
    if process.path is not None:
        entry["Path"] = process.path
        entry["Known Path"] = scenario.KNOWN_PATHS.get(process.path, enums.Path.UNKNOWN)
    if connections:
        entry["Connections"] = connections
    entry["Process Type"] = process.type
    return entry


def _listening(port: int, address: IPv4Address) -> Entry:
    return {
        "local_port": port,
        "local_address": address,
        "Transport Protocol": enums.TransportProtocol.UNKNOWN,
    }


def _connection(near: _End, far: _End) -> Entry:
    return {
        "local_port": near[0],
        "remote_port": far[0],
        "local_address": near[1],
        "remote_address": far[1],
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
    kind, make = enums.OperatingSystemType, enums.OperatingSystemDistribution
    release = enums.OperatingSystemVersion
    return {
        "Hostname": host,
        "OSType": kind.WINDOWS if windows else kind.LINUX,
        "OSDistribution": make.WINDOWS_SVR_2008 if windows else make.UBUNTU,
        "OSVersion": release.W6_1_7601 if windows else release.U18_04_3,
        "Architecture": enums.Architecture.x64,
    }
