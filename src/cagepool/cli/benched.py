"""Results of benches as tables on a terminal."""

from rich import box
from rich.console import Console
from rich.table import Column, Table

from cagepool.bench.compare import Change, Comparison
from cagepool.bench.measure import Measurement
from cagepool.bench.result import Result
from cagepool.bench.schema import split

WORTH_TELLING = 0.1  # share of the machine that others took
STYLES = {"slower": "red", "faster": "green", "no change": ""}


def print_result(console: Console, result: Result) -> None:
    """The machine, a table for each group, and the ratios."""
    where = result.machine
    load = f"load {where['load']} before and {result.load_after} after"
    console.print(f"\n{where['processor']}, {where['cores']} cores, {load}")
    if result.busy and result.busy.busy_elsewhere > WORTH_TELLING:
        share = f"{result.busy.busy_elsewhere:.0%}"
        console.print(f"others kept {share} of the machine busy meanwhile", style="yellow")
    console.print()
    for group, measurements in result.groups.items():
        _print_group(console, group, measurements)
    ratios = Table(Column(justify="right"), Column(), box=None, show_header=False)
    for name, value in result.ratios.items():
        ratios.add_row(f"{value:,.0f}" if value >= 1000 else f"{value:.3g}", name)
    console.print(ratios)


def _print_group(console: Console, group: str, measurements: list[Measurement]) -> None:
    """A table of what differs within the group, under what does not."""
    differing, common = split([one.settings for one in measurements])
    console.print(f"{group}: {common}", style="bold")
    columns = [Column(name, justify="right") for name in (*differing, "ns a step", "steps/s")]
    table = Table(Column("what", no_wrap=True), *columns, box=box.SIMPLE_HEAD)
    for one in measurements:
        settings = (str(one.settings.get(name, "")) for name in differing)
        low, middle, high = map(_shown, one.quartiles)
        rate = _shown(one.steps_per_second)
        table.add_row(one.name, *settings, f"{middle} ({low}-{high})", rate)
    console.print(table)


def print_comparison(console: Console, found: Comparison) -> None:
    """What has changed beyond noise, and how many have not."""
    for name, (old, new) in found.machine.items():
        console.print(f"{name} was {old}, now {new}: that may be why", style="yellow")
    changed = [one for one in found.changes if one.verdict != "no change"]
    if changed:
        console.print(_changes(changed))
    rest = len(found.changes) - len(changed)
    console.print(f"{_contenders(rest)}: no change{_blur(found.changes)}")
    for label, count in (("gone", len(found.gone)), ("new", len(found.added))):
        if count:
            console.print(f"{_contenders(count)}: {label}, nothing to compare with")


def _changes(changed: list[Change]) -> Table:
    columns = [Column(name, justify="right") for name in ("before", "after", "change", "noise")]
    table = Table("what", *columns, box=box.SIMPLE_HEAD)
    for one in changed:
        settings = "".join(f", {name} {value}" for name, value in one.settings.items())
        change = f"{abs(one.change):.0%} {one.verdict}"
        figures = (_shown(one.before_ns), _shown(one.after_ns), change, f"{one.noise:.0%}")
        label = f"{one.group}: {one.name}{settings}"
        table.add_row(label, *figures, style=STYLES[one.verdict])
    return table


def _blur(changes: list[Change]) -> str:
    """What would have gone unseen."""
    noises = sorted(one.noise for one in changes if one.verdict == "no change")
    if not noises:
        return ""
    middle, most = (_share(noises[index]) for index in (len(noises) // 2, -1))
    return f" beyond noise ({middle} for most, {most} at worst)"


def _share(value: float) -> str:
    return f"{value:.0%}" if value < 10 else "anything"


def _contenders(count: int) -> str:
    return f"{count} contender{'' if count == 1 else 's'}"


def _shown(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"
