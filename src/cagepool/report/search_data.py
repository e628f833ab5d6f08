"""What a report needs of the folder of a search."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cagepool.runs import open_run
from cagepool.search.folder import DECISIONS, ORDERS


@dataclass(frozen=True)
class Training:
    """One decision of a search, and what came of it."""

    iteration: int
    order: str
    expected: tuple[float, float] | None  # mean and deviation before; none: no model was asked
    outcome: str
    episodes: int
    total_episodes: int
    reward: float
    standard_error: float
    passes: bool


@dataclass(frozen=True)
class Measured:
    """An order that was trained to, or evaluated with the one policy for all."""

    order: str
    kind: str  # class of orders that red cannot tell apart
    reward: float
    standard_error: float
    compliance: float | None
    coverage: float | None
    passes: bool
    trainings: int
    believed: tuple[float, float] | None  # mean and deviation at the end


@dataclass(frozen=True)
class Kind:
    """Orders that red cannot tell apart."""

    name: str
    orders: int
    measured: list[Measured]  # the best first

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest reward."""
        return self.measured[-1].reward, self.measured[0].reward


@dataclass(frozen=True)
class SearchFolder:
    """A search as the report sees it."""

    name: str
    path: Path
    settings: dict[str, Any]
    trainings: list[Training]
    ranking: list[Measured]  # those that pass first, then by reward
    kinds: list[Kind]

    @property
    def episodes(self) -> int:
        """Training episodes spent."""
        if self.settings["method"] == "universal":
            return int(self.settings["total_episodes"]) if self.ranking else 0
        return self.trainings[-1].total_episodes if self.trainings else 0

    @property
    def best(self) -> Measured | None:
        """The best order that passes."""
        return next((one for one in self.ranking if one.passes), None)

    def kind_number(self, order: str) -> int:
        """Place of the class that an order belongs to."""
        kind = next(one.kind for one in self.ranking if one.order == order)
        return [one.name for one in self.kinds].index(kind)


def is_search(path: Path) -> bool:
    """Whether a folder is one of a search."""
    return (path / DECISIONS).is_file()


def read_search(path: Path) -> SearchFolder:
    """Read the folder of a search.

    Raises:
        ValueError: it is damaged.
    """
    settings = open_run(path).settings
    try:
        trainings = [_training(row) for row in _rows(path / DECISIONS) if row["outcome"]]
        rows = _rows(path / ORDERS) if (path / ORDERS).is_file() else []
        measured = [_measured(row) for row in rows if row["reward"]]
        ranking = sorted(measured, key=lambda one: (not one.passes, -one.reward))
        kinds = _kinds([row["class"] for row in rows], ranking)
        method = settings["method"]
    except (OSError, csv.Error, KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    assert isinstance(method, str)
    return SearchFolder(path.resolve().name, path, settings, trainings, ranking, kinds)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def _training(row: dict[str, str]) -> Training:
    return Training(
        iteration=int(row["iteration"]),
        order=row["order"],
        expected=_pair(row, "mean", "std"),
        outcome=row["outcome"],
        episodes=int(row["episodes"]),
        total_episodes=int(row["total_episodes"]),
        reward=float(row["reward"]),
        standard_error=float(row["standard_error"]),
        passes=row["passes"] == "1",
    )


def _measured(row: dict[str, str]) -> Measured:
    return Measured(
        order=row["order"],
        kind=row["class"],
        reward=float(row["reward"]),
        standard_error=float(row["standard_error"]),
        compliance=_number(row["compliance"]),
        coverage=_number(row["coverage"]),
        passes=row["passes"] == "1",
        trainings=int(row["trainings"]),
        believed=_pair(row, "mean", "std"),
    )


def _kinds(classes: list[str], ranking: list[Measured]) -> list[Kind]:
    """Classes with a measured order, that of the best order first."""
    found = dict.fromkeys(one.kind for one in ranking)
    return [
        Kind(
            name,
            classes.count(name),
            sorted((o for o in ranking if o.kind == name), key=lambda o: -o.reward),
        )
        for name in found
    ]


def _number(text: str) -> float | None:
    return float(text) if text else None


def _pair(row: dict[str, str], *names: str) -> tuple[float, float] | None:
    mean, deviation = (_number(row[name]) for name in names)
    return None if mean is None or deviation is None else (mean, deviation)
