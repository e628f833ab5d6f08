"""Facts of CybORG's Scenario2 that fill the dictionary of the true state and affect no game.

The enumerations have CybORG's names and numbers; they leave out members that never occur. Tables
of processes, accounts and sessions follow.
"""

from enum import Enum
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple


class _Named(Enum):
    """An enumeration whose members print as their bare names."""

    def __str__(self) -> str:
        return self.name


class TrinaryEnum(_Named):
    """Outcome of an action."""

    TRUE = 1
    UNKNOWN = 2
    FALSE = 3


class SessionType(_Named):
    """Kind of an agent's session."""

    SSH = 2
    VELOCIRAPTOR_CLIENT = 7
    VELOCIRAPTOR_SERVER = 8
    RED_ABSTRACT_SESSION = 10
    RED_REVERSE_SHELL = 11
    GREY_SESSION = 12


class OperatingSystemType(_Named):
    """Family of an operating system."""

    WINDOWS = 2
    LINUX = 3


class OperatingSystemDistribution(_Named):
    """Distribution of an operating system."""

    WINDOWS_SVR_2008 = 4
    UBUNTU = 8


class OperatingSystemVersion(_Named):
    """Release of an operating system."""

    U18_04_3 = 6
    W6_1_7601 = 13


class Architecture(Enum):
    """Processor architecture."""

    x64 = 2


class ProcessName(Enum):
    """Programs that CybORG has a number for."""

    UNKNOWN = 1
    SVCHOST = 2
    INIT = 3
    CRON = 4
    SSHD = 7
    SMTP = 11
    FEMITTER = 12
    APACHE2 = 13
    SMSS = 17
    SHELL = 21
    VELOCLIENT = 26
    CMD = 28


class ProcessType(_Named):
    """Service that a process offers."""

    UNKNOWN = 1
    SSH = 2
    SMB = 4
    SMTP = 5
    FEMITTER = 6
    WEBSERVER = 7
    RDP = 9
    MYSQL = 12


class ProcessVersion(Enum):
    """Release of a service."""

    HARAKA_2_7_0 = 7
    UNKNOWN = 9


class Path(Enum):
    """Folders that CybORG has a number for."""

    UNKNOWN = 1
    TEMP = 5
    SBIN = 6
    BIN = 7
    USR_SBIN = 8
    USR_BIN = 9


class TransportProtocol(_Named):
    """Transport protocol of a connection, which CybORG's scenario leaves open."""

    UNKNOWN = 1


WINDOWS = ("Enterprise1", "Enterprise2", "User0", "User1", "User2")

ANY_ADDRESS = IPv4Address("0.0.0.0")
LOOPBACK = IPv4Address("127.0.0.1")
LOOPBACK_NETWORK = IPv4Network("127.0.0.0/8")
RESOLVER = IPv4Address("127.0.0.53")
FORMER_ADDRESS = IPv4Address("10.0.11.88")  # in the image of Defender, from its original machine

_OPENSSH = "C:\\Program Files\\OpenSSH\\usr\\sbin"

KNOWN_PROCESSES = {
    "apache2": ProcessName.APACHE2,
    "bash": ProcessName.SHELL,
    "cmd.exe": ProcessName.CMD,
    "cron": ProcessName.CRON,
    "femitter.exe": ProcessName.FEMITTER,
    "init": ProcessName.INIT,
    "smss.exe": ProcessName.SMSS,
    "Smss.exe": ProcessName.SMSS,
    "smtp": ProcessName.SMTP,
    "sshd": ProcessName.SSHD,
    "sshd.exe": ProcessName.SSHD,
    "Sshd.exe": ProcessName.SSHD,
    "svchost.exe": ProcessName.SVCHOST,
    "Svchost.exe": ProcessName.SVCHOST,
    "VelociraptorClient": ProcessName.VELOCLIENT,
}
KNOWN_PATHS = {
    "/sbin": Path.SBIN,
    "/bin": Path.BIN,
    "/usr/sbin": Path.USR_SBIN,
    "/usr/bin": Path.USR_BIN,
    "/tmp/": Path.TEMP,
    "C:\\temp\\": Path.TEMP,
}


class Process(NamedTuple):
    """A process, and the ports on which it listens."""

    pid: int
    parent: int | None
    name: str
    user: str
    path: str | None = None
    ports: tuple[int, ...] = ()
    type: ProcessType = ProcessType.UNKNOWN
    address: IPv4Address = ANY_ADDRESS


