"""Content of the pages about runs, searches and benches, read from their files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from cagepool.bench import BENCHES, schema
from cagepool.bench.schema import BenchResult, split_settings
from cagepool.policy.policy import CAGE_ENVS
from cagepool.runs import Columns, Run, open_run, read_rows
from cagepool.runs.schema import (
    DECISIONS,
    GAMES,
    ORDERS,
    DecisionRow,
    EvaluationFile,
    GamesFile,
    OrderRow,
    RecordedScenario,
    WorkflowFile,
)
from cagepool.scenarios.vocabulary import MAX_HOSTS


@dataclass(frozen=True)
class RunData:
    """A run as the page shows it."""

    name: str
    path: Path
    settings: dict[str, Any]
    metrics: Columns
    evaluations: Columns  # during training
    evaluation: EvaluationFile | None  # of the best policy; none: not evaluated yet
    all_evaluations: list[EvaluationFile]  # also of other scenarios, engines and policies
    games: GamesFile | None
    outcome: WorkflowFile | None = None  # none: trained without an order, or not finished

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
    """Read run folders; each run gets the shortest unique name."""
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
        evaluations=run.evaluations(),
        evaluation=run.evaluation(),
        all_evaluations=run.all_evaluations(),
        games=_games(run),
        outcome=run.workflow(),
    )


def _games(run: Run) -> GamesFile | None:
    """Recorded games, checked for what the replay needs."""
    games = run.games()
    path = run.path / GAMES
    if games and not all(game.turns for game in games.games):
        raise ValueError(f"{path} must have a step in every game, which it lacks")
    for game in games.games if games else ():
        _check_scenario(path, game.scenario)
    return games


def _check_scenario(path: Path, scenario: RecordedScenario) -> None:
    """Raise if the scenario of a game cannot be drawn."""
    drawn = [host for hosts in scenario.zones.values() for host in hosts]
    named = {scenario.foothold, scenario.defender, *scenario.targets, *chain(*scenario.links)}
    if sorted(drawn) != sorted({*scenario.hosts}) or not named <= {*drawn}:
        raise ValueError(f"{path} must have each host of {scenario.name} in one zone, got {drawn}")
    if not 1 <= len(drawn) <= MAX_HOSTS:
        raise ValueError(f"{path} must have 1 to {MAX_HOSTS} hosts per scenario, got {len(drawn)}")


MIN_SWEEP_SIZES = 3  # fewer sizes are shown as separate groups
BUSY_WARNING_SHARE = 0.1  # CPU share of other processes above which the page warns


@dataclass(frozen=True)
class ContenderResult:
    """Nanoseconds per step of one contender: lower quartile, median, upper quartile."""

    name: str
    settings: list[str]  # one value per column of the group
    nanoseconds: tuple[float, float, float]

    @property
    def rates(self) -> tuple[float, float, float]:
        """Steps per second: lower quartile, median, upper quartile."""
        low, median, high = (1e9 / cost for cost in reversed(self.nanoseconds))
        return low, median, high


@dataclass(frozen=True)
class Group:
    """Contenders that were measured interleaved."""

    title: str
    common: str  # settings that all contenders share
    columns: list[str]  # settings that differ
    contenders: list[ContenderResult]

    def label(self, contender: ContenderResult) -> str:
        """Name of a contender, followed by its settings where the name is not unique."""
        if len({each.name for each in self.contenders}) == len(self.contenders):
            return contender.name
        values = zip(self.columns, contender.settings, strict=True)
        return ", ".join((contender.name, *(f"{name} {value}" for name, value in values if value)))


@dataclass(frozen=True)
class Sweep:
    """Groups that differ in size only, as one curve per contender."""

    title: str
    curves: dict[str, dict[int, ContenderResult]]  # by contender, then by size
    groups: list[Group]
    recommendations: list[str]

    @property
    def efficiency(self) -> dict[str, dict[int, float]]:
        """Rate at each size divided by size times the rate at size 1, per contender."""
        return {
            name: {
                size: contender.rates[1] / (size * curve[1].rates[1])
                for size, contender in curve.items()
            }
            for name, curve in self.curves.items()
            if 1 in curve
        }


@dataclass(frozen=True)
class BenchData:
    """Result of one bench as the page shows it."""

    name: str
    about: str
    machine: dict[str, str]
    system_load: str
    groups: list[Group]  # without those of the sweeps
    sweeps: list[Sweep]
    ratios: dict[str, float]
    memory: dict[str, list[dict[str, int]]] = field(default_factory=dict)


def to_bench_data(result: BenchResult) -> BenchData:
    """Page content of one result."""
    groups = [_to_group(title, rows) for title, rows in result.groups.items()]
    sweeps = _find_sweeps(groups, result.facts.get("scaling", {}))
    swept = [group for sweep in sweeps for group in sweep.groups]
    return BenchData(
        name=result.bench,
        about=next((entry.summary for name, entry in BENCHES.items() if name == result.bench), ""),
        machine={key: str(value) for key, value in result.machine.items()},
        system_load=_describe_load(result),
        groups=[group for group in groups if group not in swept],
        sweeps=sweeps,
        ratios=result.ratios,
        memory=result.facts.get("memory", {}),
    )


def _to_group(title: str, rows: Sequence[schema.Measurement]) -> Group:
    columns, common = split_settings([row.settings for row in rows])
    return Group(title, common, columns, [_to_contender_result(row, columns) for row in rows])


def _to_contender_result(row: schema.Measurement, columns: Sequence[str]) -> ContenderResult:
    cost = row.nanoseconds_per_step
    low, high = cost.quartiles
    values = [str(row.settings.get(column, "")) for column in columns]
    return ContenderResult(row.name, values, (low, cost.median, high))


def _find_sweeps(groups: Sequence[Group], scaling: Mapping[str, Any]) -> list[Sweep]:
    """Groups form a sweep if their titles differ only in a number at the end."""
    by_title: dict[str, dict[int, Group]] = {}
    for group in groups:
        if match := re.fullmatch(r"(.*) (\d+)", group.title):
            by_title.setdefault(match[1], {})[int(match[2])] = group
    return [
        _to_sweep(title, sizes, scaling.get(title, {}))
        for title, sizes in by_title.items()
        if len(sizes) >= MIN_SWEEP_SIZES
    ]


def _to_sweep(title: str, sizes: Mapping[int, Group], scaling: Mapping[str, Any]) -> Sweep:
    curves: dict[str, dict[int, ContenderResult]] = {}
    for size, group in sorted(sizes.items()):
        for contender in group.contenders:
            curves.setdefault(contender.name, {})[size] = contender
    return Sweep(title, curves, list(sizes.values()), _recommendations(scaling))


def _recommendations(scaling: Mapping[str, Any]) -> list[str]:
    """Sentences on the fastest back end per range of sizes and on crossings of two curves."""
    fastest = ", ".join(
        f"{entry['backend']} from {entry['first']:,} to {entry['last']:,}"
        for entry in scaling.get("recommendation", [])
    )
    crossings = [
        f"{entry['faster']} overtakes {entry['overtaken']} at about {entry['environments']:,.0f}"
        for entry in scaling.get("crossings", [])
    ]
    return [f"Fastest: {fastest}.", *crossings] if fastest else crossings


def _describe_load(result: BenchResult) -> str:
    share = result.busy_elsewhere
    if share is None:
        return ""
    warning = ": take the figures with care" if share > BUSY_WARNING_SHARE else ""
    return f"other processes used {share:.0%} of the CPU meanwhile{warning}"


MeanAndDeviation = tuple[float, float]
Row = TypeVar("Row", bound=Struct)


class Training(DecisionRow, frozen=True, kw_only=True):
    """One training of the search and its result."""

    episodes: int
    total_episodes: int
    reward: float
    standard_error: float
    passes: bool

    @property
    def prediction(self) -> MeanAndDeviation | None:
        """Of the model before the training; none: random choice."""
        return _mean_and_deviation(self)


class OrderResult(OrderRow, frozen=True, kw_only=True):
    """Result of one order over all of its trainings, or of the universal policy."""

    reward: float
    standard_error: float
    passes: bool

    @property
    def posterior(self) -> MeanAndDeviation | None:
        """Of the model at the end of the search."""
        return _mean_and_deviation(self)


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
        name = next(result.order_class for result in self.ranking if result.order == order)
        return [each.name for each in self.classes].index(name)


def is_search_folder(path: Path) -> bool:
    """Whether a folder was written by a search."""
    return (path / DECISIONS).is_file()


def read_search(path: Path) -> SearchData:
    """Read the folder of a search."""
    settings = open_run(path).settings
    decisions = read_rows(path / DECISIONS, DecisionRow)
    rows = read_rows(path / ORDERS, OrderRow) if (path / ORDERS).is_file() else []
    try:
        results = _complete((row for row in rows if row.reward is not None), OrderResult)
        ranking = sorted(results, key=lambda result: (not result.passes, -result.reward))
        return SearchData(
            name=path.resolve().name,
            path=path,
            settings=settings,
            method=str(settings["search"]["method"]),
            red_agent=str(settings["env"]["red_agent"]),
            total_episodes=int(settings["run"]["total_episodes"]),
            compliance_threshold=float(settings["order"]["compliance_threshold"]),
            trainings=_complete((row for row in decisions if row.outcome), Training),
            ranking=ranking,
            classes=_to_classes([row.order_class for row in rows], ranking),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _complete(rows: Iterable[Struct], model: type[Row]) -> list[Row]:
    """Rows with a result, checked to have all of it."""
    return msgspec.convert(msgspec.to_builtins([*rows]), list[model])  # type: ignore[valid-type]


def _to_classes(class_names: list[str], ranking: list[OrderResult]) -> list[OrderClass]:
    """Classes with a measured order, the class of the best order first."""
    return [
        OrderClass(
            name,
            class_names.count(name),
            sorted(
                (result for result in ranking if result.order_class == name),
                key=lambda result: -result.reward,
            ),
        )
        for name in dict.fromkeys(result.order_class for result in ranking)
    ]


def _mean_and_deviation(row: DecisionRow | OrderRow) -> MeanAndDeviation | None:
    return None if row.mean is None or row.std is None else (row.mean, row.std)
