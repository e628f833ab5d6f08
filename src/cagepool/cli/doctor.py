"""`cagepool doctor`: describe the installation and check it. It needs no extra."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from cagepool import _core
from cagepool._machine import processor_model, usable_cores, usable_memory_bytes
from cagepool._optional import remedy
from cagepool.cli import EXIT_FAILURE
from cagepool.cyborg.locate import VARIABLE
from cagepool.self_check import CheckResult, run_checks

# What an extra adds to the games, the evaluation and `cagepool.load`, which need none.
EXTRAS = {
    "cli": "the commands",
    "train": "cagepool train; policies with a network of their own",
    "report": "cagepool report",
    "bench": "cagepool bench and profile",
    "search": "cagepool search",
    "study": "cagepool study, cagepool.study",
    "render": "frames of games (render_mode rgb_array)",
    "sb3": "Stable-Baselines3, MaskablePPO and their models",
    "pettingzoo": "a red that learns too",
    "onnx": "policies in ONNX files",
    "export": "cagepool export",
    "wandb": "logs to Weights & Biases",
    "minari": "cagepool record",
    "jax": "the games in JAX",
    "ray": "RLlib; training on several machines",
}
FOR_DEVELOPERS = ("dev", "docs")
_CYBORG_SECONDS = 60
_CYBORG = """
from cagepool.cyborg import locate
print(locate.detect_edition(locate.load()))
"""


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Describe this installation and check it in about ten seconds, as text to paste into an issue.

    The exit code is 1 if the self-check fails.
    """


def doctor(_command: Doctor) -> None:
    """Print the description, run the self-check, and exit with 1 if it fails."""
    _print_section("cagepool", _installation())
    _print_section("machine", _machine())
    _print_section("extras", _extras())
    _print_section("CybORG", [_cyborg()])
    results = run_checks()
    _print_section("self-check", map(_check_line, results))
    failed = [result.name for result in results if not result.passed]
    if failed:
        print(
            f"cagepool: the self-check failed ({', '.join(failed)}): do not trust results of this "
            "installation; install it again, or report this text as an issue",
            file=sys.stderr,
        )
        sys.exit(EXIT_FAILURE)


def _print_section(title: str, lines: Iterable[str]) -> None:
    print(title)
    for line in lines:
        print(f"  {_without_home(line)}", flush=True)


def _without_home(text: str) -> str:
    """The text without the user's name, which is in the path of the home folder."""
    home = Path.home()
    for folder in {str(home), str(home.resolve())} - {home.root}:
        text = text.replace(folder, "~")
    return text


def _installation() -> list[str]:
    module = Path(_core.__file__).name
    libraries = [_name_of(requirement) for requirement in _requirements(None)]
    return [
        f"cagepool {metadata.version('cagepool')}",
        f"core: {module}, compiler {_core.COMPILER}, instruction set {_core.simd_level()}",
        f"Python {platform.python_version()} ({platform.python_implementation()})",
        ", ".join(_with_version(name) for name in libraries),
    ]


def _machine() -> list[str]:
    memory = usable_memory_bytes()
    return [
        f"{platform.platform(terse=True)}, {platform.machine()}, {' '.join(platform.libc_ver())}",
        processor_model() or "unknown processor",
        f"{usable_cores()} of {os.cpu_count()} cores may be used",
        "unknown memory" if memory is None else f"{memory / 2**30:.1f} GiB of memory",
    ]


def _extras() -> list[str]:
    """One line per extra: what is installed, or what is missing, what it gives, and how."""
    known = metadata.metadata("cagepool").get_all("Provides-Extra") or []
    return [_extra_line(extra) for extra in known if extra not in FOR_DEVELOPERS]


def _extra_line(extra: str) -> str:
    packages = [_name_of(requirement) for requirement in _requirements(extra)]
    missing = [name for name in packages if _version(name) is None]
    gives = EXTRAS.get(extra, "")
    if not missing:
        installed = ", ".join(_with_version(name) for name in packages)
        return f"{extra:<11}yes  {gives}: {installed}"
    return f"{extra:<11}no   {gives}: {remedy(extra, *missing)}"


def _requirements(extra: str | None) -> list[str]:
    """Requirements of an extra with those of the extras that it names; None: of the package."""
    found = []
    for requirement in metadata.requires("cagepool") or []:
        of_extra = re.search(r"extra == ['\"]([\w.-]+)['\"]", requirement)
        if (of_extra[1] if of_extra else None) != extra:
            continue
        own = re.match(r"cagepool\[([\w,.-]+)\]", requirement)
        found += (
            [one for name in own[1].split(",") for one in _requirements(name)]
            if own
            else [requirement]
        )
    return [*dict.fromkeys(found)]


def _name_of(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None
    return match[0]


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _with_version(distribution: str) -> str:
    return f"{distribution} {_version(distribution) or 'missing'}"


def _cyborg() -> str:
    """The CybORG that would be used. It is imported in another process: it may fail in any way."""
    source = f"the folder in {VARIABLE}" if os.environ.get(VARIABLE) else "installed"
    if source == "installed" and find_spec("CybORG") is None:
        return f"none: it is not installed, and {VARIABLE} names no folder"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CYBORG],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_CYBORG_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"{source}, but not imported within {_CYBORG_SECONDS} seconds"
    if done.returncode == 0:
        return f"{source}, edition {done.stdout.strip()}"
    error = done.stderr.strip().splitlines()
    return f"none: {error[-1].partition(': ')[2] if error else f'exit code {done.returncode}'}"


def _check_line(result: CheckResult) -> str:
    outcome = "ok    " if result.passed else "FAILED"
    return f"{outcome} {result.name}, {result.seconds:.1f} s: {result.detail}"
