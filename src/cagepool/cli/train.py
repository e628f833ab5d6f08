"""`cagepool train`: a defender, its run folder, and how far it is."""

import argparse
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import tyro
from rich.console import Console
from tyro.conf import arg

from cagepool import _optional, runs
from cagepool.cli.args import FLAGS
from cagepool.cli.cluster import ray_connection
from cagepool.cli.display import TrainDisplay, actors_replaced
from cagepool.evaluate import overview
from cagepool.evaluate.files import OUTCOME
from cagepool.evaluate.policy import CAGE_ENVS
from cagepool.train.config import TrainConfig, from_dict
from cagepool.train.presets import PRESETS, preset

OURS = (
    "out",
    "resume",
    "config",
    "preset",
    "fixed_episodes",
    "ray_address",
)  # flags that are not settings of a run


@dataclass(frozen=True, kw_only=True)
class Train(TrainConfig):
    """Train a defender with PPO and write its run folder.

    A run is the same for the same settings and seed. It can be stopped with Ctrl-C, or killed, and
    resumed to the same numbers.
    """

    overlap: Annotated[bool, arg(name="async")] = TrainConfig.overlap
    """Collect with the policy of one update ago while the present one is being updated."""
    out: Path | None = None
    """Folder of the run; runs/ and the time by default."""
    fixed_episodes: int | None = None
    """Play exactly this many episodes, however the order is kept: total_episodes and no gate."""
    resume: Path | None = None
    """Go on with the run in this folder, with the settings that it has."""
    config: Path | None = None
    """Take settings from a JSON file, such as a run's config.json; other flags come on top."""
    preset: Annotated[
        str | None,
        arg(help=f"Settings that go together: {', '.join(PRESETS)}; other flags come on top."),
    ] = None
    ray_address: str | None = None
    """With backend ray: host:port of a cluster's head, or auto for the one on this machine;
    RAY_ADDRESS by default, else a cluster of its own."""

    def __post_init__(self) -> None:
        """Leave the checks to the run's own settings, whose errors read like all others."""


def defaults(arguments: Sequence[str]) -> Train:
    """The settings that --resume, --preset and --config ask for, before any other flag is read.

    Raises:
        ValueError: a file can't be read, or a setting is unknown.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset", nargs="?")
    parser.add_argument("--config", nargs="?")
    parser.add_argument("--resume", nargs="?")
    found, _ = parser.parse_known_args(arguments)
    settings = dict(runs.open_run(found.resume).settings) if found.resume else {}
    if found.preset:
        settings |= preset(found.preset)
    if found.config:
        settings |= _read_settings(Path(found.config))
    return Train(**_as_fields(from_dict(settings)))


def parsed(arguments: Sequence[str]) -> Train:
    """What these arguments ask for; a file or a preset decides what other flags are by default."""
    usual = defaults(arguments)
    return tyro.cli(Train, prog="cagepool train", args=arguments, default=usual, config=FLAGS)


def train(command: Train) -> None:
    """Train a defender with PPO and write its run folder."""
    # Threads that wait by spinning take the core from others, and training down with them.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with _optional.needed("training", "train", "torch", "tensorboard", "safetensors"):
        from cagepool.train import runner  # noqa: PLC0415 - PyTorch takes a second to load

    with ray_connection(command, command.ray_address):
        _train(command, runner.train)


def _train(
    command: Train, trained: Callable[[runs.Run, TrainDisplay, Callable[[], bool]], bool]
) -> None:
    run = run_of(command)
    console = Console(highlight=False)
    console.print(f"run folder: {run.path}", soft_wrap=True)
    config = from_dict(run.settings)
    try:
        with stop_on_interrupt(console) as should_stop, TrainDisplay(console, config) as display:
            finished = trained(run, display, should_stop)
    except ValueError:  # such as an environment that can't be made: the folder is free again
        if command.resume is None:
            run.discard()
        raise
    except OSError as error:  # such as a full disk
        remedy = f"go on from the last checkpoint with: cagepool train --resume {run.path}"
        raise OSError(f"the run had to stop: {error}; {remedy}") from error
    if not finished:
        console.print(f"stopped; go on with: cagepool train --resume {run.path}", soft_wrap=True)
        raise KeyboardInterrupt
    if replaced := overview.replaced(run):
        console.print(f"{actors_replaced(replaced)}, and what they were collecting collected anew")
    if config.order is not None:
        _print_outcome(console, run)
    if config.env in CAGE_ENVS:
        console.print(f"score it with: cagepool evaluate {run.path}", soft_wrap=True)
    console.print(f"look at it with: cagepool report {run.path}", soft_wrap=True)


def _print_outcome(console: Console, run: runs.Run) -> None:
    """Say why training to an order ended, and how the policy does on games of its own."""
    came = json.loads((run.path / OUTCOME).read_text(encoding="utf-8"))
    console.print(f"{came['outcome']}: {came['reason']}", soft_wrap=True)
    shares = (f"{name} {_share(came[name])}" for name in ("compliance", "coverage"))
    score = f"{came['mean']:.2f} ± {came['standard_error']:.2f}"
    console.print(f"greedy on {came['episodes']} other games: {score}, {', '.join(shares)}")


def _share(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


@contextmanager
def stop_on_interrupt(console: Console) -> Iterator[Callable[[], bool]]:
    """Turns the first Ctrl-C into a wish to stop, which it gives; the second one is as usual."""
    stop = threading.Event()

    def interrupted(_signal: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, usual)
        console.print("stopping after this update (Ctrl-C again: at once)")

    usual = signal.signal(signal.SIGINT, interrupted)
    try:
        yield stop.is_set
    finally:
        signal.signal(signal.SIGINT, usual)


def run_of(command: Train) -> runs.Run:
    """The run folder that is asked for: a new one, or the one that is resumed."""
    settings = {name: value for name, value in vars(command).items() if name not in OURS}
    if command.fixed_episodes is not None:
        settings |= {"total_episodes": command.fixed_episodes, "gate": False}
    if command.start_from is not None:  # a run finds it wherever it is resumed
        settings["start_from"] = str(Path(command.start_from).resolve())
    config = from_dict(settings)
    if command.resume is None:
        return runs.create(
            command.out or _free_folder(command), config.as_dict(), version("cagepool")
        )
    if command.out is not None:
        raise ValueError(f"a resumed run stays in its folder, got out {str(command.out)!r}")
    run = runs.open_run(command.resume)
    check_unchanged(config.as_dict(), from_dict(run.settings).as_dict())
    return run


def check_unchanged(given: dict[str, Any], had: dict[str, Any]) -> None:
    """Raise ValueError if a resumed run is given other settings than it had."""
    changed = [name for name in given if given[name] != had[name]]
    if changed:
        raise ValueError(
            "a resumed run must keep its settings, got "
            + ", ".join(f"{name} {given[name]!r} (it has {had[name]!r})" for name in changed)
        )


def _free_folder(command: Train) -> Path:
    now = datetime.now().astimezone()
    return Path("runs") / f"{now:%Y%m%d-%H%M%S}-{command.red_agent}-seed{command.seed}"


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"config must be a JSON file, {path} is not: {error}") from error
    settings = content.get("settings", content) if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise ValueError(f"config must be a JSON file of settings, {path} holds none")
    return settings


def _as_fields(config: TrainConfig) -> dict[str, Any]:
    return {field.name: getattr(config, field.name) for field in fields(TrainConfig)}