_SSHD = Process(1091, 1, "sshd", "root", "/usr/sbin", (22,), ProcessType.SSH)
_WINDOWS_SSHD = Process(3368, 5956, "sshd.exe", "sshd_server", _OPENSSH, (22,), ProcessType.SSH)
_FEMITTER_PATH = "C:\\Program Files\\Femitter"
_FEMITTER = Process(
    3344, 5566, "femitter.exe", "SYSTEM", _FEMITTER_PATH, (21,), ProcessType.FEMITTER
)
_APACHE = Process(1100, 1, "apache2", "www-data", "/usr/sbin", (80, 443), ProcessType.WEBSERVER)
_MAIL = Process(1102, 1, "smtp", "root", "/usr/sbin", (25,), ProcessType.SMTP)
_RPC = Process(832, 4, "svchost.exe", "SYSTEM", None, (135,))
_WEB_SERVER = (
    _WINDOWS_SSHD,
    _RPC,
    Process(4400, 4, "svchost.exe", "SYSTEM", None, (3389,), ProcessType.RDP),
    Process(4, 372, "smss.exe", "SYSTEM", None, (445, 139)),
    Process(3404, 4, "tomcat8.exe", "NetworkService", None, (80, 443), ProcessType.WEBSERVER),
)
OT_SERVICE = Process(1043, 1, "OTService", "root", "/root")
PROCESSES = {
    "Defender": (
        Process(1, 0, "init", "root", "/sbin"),
        Process(389, 1, "systemd-journald", "root", "/lib/systemd"),
        Process(407, 1, "systemd-udevd", "root", "/lib/systemd"),
        Process(409, 1, "lvmetad", "root", "/sbin"),
        Process(560, 1, "systemd-timesyncd", "systemd+", "/lib/systemd"),
        Process(790, 1, "accounts-daemon", "root", "/usr/lib/accountsservice"),
        Process(802, 1, "atd", "daemon", "/usr/sbin"),
        Process(803, 1, "bash", "velocir+", "/bin"),
        Process(807, 1, "rsyslogd", "syslog", "/usr/sbin"),
        Process(824, 1, "acpid", "root", "/usr/sbin"),
        Process(825, 1, "snapd", "root", "/usr/lib/snapd"),
        Process(827, 1, "dbus-daemon", "message+", "/usr/bin"),
        Process(832, 803, "velociraptor.bin", "velocir+", "/usr/local/bin"),
        Process(844, 1, "cron", "root", "/usr/sbin"),
        Process(847, 1, "systemd-logind", "root", "/lib/systemd"),
        Process(852, 1, "python3", "root", "/usr/bin"),
        Process(853, 1, "lxcfs", "root", "/usr/bin"),
        Process(863, 1, "polkitd", "root", "/usr/lib/policykit-1"),
        Process(867, 1, "python3", "root", "/usr/bin"),
        Process(875, 1, "agetty", "root", "/sbin"),
        Process(884, 1, "agetty", "root", "/sbin"),
        Process(1370, 1, "python3", "root", "/usr/bin"),
        Process(1432, 1, "systemd-hostnamed", "root", "/lib/systemd"),
        Process(2288, 879, "sshd", "root", None, (), ProcessType.SSH),
        Process(879, 1, "sshd", "root", "/usr/sbin", (22,), ProcessType.SSH),
        Process(656, 1, "systemd-resolved", "systemd+", "/lib/systemd", (53, 53), address=RESOLVER),
        Process(
            634, 1, "systemd-networkd", "systemd+", "/lib/systemd", (68,), address=FORMER_ADDRESS
        ),
    ),
    "Enterprise0": (_SSHD,),
    "Enterprise1": _WEB_SERVER,
    "Enterprise2": _WEB_SERVER,
    "Op_Host0": (_SSHD,),
    "Op_Host1": (_SSHD,),
    "Op_Host2": (_SSHD,),
    "Op_Server0": (_SSHD, OT_SERVICE),
    "User0": (_WINDOWS_SSHD, _FEMITTER),
    "User1": (_WINDOWS_SSHD, _FEMITTER),
    "User2": (
        Process(4, 372, "smss.exe", "SYSTEM", None, (445, 139), ProcessType.SMB),
        _RPC,
        Process(4400, 4, "svchost.exe", "NetworkService", None, (3389,), ProcessType.RDP),
    ),
    "User3": (
        Process(1101, 1, "mysql", "root", "/etc/init.d", (3389,), ProcessType.MYSQL),
        _APACHE,
        _MAIL,
    ),
    "User4": (
        _SSHD,
        Process(1101, 1, "mysql", "root", "/etc/init.d", (3390,), ProcessType.MYSQL),
        _APACHE,
        _MAIL,
    ),
}

