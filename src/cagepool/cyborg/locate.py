"""Find and import CybORG, which is on no package registry, and detect its edition."""

import io
import os
import sys
import warnings
from contextlib import redirect_stderr
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

VARIABLE = "CAGEPOOL_CYBORG"
REQUIREMENTS = "'numpy<2' gym==0.26.2 pyyaml prettytable paramiko"


class CybORGNotFoundError(ImportError):
    """CybORG or one of its requirements is missing."""


def load(checkout: str | os.PathLike[str] | None = None) -> ModuleType:
    """Import CybORG from a checkout, from the folder in `CAGEPOOL_CYBORG`, or as installed.

    Raises:
        CybORGNotFoundError: CybORG is missing or cannot be imported.
        ValueError: this process has imported another CybORG.
    """
    folder = checkout or os.environ.get(VARIABLE)
    if folder:
        _make_importable(_find_package(Path(folder)))
    elif find_spec("CybORG") is None:
        raise CybORGNotFoundError(
            "CybORG must be installed, or a checkout of CAGE Challenge 2 named "
            f"by the environment variable {VARIABLE}; got neither"
        )
    try:
        return _import_quietly("CybORG")
    except ImportError as error:
        remedy = f"pip install {REQUIREMENTS}"
        raise CybORGNotFoundError(f"CybORG cannot be imported: {error} ({remedy})") from error


def import_object(name: str) -> Any:
    """Import an object of the loaded CybORG, such as `Agents.B_lineAgent`."""
    module, _, member = name.rpartition(".")
    return getattr(_import_quietly(f"CybORG.{module}"), member)


def _import_quietly(module: str) -> ModuleType:
    """Import without deprecations of old libraries and without Gym's notice on stderr."""
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return import_module(module)


def package_folder(package: ModuleType) -> Path:
    """Folder of the loaded package."""
    assert package.__file__ is not None
    return Path(package.__file__).resolve().parent


def detect_edition(package: ModuleType) -> str:
    """Edition that the loaded CybORG plays, by the two rules in which the editions differ."""
    forgets_ports = hasattr(import_object("Simulator.Session.RedAbstractSession"), "clearports")
    versions = import_object("Shared.Enums.ProcessVersion")
    mail = versions.HARAKA_2_7_0
    keeps_mail_server = versions.parse_string(mail) is mail
    if forgets_ports != keeps_mail_server:  # docs/rules.md, section 16: L1 and L2
        raise ValueError(
            "CybORG must be of edition 2.1 or leaderboard, got one between them: "
            f"{package_folder(package)}"
        )
    return "2.1" if forgets_ports else "leaderboard"


def _find_package(checkout: Path) -> Path:
    """Package folder in a checkout, given its root, its CybORG folder or the package itself."""
    for candidate in (checkout / "CybORG" / "CybORG", checkout / "CybORG", checkout):
        if (candidate / "Simulator" / "State.py").is_file():
            return candidate.resolve()
    raise CybORGNotFoundError(f"a checkout of CAGE Challenge 2 must hold CybORG, got {checkout}")


def _make_importable(package: Path) -> None:
    loaded = sys.modules.get("CybORG")
    if loaded is None:
        sys.path.insert(0, str(package.parent))
    elif package_folder(loaded) != package:
        raise ValueError(
            f"a process can hold one CybORG only: {package_folder(loaded)} is loaded, got {package}"
        )
