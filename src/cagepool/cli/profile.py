"""`cagepool profile`: print the time per stage of training or stepping, and write it to files."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from rich import box
from rich.console import Console
from rich.table import Column, Table
from tyro.conf import Positional, arg

from cagepool import _optional
from cagepool.bench import profile as profiler
from cagepool.bench.profile import MAIN, StepConfig
from cagepool.cli.args import NO_DEFAULT, parse
from cagepool.cli.display import CommandConsole, TrainDisplay, progress_bars
from cagepool.cli.train import (
    check_env,
    open_run_folder,
    parse_train,
    read_config,
    stop_on_interrupt,
)
from cagepool.train.config import TrainConfig

KINDS = ("train", "step")
BAR_COLUMNS = 18
EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Profile training or stepping: cagepool profile -- train FLAGS, or -- step FLAGS.

    Stages are exclusive and sum to the wall time. Flags of this command precede the two hyphens;
    `cagepool profile -- step --help` prints those of step.
    """

    options: Annotated[Positional[tuple[str, ...]], arg(metavar="train|step FLAGS..."), NO_DEFAULT]
    """Program to profile, and its flags, after two hyphens."""
    out: Annotated[Path | None, arg(metavar="FILE"), NO_DEFAULT] = None
    """JSON file to write."""
    speedscope: Annotated[Path | None, arg(metavar="FILE"), NO_DEFAULT] = None
    """Flame graph to write, a JSON file for https://www.speedscope.app."""


@dataclass(frozen=True, kw_only=True)
class Step(StepConfig):
    """Step environments with random actions."""

    order: Annotated[str | None, NO_DEFAULT] = StepConfig.order

    def __post_init__(self) -> None:
        """Skip the checks: `StepConfig` makes them, with errors that read like all others."""


def with_hyphens(arguments: Sequence[str]) -> Sequence[str]:
    """Insert the two hyphens of a profile if they are missing."""
    places = [place for place, argument in enumerate(arguments) if argument in KINDS]
    if arguments[:1] != ["profile"] or "--" in arguments or not places:
        return arguments
    return [*arguments[: places[0]], "--", *arguments[places[0] :]]


def profile(command: Profile) -> None:
    """Profile training or stepping, print tables and write files."""
    _check(command)
    kind, *arguments = command.options
    if kind == "train":
        result = _profile_training(arguments)
    else:
        step = parse(Step, "cagepool profile -- step", arguments)
        result = _profile_steps(StepConfig(**vars(step)))
    if command.out is not None:
        profiler.write_profile(result, command.out)
    if command.speedscope is not None:
        profiler.write_speedscope(result, command.speedscope)
    _print(CommandConsole(), result)


def _check(command: Profile) -> None:
    """Check the command before anything is measured."""
    if not command.options or command.options[0] not in KINDS:
        raise ValueError(
            "a profile needs train or step with its flags after two hyphens "
            f"(cagepool profile -- train), got {' '.join(command.options) or 'nothing'}"
        )
    for name, file in (("out", command.out), ("speedscope", command.speedscope)):
        if file is not None and (file.is_dir() or not file.parent.is_dir()):
            raise ValueError(f"{name} must be a file in a folder that exists, got {file}")
    with _optional.require("a profile", "bench", "psutil"):
        pass


def _profile_training(arguments: Sequence[str]) -> profiler.Profile:
    wanted = parse_train(arguments)
    check_env(read_config(wanted).env)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in training
    with _optional.require("training", "train", "torch", "tensorboard", "safetensors"):
        from cagepool.train import runner  # noqa: PLC0415

    console = CommandConsole(stderr=True)
    with TemporaryDirectory() as folder:
        if wanted.out is None and wanted.resume is None:
            wanted = replace(wanted, out=Path(folder) / "run")
        run = open_run_folder(wanted)
        config = TrainConfig.from_dict(run.settings)
        display = TrainDisplay(console, config)
        try:
            with stop_on_interrupt(console) as should_stop, display:
                return profiler.profile_training(
                    config, lambda: runner.train(run, display, should_stop)
                )
        except ValueError:  # for example an environment that cannot be created
            if wanted.resume is None:
                run.discard_if_unused()
            raise


def _profile_steps(config: StepConfig) -> profiler.Profile:
    with progress_bars() as progress:
        bar = progress.add_task("stepping", total=config.steps)
        return profiler.profile_steps(
            config, lambda finished: progress.update(bar, completed=finished)
        )


def _print(console: Console, result: profiler.Profile) -> None:
    machine = result.machine
    load = f"load {machine['load']} before and {result.load_after} after"
    console.print(f"{machine['processor']}, {machine['cores']} cores, {load}")
    for thread in result.threads:
        _print_thread(console, result, thread)
    overhead = result.overhead
    console.print(
        f"overhead of the profiler: {overhead.share:.2%} of the wall time, "
        f"{overhead.entries:,} stages at {1e6 * overhead.seconds_per_entry:.2f} us; "
        f"{overhead.recorded_share:.0%} of the wall time was recorded"
    )
    _print_traffic(console, result)


def _print_thread(console: Console, result: profiler.Profile, thread: str) -> None:
    right = (Column(name, justify="right") for name in ("seconds", "share", "us per step"))
    title = "stage" if thread == MAIN else f"stage of {thread}"
    table = Table(title, *right, "", box=box.SIMPLE_HEAD)
    stages = result.thread_stages(thread)
    for name, seconds in stages.items():
        table.add_row(name, *_figures(seconds, result), _bar(seconds / result.wall_seconds))
    table.add_section()
    table.add_row("wall time", *_figures(sum(stages.values()), result), "")
    console.print(table)


def _figures(seconds: float, result: profiler.Profile) -> tuple[str, str, str]:
    share = f"{100 * seconds / result.wall_seconds:.1f} %"
    return f"{seconds:.3f}", share, f"{1e6 * seconds / max(result.steps, 1):,.2f}"


def _bar(share: float) -> str:
    """Horizontal bar with a resolution of one eighth of a column."""
    whole, rest = divmod(round(8 * BAR_COLUMNS * share), 8)
    return "█" * whole + EIGHTHS[rest].strip()


def _print_traffic(console: Console, result: profiler.Profile) -> None:
    traffic = result.traffic
    amounts = [
        f"{value:,.{digits}f} {unit}"
        for value, digits, unit in (
            (traffic.messages, 1, "messages"),
            (traffic.message_bytes, 0, "bytes in messages"),
            (traffic.array_bytes, 0, "bytes in arrays"),
        )
        if value is not None
    ]
    step = f"per step of all {result.environments:,} environments ({result.steps:,} steps)"
    console.print(f"{step}: {', '.join(amounts) or 'traffic not counted'}")
