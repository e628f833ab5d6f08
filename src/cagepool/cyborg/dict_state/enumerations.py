"""Enumerations of CybORG that occur in the dictionary of the true state.

They have CybORG's names and numbers, and leave out members that no built-in image needs.
"""

from enum import Enum


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

    UNKNOWN = 1
    SSH = 2
    SHELL = 3
    METERPRETER = 4
    MSF_SHELL = 5
    MSF_SERVER = 6
    VELOCIRAPTOR_CLIENT = 7
    VELOCIRAPTOR_SERVER = 8
    LOCAL_SHELL = 9
    RED_ABSTRACT_SESSION = 10
    RED_REVERSE_SHELL = 11
    GREY_SESSION = 12


class OperatingSystemType(_Named):
    """Family of an operating system."""

    WINDOWS = 2
    LINUX = 3


class OperatingSystemDistribution(_Named):
    """Distribution of an operating system."""

    UNKNOWN = 1
    WINDOWS_SVR_2008 = 4
    UBUNTU = 8
    KALI = 9


class OperatingSystemVersion(_Named):
    """Release of an operating system."""

    UNKNOWN = 1
    U18_04_3 = 6
    K2019_4 = 11
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
    UDEVD = 5
    JSVC = 6
    SSHD = 7
    MYSQLD_SAFE = 8
    MYSQLD = 9
    SMBD = 10
    SMTP = 11
    FEMITTER = 12
    APACHE2 = 13
    EXPLORER = 14
    LSASS = 15
    WINLOGON = 16
    SMSS = 17
    SYSTEM = 18
    SYSTEM_IDLE_PROCESS = 19
    SERVICES = 20
    SHELL = 21
    TELNET = 22
    SLEEP = 23
    JAVA = 24
    PS = 25
    VELOCLIENT = 26
    POWERSHELL = 27
    CMD = 28


class ProcessType(_Named):
    """Service that a process offers."""

    UNKNOWN = 1
    SSH = 2
    SVCHOST = 3
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
    WINDOWS = 2
    WINDOWS_SYSTEM = 3
    SYSTEM = 4
    TEMP = 5
    SBIN = 6
    BIN = 7
    USR_SBIN = 8
    USR_BIN = 9
    ETC = 10


class TransportProtocol(_Named):
    """Transport protocol of a connection, which CybORG's scenario leaves open."""

    UNKNOWN = 1
