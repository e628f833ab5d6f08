"""`cagepool search`: search the workflow orders, print the progress and the ranking."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Fixed, arg

from cagepool import _optional, runs
from cagepool.cli.args import (
    NO_DEFAULT,
    RAY_ADDRESS_HELP,
    EnvFlags,
    GroupedFlags,
    OrderFlags,
    PpoFlags,
    RunFlags,
    Unchecked,
    check_named_code,
    flag_errors,
    group_flags,
    parse,
    read_early,
    resume_command,
)
from cagepool.cli.display import CommandConsole, SearchDisplay, command_line
from cagepool.cli.train import check_env, check_unchanged, ray_connection, stop_on_interrupt
from cagepool.runs.schema import DECISIONS, ORDERS, DecisionRow, OrderRow
from cagepool.search.config import SearchConfig, StrategyConfig
from cagepool.sim.encoder import FeatureConfig

LIBRARIES = ("torch", "tensorboard", "safetensors", "sklearn")
RANKING_ROWS = 10


@dataclass(frozen=True, kw_only=True)
class StrategyFlags(Unchecked, StrategyConfig):
    """Search strategy: which order is trained next, and for how long."""


@dataclass(frozen=True, kw_only=True)
class BudgetFlags(RunFlags):
    """Run: budget, seed, evaluations and checkpoints."""

    start_from: Fixed[str | None] = None
    total_episodes: int = RunFlags.total_episodes
    """Training episodes of all orders together. The search never exceeds this budget."""
    n_evals: int = 0
    """Evaluations of the greedy policy on other seeds, spread over each training."""


@dataclass(frozen=True, kw_only=True)
class SearchPpoFlags(PpoFlags):
    """PPO hyper-parameters, under the names of Stable-Baselines3, and the networks."""

    overlap: Fixed[bool] = False


@dataclass(frozen=True, kw_only=True)
class SearchOrderFlags(OrderFlags):
    """Workflow order: alignment reward, compliance and early stopping."""

    order: Fixed[str | None] = None
    universal: Fixed[bool] = False


@dataclass(frozen=True, kw_only=True)
class Search(GroupedFlags):
    """Search the 120 workflow orders for the one whose policy defends best.

    The same settings and seed give the same decisions. A search can be stopped with Ctrl-C, or
    killed, and resumed to the same decisions.
    """

    search: StrategyFlags = field(default_factory=StrategyFlags)
    env: EnvFlags = field(default_factory=EnvFlags)
    ppo: SearchPpoFlags = field(default_factory=SearchPpoFlags)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    order: SearchOrderFlags = field(default_factory=SearchOrderFlags)
    run: BudgetFlags = field(default_factory=BudgetFlags)
    out: Annotated[Path | None, NO_DEFAULT] = None
    """Search folder. By default runs/ and the current time."""
    fixed_episodes: Annotated[int | None, NO_DEFAULT] = None
    """Exact number of episodes per order: --max-episodes-per-order with --no-early-stopping."""
    resume: Annotated[Path | None, NO_DEFAULT] = None
    """Resume the search in this folder, with its settings."""
    ray_address: Annotated[str | None, arg(help=RAY_ADDRESS_HELP), NO_DEFAULT] = None


def _default_flags(arguments: Sequence[str]) -> Search:
    """Default values of all flags: the settings of the search that --resume names, if any."""
    resumed = read_early(arguments, "resume").resume
    config = _read_config(Path(resumed)) if resumed else SearchConfig()
    if resumed:
        check_named_code(config.as_dict(), arguments, resumed)
    return Search(
        **group_flags(config)
        | {
            "search": StrategyFlags(**vars(config.search)),
            "ppo": SearchPpoFlags(**vars(config.ppo)),
            "order": SearchOrderFlags(**vars(config.order)),
            "run": BudgetFlags(**vars(config.run)),
        }
    )


def parse_search(arguments: Sequence[str]) -> Search:
    """Parse the flags of a search; the settings of a resumed search are the defaults."""
    return parse(Search, "cagepool search", arguments, _default_flags(arguments))


def search(command: Search) -> None:
    """Run or resume a search and print its ranking."""
    check_env(command.env)
    with (
        _optional.require("a search", "search", *LIBRARIES),
        flag_errors(SearchConfig),
        ray_connection(command.env, command.ray_address) as set_remedy,
    ):
        _search(command, set_remedy)


def _search(command: Search, set_remedy: Callable[[str], None]) -> None:
    from cagepool.search import search  # noqa: PLC0415 - takes a second to load

    run = _open_or_create(command)
    hint = resume_command("search", run.path, run.settings)
    set_remedy(f"resume with: {hint}")
    console = CommandConsole()
    console.print(f"search folder: {run.path}", soft_wrap=True)
    config = _read_config(run.path)
    with stop_on_interrupt(console) as should_stop, SearchDisplay(console, config) as display:
        finished = search.search(run, display, should_stop)
    if not finished:
        console.print(f"stopped; resume with: {hint}", soft_wrap=True)
        raise KeyboardInterrupt
    _print_ranking(console, run.path)
    _print_restarts(console, run.path)
    console.print(f"write a report with: {command_line('report', run.path)}", soft_wrap=True)


def _open_or_create(command: Search) -> runs.Run:
    from cagepool.search.search import create  # noqa: PLC0415 - takes a second to load

    settings = command.settings()
    if command.fixed_episodes is not None:
        settings["search"]["max_episodes_per_order"] = command.fixed_episodes
        settings["order"]["early_stopping"] = False
    config = SearchConfig.from_dict(settings)
    if command.resume is None:
        now = datetime.now().astimezone()
        red = command.env.red_agent.replace(":", "")
        name = f"{now:%Y%m%d-%H%M%S}-search-{red}-seed{command.run.seed}"
        path = command.out or Path("runs") / name
        return create(path, config, numbered=command.out is None)
    if command.out is not None:
        raise ValueError(f"a resumed search stays in its folder, got --out {str(command.out)!r}")
    run = runs.open_run(command.resume)
    check_unchanged(config, SearchConfig.from_dict(run.settings))
    return run


def _read_config(folder: Path) -> SearchConfig:
    settings = runs.open_run(folder).settings
    if "search" not in settings:
        raise ValueError(f"--resume must be the folder of a search, {folder} is that of a training")
    return SearchConfig.from_dict(settings)


def _print_ranking(console: Console, folder: Path) -> None:
    """Print the best orders: those that pass first, then by reward."""
    rows = runs.read_rows(folder / ORDERS, OrderRow)
    measured = [row for row in rows if row.reward is not None]
    measured.sort(key=lambda row: (not row.passes, -(row.reward or 0.0)))
    console.print(f"{'order':42}  {'reward':>15}  compliance", soft_wrap=True)
    for row in measured[:RANKING_ROWS]:
        reward = f"{row.reward:.2f} ± {row.standard_error:.2f}"
        compliance = "-" if row.compliance is None else f"{row.compliance:.3f}"
        fails = "" if row.passes else " (fails)"
        console.print(f"{row.order:42}  {reward:>15}  {compliance}{fails}", soft_wrap=True)
    console.print(f"{len(measured)} of 120 orders measured; all are in {folder / ORDERS}")


def _print_restarts(console: Console, folder: Path) -> None:
    restarts = sum(row.repeated for row in runs.read_rows(folder / DECISIONS, DecisionRow))
    if restarts:
        console.print(f"trainings restarted because their node died: {restarts}")
