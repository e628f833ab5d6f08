"""Images of hosts: operating system, listening processes, accounts (docs/scenarios.md, 1.6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from cagepool.scenarios.vocabulary import EXPLOITS

# Port and type of process that each exploit attacks, in the order of EXPLOITS.
_TARGETS = (
    (139, "smb"), (3389, "rdp"), (80, "web"), (443, "web"),
    (22, "ssh"), (3390, "sql"), (25, "mail"), (21, "ftp"),
)  # fmt: skip

EXPLOITED_PORTS = {
    type_: frozenset(port for port, other in _TARGETS if other == type_) for _, type_ in _TARGETS
}
"""Ports on which exploits attack a type of process."""


@dataclass(frozen=True)
class Process:
    """A process of an image that listens on ports."""

    ports: tuple[int, ...]
    type: str | None = None  # such as "ssh"; None: no exploit attacks it
    account: str = ""
    rfi: bool = False  # whether remote files can be included

    def is_target(self, exploit: int) -> bool:
        """Whether the exploit with this index attacks the process."""
        port, type_ = _TARGETS[exploit]
        return self.type == type_ and port in self.ports


@dataclass(frozen=True)
class Image:
    """What the rules need to know of the system on a host."""

    name: str
    windows: bool
    processes: tuple[Process, ...]
    guessable: str | None = None  # account that SSHBruteForce guesses
    ot: bool = False  # whether it runs OTService
    # Of an image file of one's own: what it says, which decides no more than the fields above.
    content: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def ports(self) -> tuple[int, ...]:
        """Listening ports, as listed; the same port may be there twice."""
        return tuple(port for process in self.processes for port in process.ports)

    @cached_property
    def vulnerabilities(self) -> dict[str, str | None]:
        """Account that each exploit yields; None: resists; no entry: no such process."""
        found = {}
        for index, exploit in enumerate(EXPLOITS):
            for process in self.processes:
                if process.is_target(index):
                    found[exploit] = self._account(exploit, process)
                    break
        return found

    def _account(self, exploit: str, process: Process) -> str | None:
        if exploit == "SSHBruteForce":
            return self.guessable
        resists = (exploit == "EternalBlue" and not self.windows) or (
            exploit in ("HTTPRFI", "HTTPSRFI") and not process.rfi
        )
        return None if resists else process.account


_SSHD = Process((22,), "ssh", "root")
_WINDOWS_SSHD = Process((22,), "ssh", "sshd_server")
_HTTP = Process((80,), "web", "www-data", rfi=True)
_HTTPS = Process((443,), "web", "www-data", rfi=True)
_MAIL = Process((25,), "mail", "root")
_DHCP = Process((68,))
_RPC = Process((135,))

_ALL = (
    Image("Gateway", windows=False, processes=(_SSHD,), guessable="pi"),
    Image("linux_decoy_host", windows=False, processes=(_SSHD,), guessable="pi"),
    Image("OP_Server", windows=False, processes=(_SSHD,), guessable="pi", ot=True),
    Image("Velociraptor_Server", windows=False, processes=(_SSHD, Process((53, 53)), _DHCP)),
    Image("Kali_Box", windows=False, processes=(_SSHD, Process((55553,)), _DHCP, _DHCP)),
    Image(
        "Internal",
        windows=True,
        processes=(
            _WINDOWS_SSHD,
            _RPC,
            Process((3389,), "rdp", "SYSTEM"),
            Process((445, 139)),
            Process((80, 443), "web", "NetworkService", rfi=True),
        ),
        guessable="vagrant",
    ),
    Image(
        "windows_user_host1",
        windows=True,
        processes=(_WINDOWS_SSHD, Process((21,), "ftp", "SYSTEM")),
        guessable="vagrant",
    ),
    Image(
        "windows_user_host2",
        windows=True,
        processes=(
            Process((445, 139), "smb", "SYSTEM"),
            _RPC,
            Process((3389,), "rdp", "NetworkService"),
        ),
        guessable="vagrant",
    ),
    Image(
        "linux_user_host1",
        windows=False,
        processes=(_HTTP, Process((3389,), "sql", "root"), _HTTPS, _MAIL),
        guessable="pi",
    ),
    Image(
        "linux_user_host2",
        windows=False,
        processes=(_SSHD, _HTTP, Process((3390,), "sql", "root"), _HTTPS, _MAIL),
        guessable="pi",
    ),
)
IMAGES = MappingProxyType({image.name: image for image in _ALL})
"""The ten images of CybORG, by name."""
