"""Content of the run page, read from run folders."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from cagepool.evaluate.files import OUTCOME
from cagepool.evaluate.policy import CAGE_ENVS
from cagepool.runs import Columns, Run, open_run
from cagepool.shapes import check
from cagepool.sim.names import HOST_SUBNET

FORMAT = 1  # of evaluation.json and games.json


class Cell(TypedDict):
    """Mean total reward of games of one length against one red."""

    red: str
    length: int
    mean: float
    standard_error: float
    episodes: int


class Total(TypedDict):
    """The sum of the nine official cells."""

    mean: float
    standard_error: float


class Published(TypedDict):
    """A result that others have published for the same edition."""

    name: str
    method: str
    source: str
    total: float
    cells: dict[str, dict[str, float]]  # by red, then by length


class Uses(TypedDict):
    """Mean uses a game of each kind of action on each host."""

    kinds: list[str]
    hosts: list[str]
    counts: list[list[float]]  # kind x host


class Evaluation(TypedDict):
    """What `cagepool evaluate` found."""

    env: str
    edition: str
    episodes: int
    scores: list[Cell]
    total: Total | None
    published: list[Published]
    loss: dict[str, dict[str, float]]  # by red, then by cause
    actions: dict[str, Uses]  # by red


class Turn(TypedDict):
    """One step of a game; lists are by host."""

    step: int
    blue: str
    blue_success: bool | None
    blue_target: str | None
    red: str
    red_success: bool | None
    exploit: str | None
    detected: bool | None
    reward: float
    stopped: bool  # OTService
    access: list[int]  # the truth: 0 nothing, 1 user, 2 privileged
    known: list[int]  # to red: 0 nothing, 1 the address, 2 the ports
    decoys: list[list[str]]
    activity: list[int]  # as blue sees it: 0 none, 1 scan, 2 exploit
    belief: list[int]  # of blue: 0 no, 1 unknown, 2 user, 3 privileged


class Game(TypedDict):
    """A recorded game."""

    title: str
    total: float
    turns: list[Turn]


class Games(TypedDict):
    """Games that `cagepool evaluate` recorded."""

    hosts: list[str]
    games: list[Game]


class Outcome(TypedDict):
    """What came of training to an order."""

    order: str
    outcome: str
    reason: str
    mean: float
    standard_error: float
    episodes: int
    compliance: float | None
    coverage: float | None
    decisions: float
    wasted_fixes: float


@dataclass(frozen=True)
class RunData:
    """A run as the page shows it."""

    name: str
    path: Path
    settings: dict[str, Any]
    metrics: Columns
    checks: Columns
    evaluation: Evaluation | None  # none: not evaluated yet
    games: Games | None
    outcome: Outcome | None = None  # none: trained without an order, or not finished

    @property
    def env_id(self) -> str:
        """Id of the environment, or an empty text."""
        return str(self.settings.get("env", {}).get("id", ""))

    @property
    def edition(self) -> str:
        """Edition of the game."""
        return str(self.settings.get("env", {}).get("edition", ""))

    @property
    def red_agent(self) -> str:
        """Red agent of the training."""
        return str(self.settings.get("env", {}).get("red_agent", ""))

    @property
    def is_cage(self) -> bool:
        """Whether the run plays CAGE-2, which `cagepool evaluate` requires."""
        return self.env_id in CAGE_ENVS


def read_runs(paths: Sequence[Path]) -> list[RunData]:
    """Read run folders; each run gets the shortest unique name.

    Raises:
        ValueError: a path is not a run folder, is damaged, or is given twice.
    """
    resolved = [path.resolve() for path in paths]
    for path in resolved:
        if resolved.count(path) > 1:
            raise ValueError(f"each run must be given once, got {path} twice")
    runs = [open_run(path) for path in paths]
    return [_read(run, name) for run, name in zip(runs, short_names(resolved), strict=True)]


def short_names(paths: Sequence[Path]) -> list[str]:
    """The last components of each path, as many as make the names unique."""
    depth = max(len(path.parts) for path in paths)
    for count in range(1, depth):
        names = ["/".join(path.parts[-count:]) for path in paths]
        if len({*names}) == len(names):
            return names
    return [str(path) for path in paths]


def _read(run: Run, name: str) -> RunData:
    return RunData(
        name=name,
        path=run.path,
        settings=dict(run.settings),
        metrics=run.metrics(),
        checks=run.checks(),
        evaluation=cast("Evaluation | None", _json(run.path / "evaluation.json", Evaluation)),
        games=_games(run.path / "games.json"),
        outcome=cast("Outcome | None", _json(run.path / OUTCOME, Outcome)),
    )


def _games(path: Path) -> Games | None:
    """Recorded games of the hosts that the page can draw."""
    games = cast("Games | None", _json(path, Games))
    if games and sorted(games["hosts"]) != sorted(HOST_SUBNET):
        raise ValueError(f"{path} must have the 13 hosts of the game, got {games['hosts']}")
    if games and not all(game["turns"] for game in games["games"]):
        raise ValueError(f"{path} must have a step in every game, which it lacks")
    return games


def _json(path: Path, shape: type[Any]) -> object:
    """The content of a JSON file with the keys of a shape, or none where there is no file."""
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} must be JSON, but: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        given = content.get("format") if isinstance(content, dict) else None
        raise ValueError(f"{path} must have format {FORMAT}, got {given!r}")
    check(content, shape, str(path))
    return content
