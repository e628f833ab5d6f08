"""Where loss, time and actions go, as bars and heat maps that the page only has to lay out."""

from collections.abc import Sequence
from dataclasses import dataclass

from cagepool.report.run_data import Evaluation, Folder, Uses
from cagepool.report.tables import last

CAUSES = {
    "user_hosts": "User hosts",
    "servers": "Servers",
    "impact": "Impact",
    "restores": "Restores",
    "other": "Other hosts",
}
PARTS = {"wait": "Collecting games", "update": "Updating the policy", "other": "Everything else"}
NEGLIGIBLE_SECONDS = 0.05


@dataclass(frozen=True)
class Segment:
    """A part of a bar."""

    kind: str  # names its colour
    title: str
    amount: float
    percent: float  # of the longest bar


@dataclass(frozen=True)
class Bar:
    """A stacked bar."""

    title: str
    segments: list[Segment]

    @property
    def total(self) -> float:
        """The length of the whole bar."""
        return sum(segment.amount for segment in self.segments)


@dataclass(frozen=True)
class HeatCell:
    """Mean uses of an action in a game, and how dark that is."""

    uses: float
    heat: int  # percent


@dataclass(frozen=True)
class HeatMap:
    """Uses of each kind of action on each host, against one red."""

    red: str
    hosts: list[str]
    rows: dict[str, list[HeatCell]]


@dataclass(frozen=True)
class HeatMaps:
    """A map for each red, without the kinds of action that were used against none of them."""

    maps: list[HeatMap]
    unused: list[str]


def loss_bars(folders: Sequence[Folder]) -> dict[str, list[Bar]]:
    """For each run that was evaluated, the causes of loss in a game against each red."""
    evaluated = {folder.name: folder.evaluation for folder in folders if folder.evaluation}
    totals = [
        sum(causes.values())
        for evaluation in evaluated.values()
        for causes in evaluation["loss"].values()
    ]
    longest = max(totals, default=0.0)
    return {name: _loss_of_run(evaluation, longest) for name, evaluation in evaluated.items()}


def time_bars(folders: Sequence[Folder]) -> list[Bar]:
    """For each run, where the seconds of its training went."""
    bars = [(folder.name, _seconds(folder)) for folder in folders]
    longest = max((sum(parts.values()) for _, parts in bars), default=0.0)
    return [
        Bar(name, [_segment(kind, PARTS[kind], amount, longest) for kind, amount in parts.items()])
        for name, parts in bars
    ]


def hidden_seconds(folder: Folder) -> float:
    """Seconds of collecting that cost no time, because the policy learned meanwhile."""
    collect, wait = (
        _sum(folder.metrics.get(f"{part}_seconds", [])) for part in ("collect", "wait")
    )
    return collect - wait if collect - wait > NEGLIGIBLE_SECONDS else 0.0


def heat_maps(evaluation: Evaluation) -> HeatMaps:
    """How often each kind of action was used on each host, on one scale for all reds."""
    by_red = evaluation["actions"]
    used = {kind for uses in by_red.values() for kind, row in _rows(uses) if any(row)}
    most = max((max(row) for uses in by_red.values() for _, row in _rows(uses)), default=0.0)
    kinds = dict.fromkeys(kind for uses in by_red.values() for kind in uses["kinds"])
    return HeatMaps(
        maps=[_heat_map(red, uses, used, most) for red, uses in by_red.items()],
        unused=[kind for kind in kinds if kind not in used],
    )


def _loss_of_run(evaluation: Evaluation, longest: float) -> list[Bar]:
    return [
        Bar(red, [_segment(c, CAUSES.get(c, c), amount, longest) for c, amount in causes.items()])
        for red, causes in evaluation["loss"].items()
    ]


def _segment(kind: str, title: str, amount: float, longest: float) -> Segment:
    return Segment(kind, title, amount, 100 * amount / longest if longest else 0.0)


def _seconds(folder: Folder) -> dict[str, float]:
    """Seconds by part; what no part claims of the total is part of everything else."""
    sums = {part: _sum(folder.metrics.get(f"{part}_seconds", [])) for part in PARTS}
    unclaimed = last(folder.metrics.get("seconds", [])) - sum(sums.values())
    if unclaimed > NEGLIGIBLE_SECONDS:
        sums["other"] += unclaimed
    return sums


def _sum(values: Sequence[float]) -> float:
    return sum(value for value in values if value == value)  # noqa: PLR0124 - NaN is no time


def _heat_map(red: str, uses: Uses, used: set[str], most: float) -> HeatMap:
    # The root keeps rare actions visible beside the one that is played all the time.
    rows = {
        kind: [HeatCell(count, round(100 * (count / most) ** 0.5)) for count in row]
        for kind, row in _rows(uses)
        if kind in used
    }
    return HeatMap(red, uses["hosts"], rows)


def _rows(uses: Uses) -> "zip[tuple[str, list[float]]]":
    return zip(uses["kinds"], uses["counts"], strict=True)
