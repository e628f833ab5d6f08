"""`cagepool profile`: where the time of training or of stepping goes."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import tyro
from rich import box
from rich.console import Console
from rich.table import Column, Table
from tyro.conf import Positional, arg

from cagepool import _optional
from cagepool.bench.profile.result import MAIN
from cagepool.bench.profile.result import Profile as Result
from cagepool.bench.profile.step import StepConfig, profile_steps
from cagepool.cli.args import FLAGS
from cagepool.cli.display import TrainDisplay, progress_bars
from cagepool.cli.train import parsed, run_of, stop_on_interrupt
from cagepool.train.config import TrainConfig

KINDS = ("train", "step")
PICTURES = (".svg", ".png", ".pdf")
BAR = 18  # columns
EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Show where the time goes: cagepool profile -- train FLAGS, or cagepool profile -- step FLAGS.

    Stages exclude each other and add up to the wall time. Flags of this command stand before the
    two hyphens; `cagepool profile -- step --help` shows those of step.
    """

    options: Annotated[Positional[tuple[str, ...]], arg(metavar="train|step FLAGS...")]
    """What to do, with its flags, after two hyphens."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """JSON file to write."""
    picture: Annotated[Path | None, arg(metavar="FILE")] = None
    """Picture to draw: .svg, .png or .pdf."""


@dataclass(frozen=True, kw_only=True)
class Step(StepConfig):
    """Step environments with random actions, and do nothing else."""

    def __post_init__(self) -> None:
        """Leave the checks to what is profiled, whose errors read like all others."""


def with_hyphens(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments with the two hyphens of a profile, if they were forgotten."""
    places = [place for place, one in enumerate(arguments) if one in KINDS]
    if arguments[:1] != ["profile"] or "--" in arguments or not places:
        return arguments
    return [*arguments[: places[0]], "--", *arguments[places[0] :]]


def profile(command: Profile) -> None:
    """Train or step, print where the time went, write JSON and draw a picture."""
    _check(command)
    kind, *rest = command.options
    if kind == "train":
        result = _profiled_training(rest)
    else:
        step = tyro.cli(Step, prog="cagepool profile -- step", args=rest, config=FLAGS)
        result = _profiled_steps(StepConfig(**vars(step)))
    if command.out is not None:
        command.out.write_text(json.dumps(result.as_dict(), indent=1) + "\n")
    _print(Console(highlight=False), result)
    if command.picture is not None:
        from cagepool.report.flame import draw_flame  # noqa: PLC0415 - needs Matplotlib

        draw_flame(result.as_dict(), command.picture)


def _check(command: Profile) -> None:
    """Refuse before anything is measured."""
    if not command.options or command.options[0] not in KINDS:
        raise ValueError(
            "a profile is of train or step, named with its flags after two hyphens "
            f"(cagepool profile -- train), got {' '.join(command.options) or 'nothing'}"
        )
    for name, file in (("out", command.out), ("picture", command.picture)):
        if file is not None and (file.is_dir() or not file.parent.is_dir()):
            raise ValueError(f"{name} must be a file in a folder that exists, got {file}")
    if command.picture is not None:
        if command.picture.suffix not in PICTURES:
            raise ValueError(
                f"picture must end with {', '.join(PICTURES[:-1])} or {PICTURES[-1]}, "
                f"got {command.picture}"
            )
        with _optional.require("a picture", "report", "matplotlib"):
            pass


def _profiled_training(arguments: Sequence[str]) -> Result:
    wanted = parsed(arguments)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in training
    with _optional.require("training", "train", "torch", "tensorboard", "safetensors"):
        from cagepool.bench.profile.train import profile_training  # noqa: PLC0415

    console = Console(highlight=False, stderr=True)
    with TemporaryDirectory() as folder:
        if wanted.out is None and wanted.resume is None:
            wanted = replace(wanted, out=Path(folder) / "run")
        run = run_of(wanted)
        display = TrainDisplay(console, TrainConfig.from_dict(run.settings))
        try:
            with stop_on_interrupt(console) as should_stop, display:
                return profile_training(run, display, should_stop)
        except ValueError:  # such as an environment that can't be made: the folder is free again
            if wanted.resume is None:
                run.discard_if_unused()
            raise


def _profiled_steps(config: StepConfig) -> Result:
    with progress_bars() as progress:
        bar = progress.add_task("stepping", total=config.steps)
        return profile_steps(config, lambda done: progress.update(bar, completed=done))


def _print(console: Console, result: Result) -> None:
    where = result.machine
    load = f"load {where['load']} before and {result.load_after} after"
    console.print(f"{where['processor']}, {where['cores']} cores, {load}")
    for thread in result.threads:
        _print_thread(console, result, thread)
    _print_overhead(console, result)
    _print_traffic(console, result)
    for note in result.notes:
        console.print(f"Note: {note}.")


def _print_thread(console: Console, result: Result, thread: str) -> None:
    right = (Column(name, justify="right") for name in ("seconds", "share", "us a step"))
    title = "stage" if thread == MAIN else f"beside it: {thread}"
    table = Table(title, *right, "", box=box.SIMPLE_HEAD)
    stages = result.stages(thread)
    for stage, seconds in stages.items():
        table.add_row(stage, *_amounts(seconds, result), _blocks(seconds / result.wall_seconds))
    table.add_section()
    table.add_row("wall time", *_amounts(sum(stages.values()), result), "")
    console.print(table)


def _amounts(seconds: float, result: Result) -> tuple[str, str, str]:
    share = f"{100 * seconds / result.wall_seconds:.1f} %"
    return f"{seconds:.3f}", share, f"{1e6 * seconds / max(result.steps, 1):,.2f}"


def _blocks(share: float) -> str:
    """A bar, to an eighth of a column."""
    whole, rest = divmod(round(8 * BAR * share), 8)
    return "█" * whole + EIGHTHS[rest].strip()


def _print_overhead(console: Console, result: Result) -> None:
    cost = result.overhead
    looked = f"looked into {cost['looked_into']} of {cost['slices']} slices"
    turns = "unknown" if cost["by_turns"] is None else f"{cost['by_turns']:+.2%}"
    console.print(
        f"overhead: {cost['counted']:.2%} of the wall time by count, {turns} by turns ({looked})"
    )


def _print_traffic(console: Console, result: Result) -> None:
    moved = result.traffic
    console.print(
        f"a step of all {moved['environments']:,.0f} environments ({result.steps:,} were played): "
        f"{moved['messages']:,.1f} messages of {moved['message_bytes']:,.0f} bytes in all, "
        f"{moved['array_bytes']:,.0f} bytes in arrays",
    )
