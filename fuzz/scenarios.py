"""Harness: damaged scenario and image files are refused with a sentence, or read."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from numpy.random import Generator

from cagepool import Scenario
from fuzz.outcomes import UnexpectedOutcomeError, refusal_allowed
from fuzz.values import chance, pick

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "scenarios"
STRANGE: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**40, 1.5, "", "User0", "all", "All", "None", "two words", "\x07"),
    *([], {}, [[]], {"x": {}}, {1: 2}, ["User0", "User0"], "x" * 5000),
)
SYNTAX = (
    b"[",
    b"{",
    b"&a ",
    b"*a",
    b"!!str ",
    b"<<: ",
    b"\t",
    b"\x00",
    b"\xff",
    b"- - ",
    b"? ",
    b"#",
)


@cache
def contents() -> dict[str, list[bytes]]:
    """Golden files: scenarios, and images."""
    return {
        kind: [path.read_bytes() for path in sorted(GOLDEN.glob(pattern))]
        for kind, pattern in (("scenario", "*.yaml"), ("image", "images/*.yaml"))
    }


def run_case(rng: Generator) -> None:
    """Load a file whose values or bytes are damaged."""
    kind = "image" if chance(rng, 0.3) else "scenario"
    content = pick(rng, contents()[kind])
    damaged = _damage_bytes(rng, content) if chance(rng, 0.4) else _damage_values(rng, content)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind == "image":
            (folder / "own.yaml").write_bytes(damaged)
            tiny = (GOLDEN / "tiny.yaml").read_bytes()
            damaged = tiny.replace(b"image: windows_user_host2", b"image: own")
        path = folder / "scenario.yaml"
        path.write_bytes(damaged)
        with refusal_allowed((ValueError,)):
            images = folder if kind == "image" else GOLDEN / "images"
            _check(Scenario.load(path, images=images), folder, images)


def _check(scenario: Scenario, folder: Path, images: Path) -> None:
    """What is accepted is consistent, and survives saving."""
    for red in ("b_line", "meander", "sleep"):
        scenario.red_refusal(red)
    scenario.save(folder / "again.yaml")
    if Scenario.load(folder / "again.yaml", images=images) != scenario:
        raise UnexpectedOutcomeError("a saved scenario must be the same")


def _damage_bytes(rng: Generator, content: bytes) -> bytes:
    for _ in range(int(rng.integers(1, 4))):
        start, stop = sorted(int(place) for place in rng.integers(len(content) + 1, size=2))
        stop = min(stop, start + 200)
        inserted = pick(rng, SYNTAX) * int(pick(rng, (1, 2, 5000))) if chance(rng, 0.7) else b""
        content = content[:start] + inserted + content[start if chance(rng, 0.5) else stop :]
    return content


def _damage_values(rng: Generator, content: bytes) -> bytes:
    values = yaml.safe_load(content)
    for _ in range(int(rng.integers(1, 4))):
        _damage_value(rng, values)
    text: str = yaml.safe_dump(values, sort_keys=False)
    return text.encode()


def _damage_value(rng: Generator, values: Any) -> None:
    """Replace, remove or add a value at a random depth."""
    while True:
        keys = [*values] if isinstance(values, dict) else [*range(len(values))]
        if not keys:
            return
        key = pick(rng, keys)
        if not isinstance(values[key], dict | list) or chance(rng, 0.15):
            break
        values = values[key]
    kind = int(rng.integers(3))
    if kind == 0:
        del values[key]
    elif kind == 1:
        values[key] = pick(rng, STRANGE)
    elif isinstance(values, dict):
        values[pick(rng, ("Extra", 7, "User0", "Interfaces"))] = pick(rng, STRANGE)
    else:
        values.append(pick(rng, STRANGE))
