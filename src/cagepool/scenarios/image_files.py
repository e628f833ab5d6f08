"""Image files of one's own, in CybORG's format (docs/scenarios.md, 1.6.2)."""

import re
from pathlib import Path

from cagepool.scenarios.images import EXPLOITED_PORTS, IMAGES, Image, Process
from cagepool.scenarios.vocabulary import PRIVILEGED_ACCOUNTS
from cagepool.scenarios.yaml_reader import Field, RefusedError, read_yaml

_FILE_NAME = re.compile(r"\w[\w.-]{0,99}", re.ASCII)
_PROCESS_TYPES = {
    **dict.fromkeys(("ssh", "sshd", "sshd.exe"), "ssh"),
    **dict.fromkeys(("webserver", "http", "https"), "web"),
    "smtp": "mail",
    "femitter": "ftp",
    "mysql": "sql",
    "smb": "smb",
    "rdp": "rdp",
}
_MAIL_VERSION = "haraka 2.7.0"


class ImageLibrary:
    """The built-in images, and those in a folder."""

    def __init__(self, folder: Path) -> None:
        """Look up images that are not built in as `name.yaml` in a folder, which may not exist."""
        self._folder = folder
        self._read: dict[str, Image] = {}

    def find(self, field: Field) -> Image:
        """The image that a field of a scenario file names."""
        name = field.text()
        if name in IMAGES:
            return IMAGES[name]
        if name not in self._read:
            path = self._folder / f"{name}.yaml"
            if not _FILE_NAME.fullmatch(name) or not path.exists():
                raise field.refused(
                    f"be one of {', '.join(IMAGES)}, or have a file in {self._folder}"
                )
            self._read[name] = read_image(path)
        return self._read[name]


def read_image(path: Path) -> Image:
    """Image of a file."""
    content = Field(read_yaml(path))
    try:
        return _image(path.stem, content.get("Test_Host"))
    except RefusedError as error:
        raise ValueError(f"{path}: {error}") from error


def _image(name: str, field: Field) -> Image:
    windows = _is_windows(field)
    processes = (_process(one, windows=windows) for one in _listed(field, "Processes"))
    return Image(
        name,
        windows=windows,
        processes=tuple(process for process in processes if process),
        guessable=_guessable_account(field),
        ot=_runs_ot_service(field),
        content=field.value,
    )


def _listed(field: Field, key: str) -> list[Field]:
    listed = field.get(key)
    return [] if listed.is_absent else listed.items()


def _is_windows(field: Field) -> bool:
    system = field.get("System info")
    for holder in (field, system):
        patches = holder.get("Patches")
        if not patches.is_absent:
            raise patches.refused("be absent")
    for required in ("Architecture", "OSDistribution", "OSVersion"):
        system.get(required).text()
    family = system.get("OSType")
    if family.text().upper() not in ("WINDOWS", "LINUX"):
        raise family.refused("be WINDOWS or LINUX")
    return family.text().upper() == "WINDOWS"


def _process(field: Field, *, windows: bool) -> Process | None:
    """A listening process; None if it does not listen."""
    type_ = _process_type(field)
    if type_ == "mail":
        field.get("Process Version").one_of((_MAIL_VERSION,))
    ports = tuple(_port(connection) for connection in _listed(field, "Connections"))
    if not ports:
        return None
    account = field.get("Username").text()
    wrong = "root" if windows else "SYSTEM"
    is_attacked = type_ is not None and type_ != "ssh" and EXPLOITED_PORTS[type_] & {*ports}
    if account == wrong and is_attacked:
        raise field.get("Username").refused(
            f"be another account than {wrong} on {'Windows' if windows else 'Linux'}"
        )
    return Process(ports, type_, account, rfi=_has_rfi(field.get("Properties")))


def _process_type(field: Field) -> str | None:
    type_ = field.get("Process Type")
    if type_.is_absent or type_.value is None:
        type_ = field.get("Process Name")
    return None if type_.is_absent else _PROCESS_TYPES.get(type_.text().lower())


def _port(field: Field) -> int:
    port = field.get("local_port")
    if type(port.value) is not int or not 0 < port.value < 2**16:
        raise port.refused("be a port number")
    return port.value


def _has_rfi(field: Field) -> bool:
    if field.is_absent or field.value is None:
        return False
    if isinstance(field.value, str):
        return "rfi" in field.value
    return any(one.text() == "rfi" for one in field.items())


def _guessable_account(field: Field) -> str | None:
    """The first account that can be guessed."""
    for user in _listed(field, "User Info"):
        guessable = user.get("Bruteforceable")
        if guessable.is_absent or guessable.value is False:
            continue
        if guessable.value is not True:
            raise guessable.refused("be true or false")
        name = user.get("Username")
        if name.text() in PRIVILEGED_ACCOUNTS:
            raise name.refused("be another account than root and SYSTEM if it can be guessed")
        return name.text()
    return None


def _runs_ot_service(field: Field) -> bool:
    services = field.get("Services")
    if services.is_absent:
        return False
    service = services.settings(("OTService",)).get("OTService")
    if service is None:
        return False
    if service.get("active").value is not True:
        raise service.get("active").refused("be true")
    pid = service.get("PID")
    running = [
        process.get("PID").value
        for process in _listed(field, "Processes")
        if process.get("Process Name").value == "OTService"
    ]
    if type(pid.value) is not int or pid.value not in running:
        raise pid.refused("be the PID of a process named OTService")
    return True
