"""Content of the search page, read from the folder of a search."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cagepool.runs import open_run, read_rows
from cagepool.runs.schema import DECISIONS, ORDERS, DecisionRow, OrderRow

MeanAndDeviation = tuple[float, float]


@dataclass(frozen=True)
class Training:
    """One training of the search and its result."""

    iteration: int
    order: str
    prediction: MeanAndDeviation | None  # of the model before the training; none: random choice
    outcome: str
    episodes: int
    total_episodes: int  # spent by the search when this training ended
    reward: float
    standard_error: float
    passes: bool


@dataclass(frozen=True)
class OrderResult:
    """Result of one order over all of its trainings, or of the universal policy."""

    order: str
    class_name: str  # see OrderClass
    reward: float
    standard_error: float
    compliance: float | None
    coverage: float | None
    passes: bool
    trainings: int
    posterior: MeanAndDeviation | None  # of the model at the end of the search


@dataclass(frozen=True)
class OrderClass:
    """Orders that are equivalent for this red: they differ only in hosts that it never holds."""

    name: str
    n_orders: int
    results: list[OrderResult]  # best first

    @property
    def best(self) -> float:
        """Highest reward of a measured order."""
        return self.results[0].reward

    @property
    def worst(self) -> float:
        """Lowest reward of a measured order."""
        return self.results[-1].reward


@dataclass(frozen=True)
class SearchData:
    """A search as the page shows it."""

    name: str
    path: Path
    settings: dict[str, Any]
    method: str
    red_agent: str
    total_episodes: int  # budget of the search
    compliance_threshold: float
    trainings: list[Training]
    ranking: list[OrderResult]  # orders that pass first, then by reward
    classes: list[OrderClass]

    @property
    def episodes(self) -> int:
        """Training episodes spent."""
        if self.method == "universal":
            return self.total_episodes if self.ranking else 0
        return self.trainings[-1].total_episodes if self.trainings else 0

    @property
    def best(self) -> OrderResult | None:
        """The best order that passes."""
        return next((result for result in self.ranking if result.passes), None)

    def class_index(self, order: str) -> int:
        """Index in `classes` of the class that an order belongs to."""
        name = next(result.class_name for result in self.ranking if result.order == order)
        return [each.name for each in self.classes].index(name)


def is_search_folder(path: Path) -> bool:
    """Whether a folder was written by a search."""
    return (path / DECISIONS).is_file()


def read_search(path: Path) -> SearchData:
    """Read the folder of a search.

    Raises:
        ValueError: a file of the folder is damaged.
    """
    settings = open_run(path).settings
    decisions = read_rows(path / DECISIONS, DecisionRow)
    rows = read_rows(path / ORDERS, OrderRow) if (path / ORDERS).is_file() else []
    try:
        results = [_to_order_result(row) for row in rows if row.reward is not None]
        ranking = sorted(results, key=lambda result: (not result.passes, -result.reward))
        return SearchData(
            name=path.resolve().name,
            path=path,
            settings=settings,
            method=str(settings["search"]["method"]),
            red_agent=str(settings["env"]["red_agent"]),
            total_episodes=int(settings["run"]["total_episodes"]),
            compliance_threshold=float(settings["order"]["compliance_threshold"]),
            trainings=[_to_training(row) for row in decisions if row.outcome],
            ranking=ranking,
            classes=_to_classes([row.order_class for row in rows], ranking),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _to_training(row: DecisionRow) -> Training:
    return Training(
        iteration=row.iteration,
        order=row.order,
        prediction=_mean_and_deviation(row),
        outcome=row.outcome,
        episodes=int(_present(row.episodes)),
        total_episodes=int(_present(row.total_episodes)),
        reward=_present(row.reward),
        standard_error=_present(row.standard_error),
        passes=bool(row.passes),
    )


def _to_order_result(row: OrderRow) -> OrderResult:
    return OrderResult(
        order=row.order,
        class_name=row.order_class,
        reward=_present(row.reward),
        standard_error=_present(row.standard_error),
        compliance=row.compliance,
        coverage=row.coverage,
        passes=bool(row.passes),
        trainings=row.trainings or 0,
        posterior=_mean_and_deviation(row),
    )


def _to_classes(class_names: list[str], ranking: list[OrderResult]) -> list[OrderClass]:
    """Classes with a measured order, the class of the best order first."""
    return [
        OrderClass(
            name,
            class_names.count(name),
            sorted(
                (result for result in ranking if result.class_name == name),
                key=lambda result: -result.reward,
            ),
        )
        for name in dict.fromkeys(result.class_name for result in ranking)
    ]


def _present(value: float | None) -> float:
    if value is None:
        raise ValueError("a row with a result must have its reward, its error and its episodes")
    return value


def _mean_and_deviation(row: DecisionRow | OrderRow) -> MeanAndDeviation | None:
    return None if row.mean is None or row.std is None else (row.mean, row.std)
