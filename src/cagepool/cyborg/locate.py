"""Finding CybORG, which is on no registry, and telling which edition of the game it plays."""

import os
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

VARIABLE = "CAGEPOOL_CYBORG"
REQUIREMENTS = "'numpy<2' gym==0.26.2 pyyaml prettytable paramiko"


class CybORGNotFoundError(ImportError):
    """CybORG, or something that it needs, is not there."""


def load(checkout: str | os.PathLike[str] | None = None) -> ModuleType:
    """Import CybORG from a checkout, from the one that `CAGEPOOL_CYBORG` names, or as installed.

    Raises:
        CybORGNotFoundError: it is not there, or cannot be imported.
        ValueError: another CybORG has been imported before.
    """
    named = checkout or os.environ.get(VARIABLE)
    if named:
        _make_importable(_package_folder(Path(named)))
    elif find_spec("CybORG") is None:
        raise CybORGNotFoundError(
            "CybORG must be installed, or a checkout of CAGE Challenge 2 named "
            f"by the environment variable {VARIABLE}; got neither"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its libraries are old, which users cannot help
            return import_module("CybORG")
    except ImportError as error:
        remedy = f"pip install {REQUIREMENTS}"
        raise CybORGNotFoundError(f"CybORG cannot be imported: {error} ({remedy})") from error


def part(name: str) -> Any:
    """Something in CybORG, such as `Agents.B_lineAgent`, once it is loaded."""
    module, _, member = name.rpartition(".")
    return getattr(import_module(f"CybORG.{module}"), member)


def folder(package: ModuleType) -> Path:
    """The folder of the loaded package."""
    assert package.__file__ is not None
    return Path(package.__file__).resolve().parent


def edition(package: ModuleType) -> str:
    """The edition that the loaded CybORG plays, told by the two rules that differ.

    Raises:
        ValueError: it is neither; one rule is of one edition and one of the other.
    """
    forgets_ports = hasattr(part("Simulator.Session.RedAbstractSession"), "clearports")  # L1
    versions = part("Shared.Enums.ProcessVersion")
    mail = versions.HARAKA_2_7_0
    keeps_mail_server = versions.parse_string(mail) is mail  # L2
    if forgets_ports != keeps_mail_server:
        raise ValueError(
            f"CybORG must be of edition 2.1 or leaderboard, got one between them: {folder(package)}"
        )
    return "2.1" if forgets_ports else "leaderboard"


def _package_folder(checkout: Path) -> Path:
    """The package in a checkout, whose root, its CybORG folder or the package may be named."""
    below = (checkout / "CybORG" / "CybORG", checkout / "CybORG", checkout)
    for candidate in below:
        if (candidate / "Simulator" / "State.py").is_file():
            return candidate.resolve()
    raise CybORGNotFoundError(f"a checkout of CAGE Challenge 2 must hold CybORG, got {checkout}")


def _make_importable(package: Path) -> None:
    loaded = sys.modules.get("CybORG")
    if loaded is None:
        sys.path.insert(0, str(package.parent))
    elif folder(loaded) != package:
        raise ValueError(
            f"a process can hold one CybORG only: {folder(loaded)} is loaded, got {package}"
        )
