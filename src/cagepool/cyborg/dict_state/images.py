"""Facts of CybORG's images that fill the dictionary of the true state and affect no game."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from cagepool.cyborg.dict_state.enumerations import (
    OperatingSystemDistribution,
    OperatingSystemVersion,
    Path,
    ProcessName,
    ProcessType,
    ProcessVersion,
)

ANY_ADDRESS = IPv4Address("0.0.0.0")
LOOPBACK = IPv4Address("127.0.0.1")
LOOPBACK_NETWORK = IPv4Network("127.0.0.0/8")
RESOLVER = IPv4Address("127.0.0.53")
FORMER_ADDRESS = IPv4Address(
    "10.0.11.88"
)  # in the image of a Velociraptor server, from its original machine

_OPENSSH = "C:\\Program Files\\OpenSSH\\usr\\sbin"

# By names in lower case.
KNOWN_PROCESSES = {
    **dict.fromkeys(("svchost", "svchost.exe"), ProcessName.SVCHOST),
    **dict.fromkeys(("sshd", "sshd.exe"), ProcessName.SSHD),
    **dict.fromkeys(("smss", "smss.exe"), ProcessName.SMSS),
    **dict.fromkeys(("explorer", "explorer.exe"), ProcessName.EXPLORER),
    **dict.fromkeys(("lsass", "lsass.exe"), ProcessName.LSASS),
    **dict.fromkeys(("winlogon", "winlogon.exe"), ProcessName.WINLOGON),
    **dict.fromkeys(("services", "services.exe"), ProcessName.SERVICES),
    **dict.fromkeys(("bash", "sh", "sh.exe"), ProcessName.SHELL),
    **dict.fromkeys(("powershell", "powershell.exe"), ProcessName.POWERSHELL),
    **dict.fromkeys(("cmd", "cmd.exe"), ProcessName.CMD),
    **dict.fromkeys(("system idle process", "system process"), ProcessName.SYSTEM_IDLE_PROCESS),
    "init": ProcessName.INIT,
    "cron": ProcessName.CRON,
    "udevd": ProcessName.UDEVD,
    "jsvc": ProcessName.JSVC,
    "mysqld_safe": ProcessName.MYSQLD_SAFE,
    "mysqld": ProcessName.MYSQLD,
    "smbd": ProcessName.SMBD,
    "smtp": ProcessName.SMTP,
    "femitter.exe": ProcessName.FEMITTER,
    "apache2": ProcessName.APACHE2,
    "system": ProcessName.SYSTEM,
    "telnet": ProcessName.TELNET,
    "sleep": ProcessName.SLEEP,
    "java": ProcessName.JAVA,
    "ps": ProcessName.PS,
    "velociraptorclient": ProcessName.VELOCLIENT,
}
KNOWN_PATHS = {
    **dict.fromkeys(("c:/windows/system32/", "c:\\windows\\system32\\"), Path.WINDOWS_SYSTEM),
    **dict.fromkeys(("c:/windows/", "c:\\windows\\"), Path.WINDOWS),
    **dict.fromkeys(("/tmp/", "c:\\temp\\"), Path.TEMP),
    **dict.fromkeys(("/sbin", "/sbin/"), Path.SBIN),
    **dict.fromkeys(("/bin", "/bin/"), Path.BIN),
    **dict.fromkeys(("/usr/sbin", "/usr/sbin/"), Path.USR_SBIN),
    **dict.fromkeys(("/usr/bin", "/usr/bin/"), Path.USR_BIN),
    **dict.fromkeys(("/etc", "/etc/"), Path.ETC),
    "system": Path.SYSTEM,
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
    version: ProcessVersion | None = None


class Account(NamedTuple):
    """A user account of a host."""

    name: str
    groups: tuple[int, ...] = ()
    password: str | None = None


class HostImage(NamedTuple):
    """System of a host."""

    processes: tuple[Process, ...]
    accounts: tuple[Account, ...]
    distribution: OperatingSystemDistribution
    version: OperatingSystemVersion


_SSHD = Process(1091, 1, "sshd", "root", "/usr/sbin", (22,), ProcessType.SSH)
_WINDOWS_SSHD = Process(3368, 5956, "sshd.exe", "sshd_server", _OPENSSH, (22,), ProcessType.SSH)
_FEMITTER_PATH = "C:\\Program Files\\Femitter"
_FEMITTER = Process(
    3344, 5566, "femitter.exe", "SYSTEM", _FEMITTER_PATH, (21,), ProcessType.FEMITTER
)
_APACHE = Process(1100, 1, "apache2", "www-data", "/usr/sbin", (80, 443), ProcessType.WEBSERVER)
_MAIL = Process(
    *(1102, 1, "smtp", "root", "/usr/sbin", (25,), ProcessType.SMTP),
    version=ProcessVersion.HARAKA_2_7_0,
)
_RPC = Process(832, 4, "svchost.exe", "SYSTEM", None, (135,))
_WEB_SERVER = (
    _WINDOWS_SSHD,
    _RPC,
    Process(4400, 4, "svchost.exe", "SYSTEM", None, (3389,), ProcessType.RDP),
    Process(4, 372, "smss.exe", "SYSTEM", None, (445, 139)),
    Process(3404, 4, "tomcat8.exe", "NetworkService", None, (80, 443), ProcessType.WEBSERVER),
)
OT_SERVICE = Process(1043, 1, "OTService", "root", "/root")
_SERVER_PROCESSES = (
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
    Process(634, 1, "systemd-networkd", "systemd+", "/lib/systemd", (68,), address=FORMER_ADDRESS),
)
_KALI_THREADS = {
    3: "rcu_gp",
    4: "rcu_par_gp",
    5: "kworker/0:0-events",
    6: "kworker/0:0H-kblockd",
    7: "kworker/u30:0-events_unbound",
    8: "mm_percpu_wq",
    9: "ksoftirqd/0",
    10: "rcu_sched",
    11: "rcu_bh",
    12: "migration/0",
    13: "kworker/0:1-events",
    14: "cpuhp/0",
    15: "kdevtmpfs",
    16: "netns",
    17: "kauditd",
    18: "xenbus",
    19: "xenwatch",
    20: "khungtaskd",
    21: "oom_reaper",
    22: "writeback",
    23: "kcompactd0",
    24: "ksmd",
    25: "khugepaged",
    26: "crypto",
    27: "kintegrityd",
    28: "kblockd",
    29: "edac-poller",
    30: "devfreq_wq",
    31: "watchdogd",
    33: "kworker/0:2-memcg_kmem_cache",
    34: "kswapd0",
    52: "kthrotld",
    53: "ipv6_addrconf",
    54: "kworker/u30:1-events_unbound",
    63: "kstrp",
    109: "ata_sff",
    110: "scsi_eh_0",
    111: "scsi_tmf_0",
    112: "scsi_eh_1",
    113: "scsi_tmf_1",
    114: "kworker/u30:2-events_unbound",
    123: "kworker/u30:3",
    173: "kworker/0:1H-kblockd",
    197: "kworker/u31:0",
    199: "jbd2/xvda1-8",
    200: "ext4-rsv-conver",
}


def _kernel_threads(names: Mapping[int, str]) -> tuple[Process, ...]:
    return tuple(Process(pid, 2, f"[{name}]", "root") for pid, name in names.items())


_KALI_PROCESSES = (
    Process(1, 0, "init", "root", "/sbin"),
    Process(2, 0, "[kthreadd]", "root"),
    *_kernel_threads(_KALI_THREADS),
    Process(248, 1, "systemd-journald", "root", "/lib/systemd"),
    Process(278, 1, "systemd-udevd", "root", "/lib/systemd"),
    Process(294, 1, "haveged", "root", "/usr/sbin"),
    *_kernel_threads({301: "ttm_swap"}),
    Process(660, 1, "systemd-logind", "root", "/lib/systemd"),
    Process(662, 1, "rsyslogd", "root", "/usr/sbin"),
    Process(665, 1, "ModemManager", "root", "/usr/sbin"),
    Process(686, 1, "cron", "root", "/usr/sbin"),
    Process(690, 1, "dbus-daemon", "message+", "/usr/bin"),
    Process(692, 1, "NetworkManager", "root", "/usr/sbin"),
    Process(703, 1, "polkitd", "root", "/usr/lib/policykit-1"),
    Process(714, 1, "agetty", "root", "/sbin"),
    Process(715, 1, "agetty", "root", "/sbin"),
    Process(1048, 718, "sshd:", "root"),
    Process(718, 1, "sshd", "root", "/usr/sbin", (22,), ProcessType.SSH),
    Process(832, 1, "msfrpcd", "root", None, (55553,)),
    Process(516, 1, "dhclient", "root", "/sbin", (68,)),
    Process(435, 1, "dhclient", "root", "/sbin", (68,)),
)

_SERVER_ACCOUNTS = (Account("root", (0,)), Account("ubuntu", (1000,)))
_WINDOWS_ACCOUNTS = (
    Account("Administrator", (0,)),
    Account("GreenAgent"),
    Account("vagrant", (0,), "vagrant"),
    Account("SYSTEM"),
)
_LINUX_ACCOUNTS = (
    Account("root", (0,)),
    Account("www-data", (33,)),
    Account("pi", (1001,), "raspberry"),
    Account("ubuntu", (1000,)),
    Account("GreenAgent", (1001,)),
)
_KALI_ACCOUNTS = (Account("root", (0,)), Account("www-data", (33,)), Account("ec2-user", (1000,)))
_UBUNTU = (OperatingSystemDistribution.UBUNTU, OperatingSystemVersion.U18_04_3)
_WINDOWS = (OperatingSystemDistribution.WINDOWS_SVR_2008, OperatingSystemVersion.W6_1_7601)


def _linux_image(*processes: Process) -> HostImage:
    return HostImage(processes, _LINUX_ACCOUNTS, *_UBUNTU)


def _windows_image(*processes: Process) -> HostImage:
    return HostImage(processes, _WINDOWS_ACCOUNTS, *_WINDOWS)


def _mysql(port: int) -> Process:
    return Process(1101, 1, "mysql", "root", "/etc/init.d", (port,), ProcessType.MYSQL)


IMAGES = {
    "Gateway": _linux_image(_SSHD),
    "linux_decoy_host": _linux_image(_SSHD),
    "OP_Server": _linux_image(_SSHD, OT_SERVICE),
    "Velociraptor_Server": HostImage(_SERVER_PROCESSES, _SERVER_ACCOUNTS, *_UBUNTU),
    "Kali_Box": HostImage(
        _KALI_PROCESSES,
        _KALI_ACCOUNTS,
        OperatingSystemDistribution.KALI,
        OperatingSystemVersion.K2019_4,
    ),
    "Internal": _windows_image(*_WEB_SERVER),
    "windows_user_host1": _windows_image(_WINDOWS_SSHD, _FEMITTER),
    "windows_user_host2": _windows_image(
        Process(4, 372, "smss.exe", "SYSTEM", None, (445, 139), ProcessType.SMB),
        _RPC,
        Process(4400, 4, "svchost.exe", "NetworkService", None, (3389,), ProcessType.RDP),
    ),
    "linux_user_host1": _linux_image(_mysql(3389), _APACHE, _MAIL),
    "linux_user_host2": _linux_image(_SSHD, _mysql(3390), _APACHE, _MAIL),
}
"""CybORG's images, by name."""

# By index in names.DECOYS. The host determines the process id, and the user where it is empty.
DECOYS = (
    Process(0, 1, "apache2", "", None, (80,), ProcessType.WEBSERVER),
    Process(0, 1, "femitter", "SYSTEM", None, (21,), ProcessType.FEMITTER),
    Process(
        *(0, 1, "haraka", "", None, (25,), ProcessType.SMTP), version=ProcessVersion.HARAKA_2_7_0
    ),
    Process(0, 1, "Smss.exe", "", None, (139,), ProcessType.SMB),
    Process(0, 1, "Sshd.exe", "", None, (22,), ProcessType.SSH),
    Process(0, 1, "Svchost.exe", "", None, (3389,), ProcessType.RDP),
    Process(0, 1, "Tomcat.exe", "", None, (443,), ProcessType.WEBSERVER),
    Process(0, 1, "vsftpd", "", None, (80,), ProcessType.WEBSERVER),
    Process(0, 1, "Smss.exe", "", None, (139,)),  # of Misinform, which traps nothing
    Process(0, 1, "Svchost.exe", "", None, (3389,), ProcessType.SVCHOST),  # the same
)
