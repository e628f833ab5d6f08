"""What an evaluation leaves in a run folder."""

import json
from pathlib import Path
from typing import Any

from cagepool import runs
from cagepool.evaluate.game_log import recorded_games
from cagepool.evaluate.protocol import FORMAT, Evaluation, differences

EVALUATION = "evaluation.json"
GAMES = "games.json"
OUTCOME = "workflow.json"  # written by training to an order


def content(result: Evaluation, native: Evaluation | None = None) -> dict[str, Any]:
    """The content of `evaluation.json`; that of CybORG's games with the native ones beside it."""
    everything = result.as_dict()
    if native:
        everything["native"] = native.table.as_dict()
        everything["differences"] = differences(result.table, native.table).as_dict()
    return everything


def read(folder: Path) -> dict[str, Any] | None:
    """The evaluation that a run is known by; none: it has not been evaluated.

    Raises:
        ValueError: it is damaged, or of a newer format.
    """
    path = folder / EVALUATION
    if not path.is_file():
        return None
    try:
        read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        newer = read["format"] > FORMAT
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if newer:
        raise ValueError(f"{path} has format {read['format']}: a newer cagepool is needed")
    return read


def write(result: Evaluation, native: Evaluation | None, *, is_last: bool) -> list[str]:
    """Write an evaluation into its run folder; returns the names of the files.

    `evaluation.json` and the recorded games are of the best policy, played natively in the edition
    of its training; the names of other evaluations tell what is different.

    Raises:
        ValueError: the folder cannot be written.
    """
    folder = result.contender.run
    assert folder is not None
    aside = _aside(result, is_last=is_last)
    name = "-".join([Path(EVALUATION).stem, *aside]) + ".json"
    try:
        runs.write_json(folder / name, content(result, native))
        if aside:
            return [name]
        games = json.dumps(recorded_games(result.trial, result.tallies), separators=(",", ":"))
        runs.replace_file(folder / GAMES, games.encode())
    except OSError as error:
        raise ValueError(f"a run folder must be writable, {folder} is not: {error}") from error
    return [name, GAMES]


def _aside(result: Evaluation, *, is_last: bool) -> list[str]:
    """What sets an evaluation apart from the one that a run is known by."""
    edition = result.trial.edition
    apart = {
        result.env: result.env != "native",
        edition: edition != result.contender.trained_on,
        "last": is_last,
    }
    return [word for word, differs in apart.items() if differs]
