"""`cagepool search`: which workflow order defends best."""

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path

from rich.console import Console

from cagepool import _optional, runs
from cagepool.cli.cluster import ray_connection
from cagepool.cli.display import SearchDisplay
from cagepool.cli.train import check_unchanged, stop_on_interrupt
from cagepool.search.config import SearchConfig
from cagepool.search.folder import DECISIONS, ORDERS
from cagepool.train.config import parsed

NEEDED = ("torch", "tensorboard", "safetensors", "sklearn")
OURS = ("out", "resume", "fixed_episodes", "ray_address")  # flags that are not settings of a search
SHOWN = 10  # orders of the final ranking


@dataclass(frozen=True, kw_only=True)
class Search(SearchConfig):
    """Search the 120 workflow orders for the one whose policy defends best.

    Every training, decision and number follows from the settings and the seed. A search can be
    stopped with Ctrl-C, or killed, and resumed to the same decisions.
    """

    out: Path | None = None
    """Folder of the search; runs/ and the time by default."""
    fixed_episodes: int | None = None
    """Train exactly this long to every order: max_episodes_per_order and no gate."""
    resume: Path | None = None
    """Go on with the search in this folder, with the settings that it has."""
    ray_address: str | None = None
    """With backend ray: host:port of a cluster's head, or auto for the one on this machine;
    RAY_ADDRESS by default, else a cluster of its own."""

    def __post_init__(self) -> None:
        """Leave the checks to the search's own settings, whose errors read like all others."""


def defaults(arguments: Sequence[str]) -> Search:
    """The settings of the search that --resume names, before any other flag is read.

    Raises:
        ValueError: the folder can't be read, or is not one of a search.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--resume", nargs="?")
    found, _ = parser.parse_known_args(arguments)
    config = _settings(Path(found.resume)) if found.resume else SearchConfig()
    return Search(**{field.name: getattr(config, field.name) for field in fields(SearchConfig)})


def search(command: Search) -> None:
    """Search the 120 workflow orders for the one whose policy defends best."""
    with (
        _optional.needed("a search", "search", *NEEDED),
        ray_connection(command, command.ray_address),
    ):
        _search(command)


def _search(command: Search) -> None:
    from cagepool.search import search  # noqa: PLC0415 - takes a second to load

    run = _run(command)
    console = Console(highlight=False)
    console.print(f"search folder: {run.path}", soft_wrap=True)
    config = _settings(run.path)
    with stop_on_interrupt(console) as should_stop, SearchDisplay(console, config) as display:
        finished = search.search(run, display, should_stop)
    if not finished:
        console.print(f"stopped; go on with: cagepool search --resume {run.path}", soft_wrap=True)
        raise KeyboardInterrupt
    _print_ranking(console, run.path)
    _print_repeated(console, run.path)
    console.print(f"look at it with: cagepool report {run.path}", soft_wrap=True)


def _run(command: Search) -> runs.Run:
    from cagepool.search.search import create  # noqa: PLC0415 - takes a second to load

    settings = {name: value for name, value in vars(command).items() if name not in OURS}
    if command.fixed_episodes is not None:
        settings |= {"max_episodes_per_order": command.fixed_episodes, "gate": False}
    config = parsed(settings, SearchConfig)
    if command.resume is None:
        now = datetime.now().astimezone()
        name = f"{now:%Y%m%d-%H%M%S}-search-{command.red_agent}-seed{command.seed}"
        return create(command.out or Path("runs") / name, config)
    if command.out is not None:
        raise ValueError(f"a resumed search stays in its folder, got out {str(command.out)!r}")
    run = runs.open_run(command.resume)
    check_unchanged(config.as_dict(), parsed(run.settings, SearchConfig).as_dict())
    return run


def _settings(folder: Path) -> SearchConfig:
    settings = runs.open_run(folder).settings
    if "method" not in settings:
        raise ValueError(f"a search must be the folder of a search, {folder} is that of a training")
    return parsed(settings, SearchConfig)


def _print_ranking(console: Console, folder: Path) -> None:
    """The orders with the best measured rewards; those that do not pass come last."""
    with (folder / ORDERS).open(encoding="utf-8", newline="") as file:
        measured = [row for row in csv.DictReader(file) if row["reward"]]
    measured.sort(key=lambda row: (row["passes"] != "1", -float(row["reward"])))
    console.print(f"{'order':42}  {'reward':>15}  compliance", soft_wrap=True)
    for row in measured[:SHOWN]:
        reward = f"{float(row['reward']):.2f} ± {float(row['standard_error']):.2f}"
        kept = f"{float(row['compliance']):.3f}" if row["compliance"] else "-"
        fails = "" if row["passes"] == "1" else " (fails)"
        console.print(f"{row['order']:42}  {reward:>15}  {kept}{fails}", soft_wrap=True)
    console.print(f"{len(measured)} of 120 orders measured; all are in {folder / ORDERS}")


def _print_repeated(console: Console, folder: Path) -> None:
    with (folder / DECISIONS).open(encoding="utf-8", newline="") as file:
        repeated = sum(int(row.get("repeated") or 0) for row in csv.DictReader(file))
    if repeated:
        console.print(f"nodes that died, and whose training was begun anew: {repeated}")
