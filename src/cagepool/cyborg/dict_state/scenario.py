"""What CybORG's Scenario2 says of its hosts beyond the rules: processes, accounts, systems.

None of it influences a game; it fills the dictionary of the true state (dictionary.py).
"""

from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from cagepool.cyborg.dict_state.enums import Path, ProcessName, ProcessType, SessionType

WINDOWS = ("Enterprise1", "Enterprise2", "User0", "User1", "User2")

ANY_ADDRESS = IPv4Address("0.0.0.0")
LOOPBACK = IPv4Address("127.0.0.1")
LOOPBACK_NETWORK = IPv4Network("127.0.0.0/8")
RESOLVER = IPv4Address("127.0.0.53")
FORMER_ADDRESS = IPv4Address("10.0.11.88")  # of the machine from which Defender's image was made

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
    """A process; those that listen do so on one address."""

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

# By number; process id and user, if it is empty here, come with the host.
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
    """A user of a host."""

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
    """An agent's session and the process behind it."""

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
    """The users of a host."""
    if host == "Defender":
        return _DEFENDER_ACCOUNTS
    return _WINDOWS_ACCOUNTS if host in WINDOWS else _LINUX_ACCOUNTS


def blue_user(host: str) -> str:
    """The account under which blue works on a host."""
    return "SYSTEM" if host in ("Enterprise1", "Enterprise2") else "ubuntu"


def decoy(host: str, number: int, pid: int) -> Process:
    """The process of a decoy that blue has placed."""
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


# They never end.
STARTING_SESSIONS = {host: _starting_sessions(host) for host in PROCESSES}


def red_session(host: str, number: int, *, ssh: bool, privileged: bool) -> Session:
    """A session that red has opened by an exploit."""
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
