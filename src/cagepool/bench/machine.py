"""What a measurement was made on."""

import os
import platform
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from cagepool import _core

LIBRARIES = (
    *("cagepool", "numpy", "gymnasium", "torch", "stable_baselines3", "sb3_contrib"),
    *("pufferlib", "ray", "torchrl", "pettingzoo", "CybORG"),
)


def describe() -> dict[str, object]:
    """Processor, versions, commit, and how busy the machine is now."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "compiler": _core.COMPILER,
        **_versions(),
        "commit": _commit(),
        "load": load(),
    }


def load() -> float:
    """Processes that wanted to run during the last minute, on average."""
    return round(os.getloadavg()[0], 2)


def _versions() -> dict[str, str]:
    """Of every library that may take part and is there."""
    found = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _commit() -> str | None:
    """The commit of the checkout that this module is in, with a + if it was changed."""
    git = ["git", "-C", str(Path(__file__).parent)]
    command = [*git, "describe", "--always", "--dirty=+", "--abbrev=10", "--match="]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return shown.stdout.strip()