# By index in names.DECOYS. The host determines the process id, and the user where it is empty.
DECOYS = (
    Process(0, 1, "apache2", "", None, (80,), ProcessType.WEBSERVER),
    Process(0, 1, "femitter", "SYSTEM", None, (21,), ProcessType.FEMITTER),
    Process(0, 1, "haraka", "", None, (25,), ProcessType.SMTP),
    Process(0, 1, "Smss.exe", "", None, (139,), ProcessType.SMB),
    Process(0, 1, "Sshd.exe", "", None, (22,), ProcessType.SSH),
    Process(0, 1, "Svchost.exe", "", None, (3389,), ProcessType.RDP),
    Process(0, 1, "Tomcat.exe", "", None, (443,), ProcessType.WEBSERVER),
    Process(0, 1, "vsftpd", "", None, (80,), ProcessType.WEBSERVER),
)


class Account(NamedTuple):
    """A user account of a host."""

    name: str
    group: int | None = None
    password: str | None = None


_DEFENDER_ACCOUNTS = (Account("root", 0), Account("ubuntu", 1000))
_WINDOWS_ACCOUNTS = (
    Account("Administrator", 0),
    Account("GreenAgent"),
    Account("vagrant", 0, "vagrant"),
    Account("SYSTEM"),
)
_LINUX_ACCOUNTS = (
    Account("root", 0),
    Account("www-data", 33),
    Account("pi", 1001, "raspberry"),
    Account("ubuntu", 1000),
    Account("GreenAgent", 1001),
)


class Session(NamedTuple):
    """A session of an agent, and its process."""

    agent: str
    number: int
    type: SessionType
    process: Process


_BLUE_NUMBERS = {
    "User0": 1,
    "User1": 2,
    "User2": 3,
    "User3": 4,
    "User4": 5,
    "Enterprise0": 6,
    "Enterprise1": 7,
    "Enterprise2": 8,
    "Defender": 9,
    "Op_Server0": 10,
    "Op_Host0": 11,
    "Op_Host1": 12,
    "Op_Host2": 13,
}
_GREEN_HOSTS = ("User0", "User1", "User2", "User3", "User4", "Op_Host0", "Op_Host1", "Op_Host2")


def accounts(host: str) -> tuple[Account, ...]:
    """User accounts of a host."""
    if host == "Defender":
        return _DEFENDER_ACCOUNTS
    return _WINDOWS_ACCOUNTS if host in WINDOWS else _LINUX_ACCOUNTS


def blue_user(host: str) -> str:
    """Account of blue's session on a host."""
    return "SYSTEM" if host in ("Enterprise1", "Enterprise2") else "ubuntu"


def decoy_process(host: str, number: int, pid: int) -> Process:
    """Process of a decoy on a host."""
    process = DECOYS[number]
    return process._replace(pid=pid, user=process.user or blue_user(host))


def _starting_sessions(host: str) -> list[Session]:
    server = Process(0, None, "VelociraptorServer", "ubuntu")
    client = Process(0, None, "VelociraptorClient", blue_user(host))
    green = Process(0, None, "green_session", "GreenAgent")
    foothold = Process(0, None, "RedAbstractSession", "SYSTEM")
    sessions = [
        Session("Blue", _BLUE_NUMBERS[host], SessionType.VELOCIRAPTOR_CLIENT, client),
    ]
    if host == "Defender":
        sessions.insert(0, Session("Blue", 0, SessionType.VELOCIRAPTOR_SERVER, server))
    if host in _GREEN_HOSTS:
        number = _GREEN_HOSTS.index(host)
        sessions.append(Session("Green", number, SessionType.GREY_SESSION, green))
    if host == "User0":
        sessions.append(Session("Red", 0, SessionType.RED_ABSTRACT_SESSION, foothold))
    return sessions


# Sessions from the start of an episode to its end.
STARTING_SESSIONS = {host: _starting_sessions(host) for host in PROCESSES}


def red_session(host: str, number: int, *, ssh: bool, privileged: bool) -> Session:
    """Session that red opened with an exploit."""
    windows = host in WINDOWS
    if ssh:
        user, parent = ("vagrant", _WINDOWS_SSHD) if windows else ("pi", _SSHD)
        process = Process(0, parent.pid, "sshd", user, parent.path, (), ProcessType.SSH)
        type_ = SessionType.SSH
    else:
        user = "NetworkService" if windows else "www-data"
        name, path = ("cmd.exe", "C:\\temp\\") if windows else ("cmd.sh", "/tmp/")
        process = Process(0, 1, name, user, path)
        type_ = SessionType.RED_REVERSE_SHELL
    if privileged:
        process = process._replace(user="SYSTEM" if windows else "root")
    return Session("Red", number, type_, process)
