"""Harness: readers of a damaged run folder raise one kind of error, with one sentence."""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.random import Generator

import cagepool
from cagepool import runs
from cagepool.report.data import read_runs
from cagepool.runs.listing import find_runs, summarize
from fuzz.outcomes import refusal_allowed
from fuzz.values import chance, pick

SOURCE = Path(cagepool.__file__).parent / "zoo" / "b_line"
FILES = tuple(sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.is_file()))
SMALL = tuple(path for path in FILES if path.suffix in (".json", ".csv"))
NUMBERS = ("-1", "0", "1e999", "-1e999", "NaN", "Infinity", "9" * 400, "0.5", "2e308", "1e-320")
JSON_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1.5, "", "x\ny", "\ud800", [], [[]], {}, {"format": 99}, "a[/red]",
)  # fmt: skip


@cache
def source_files() -> dict[Path, bytes]:
    """The content of a small run folder."""
    return {path: (SOURCE / path).read_bytes() for path in FILES}


def run_case(rng: Generator) -> None:
    """Copy a small run folder, damage a few of its files and call the readers."""
    with TemporaryDirectory(prefix="cagepool-fuzz-") as name:
        folder = Path(name) / "run"
        for path, content in source_files().items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        for _ in range(int(rng.integers(1, 4))):
            _damage(rng, folder)
        _read_all(rng, folder)


def _read_all(rng: Generator, folder: Path) -> None:
    for reader in READERS:
        with refusal_allowed((ValueError,)):
            reader(folder)
    with refusal_allowed((ValueError,)):
        policy = cagepool.load(folder)
        policy.begin(2)
        observations = rng.integers(2, size=(2, 52)).astype(np.float32)
        policy.act(observations)


READERS: tuple[Callable[[Path], object], ...] = (
    lambda folder: [summarize(path) for path in find_runs(folder.parent)],
    lambda folder: runs.open_run(folder).evaluation(),
    lambda folder: runs.open_run(folder).metrics(),
    lambda folder: runs.open_run(folder).evaluations(),
    lambda folder: runs.open_run(folder).games(),
    lambda folder: runs.open_run(folder).workflow(),
    lambda folder: runs.open_run(folder).checkpoint("best"),
    lambda folder: runs.open_run(folder).checkpoint("last"),
    lambda folder: read_runs([folder]),
)


def _damage(rng: Generator, folder: Path) -> None:
    path = folder / pick(rng, SMALL if chance(rng, 0.7) else FILES)
    if not path.is_file() or path.is_symlink():
        return
    if path.suffix == ".json" and chance(rng, 0.5):
        _change_json(rng, path)
    elif path.name == "weights.safetensors" and chance(rng, 0.6):
        _forge_weights(rng, path)
    else:
        pick(rng, DAMAGES)(rng, path)


def _flip_bits(rng: Generator, path: Path) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 6)) if content else 0):
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def _truncate(rng: Generator, path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(rng.integers(len(content) + 1))])


def _insert_number(rng: Generator, path: Path) -> None:
    """Replace one number of a JSON file or table by one that is no number of ours."""
    cells = path.read_bytes().split(b",")
    cells[int(rng.integers(len(cells)))] = pick(rng, NUMBERS).encode()
    path.write_bytes(b",".join(cells))


def _nest(rng: Generator, path: Path) -> None:
    depth = int(pick(rng, (10, 1000, 100_000)))
    path.write_bytes(pick(rng, (b"[", b'{"a":')) * depth)


def _replace(rng: Generator, path: Path) -> None:
    """Put something else in the place of the file."""
    path.unlink()
    kind = rng.integers(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to(path.name)  # a loop
    elif kind == 2:
        path.symlink_to("/dev/zero")
    elif kind == 3:
        path.mkdir()
    elif kind == 4:
        path.symlink_to("..")


def _add_junk(rng: Generator, path: Path) -> None:
    junk = rng.integers(256, size=int(rng.integers(1, 50)), dtype=np.uint8).tobytes()
    path.write_bytes(path.read_bytes() + junk)


DAMAGES: tuple[Callable[[Generator, Path], None], ...] = (
    _flip_bits, _flip_bits, _truncate, _insert_number, _insert_number, _nest, _replace, _add_junk,
)  # fmt: skip


def _change_json(rng: Generator, path: Path) -> None:
    """Replace, rename or remove one member, at any depth."""
    try:
        document = json.loads(path.read_bytes())
        places = list(_members(document))
    except (ValueError, RecursionError):
        return
    if not places:
        return
    parent, key = pick(rng, places)
    if chance(rng, 0.2):
        del parent[key]
    elif chance(rng, 0.1):
        parent[key] = json.loads("[" * 500 + "]" * 500)
    else:
        parent[key] = pick(rng, JSON_VALUES)
    with suppress(RecursionError):  # nested twice: the file stays as it was
        path.write_text(json.dumps(document))


def _members(value: Any) -> Any:
    """All (parent, key) of a JSON document."""
    keys = (
        list(value)
        if isinstance(value, dict)
        else range(len(value))
        if isinstance(value, list)
        else ()
    )
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _members(value[key])


def _forge_weights(rng: Generator, path: Path) -> None:
    """Change weights in shape, type or value, with the hash that belongs to them."""
    from safetensors.numpy import load, save  # noqa: PLC0415 - not needed by other harnesses

    state_path = path.parent / "state.json"
    if not state_path.is_file():  # damaged before; a FIFO would block
        return
    try:
        arrays = load(path.read_bytes())
        state = json.loads(state_path.read_bytes())
    except Exception:  # noqa: BLE001 - damaged before
        return
    name = pick(rng, sorted(arrays))
    array = arrays[name].copy()
    kind = rng.integers(6)
    if kind == 0 and array.size:
        array.flat[int(rng.integers(array.size))] = pick(rng, (np.nan, np.inf, 3e38))
    elif kind == 1:
        array = array.reshape(-1)
    elif kind == 2:
        array = array.astype(pick(rng, ("f8", "i4", "u1", "f2")))
    elif kind == 3:
        array = array[: int(rng.integers(array.shape[0] + 1))]
    elif kind == 4:
        arrays[f"{name}.more"] = array
    arrays[name] = np.ascontiguousarray(array)
    if kind == 5:
        del arrays[name]
    content = save(arrays)
    path.write_bytes(content)
    if isinstance(state, dict):
        state["sha256"] = hashlib.sha256(content).hexdigest()
        state_path.write_text(json.dumps(state))
