"""CybORG's enumerations as far as the true state uses them: same names, same numbers."""

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
    """How a session came about."""

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
    """Make of an operating system."""

    WINDOWS_SVR_2008 = 4
    UBUNTU = 8


class OperatingSystemVersion(_Named):
    """Release of an operating system."""

    U18_04_3 = 6
    W6_1_7601 = 13


class Architecture(Enum):
    """Kind of processor."""

    x64 = 2


class ProcessName(Enum):
    """Programs that CybORG knows by name."""

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
    """What a process offers."""

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
    """Folders that CybORG knows by name."""

    UNKNOWN = 1
    TEMP = 5
    SBIN = 6
    BIN = 7
    USR_SBIN = 8
    USR_BIN = 9


class TransportProtocol(_Named):
    """What a connection runs over; CybORG's scenario never says."""

    UNKNOWN = 1
