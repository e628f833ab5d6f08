"""`cagepool train`: train a policy and write its run folder."""

import os
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

from rich.console import Console
from tyro.conf import arg

from cagepool import _optional, runs
from cagepool._lookup import suggestion
from cagepool.cli.args import (
    NO_DEFAULT,
    RAY_ADDRESS_HELP,
    EnvFlags,
    GroupedFlags,
    OrderFlags,
    PpoFlags,
    RunFlags,
    allow_local_modules,
    check_named_code,
    flag_errors,
    flag_of,
    group_flags,
    parse,
    read_early,
    resume_command,
)
from cagepool.cli.display import CommandConsole, TrainDisplay, actors_replaced, command_line
from cagepool.cyborg import CybORGNotFoundError, locate
from cagepool.envs.make import CYBORG, find_env_fn
from cagepool.envs.reward_hook import try_reward
from cagepool.policy.policy import CAGE_ENVS
from cagepool.runs.listing import replaced_actors
from cagepool.sim.encoder import FeatureConfig
from cagepool.train.config import (
    DEFAULT_TRACKERS,
    TRACKERS,
    EnvConfig,
    Settings,
    TrainConfig,
    merge_settings,
)
from cagepool.train.presets import PRESETS, preset_settings


@dataclass(frozen=True, kw_only=True)
class Train(GroupedFlags):
    """Train a defender with PPO and write its run folder.

    The same settings and seed give the same run. A run can be stopped with Ctrl-C, or killed, and
    resumed to the same numbers.
    """

    env: EnvFlags = field(default_factory=EnvFlags)
    ppo: PpoFlags = field(default_factory=PpoFlags)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    order: OrderFlags = field(default_factory=OrderFlags)
    run: RunFlags = field(default_factory=RunFlags)
    out: Annotated[Path | None, NO_DEFAULT] = None
    """Run folder. By default runs/ and the time."""
    fixed_episodes: Annotated[int | None, NO_DEFAULT] = None
    """Play exactly this many episodes: --total-episodes and --no-early-stopping."""
    resume: Annotated[Path | None, NO_DEFAULT] = None
    """Resume the run in this folder, with its settings."""
    config: Annotated[Path | None, NO_DEFAULT] = None
    """JSON file with settings by group, such as a run's config.json. Other flags override it."""
    preset: Annotated[
        str | None,
        arg(metavar=f"{{{','.join(PRESETS)}}}", help="Preset. Other flags override it."),
        NO_DEFAULT,
    ] = None
    ray_address: Annotated[str | None, arg(help=RAY_ADDRESS_HELP), NO_DEFAULT] = None
    log: Annotated[str, arg(metavar=f"{{{','.join(TRACKERS)}}}[,...]")] = ",".join(DEFAULT_TRACKERS)
    """Trackers of the run (docs/tracking.md), joined by commas. none: no tracker."""


def parse_train(arguments: Sequence[str]) -> Train:
    """Parse the flags; --resume, --preset and --config decide the defaults of the others."""
    return parse(Train, "cagepool train", arguments, _read_defaults(arguments))


def _read_defaults(arguments: Sequence[str]) -> Train:
    flags = read_early(arguments, "preset", "config", "resume")
    settings: Settings = {}
    if flags.resume:
        settings = runs.open_run(flags.resume).settings
        check_named_code(settings, arguments, flags.resume)
    if flags.preset:
        with flag_errors():
            settings = merge_settings(settings, preset_settings(flags.preset))
    if flags.config:
        read = _read_settings(Path(flags.config))
        check_named_code(read, arguments, flags.config)
        settings = merge_settings(settings, read)
    return Train(**group_flags(TrainConfig.from_dict(settings)))


def train(command: Train) -> None:
    """Train a defender with PPO and write its run folder."""
    config = read_config(command)
    trackers = _read_trackers(command)
    check_env(config.env)  # before the libraries of training, which load slowly
    allow_local_modules(config.ppo.network)
    # OpenMP threads that spin-wait would take the cores from the rollout threads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with _optional.require("training", "train", "torch", "tensorboard", "safetensors"):
        from cagepool.train import runner  # noqa: PLC0415 - slow import

    with flag_errors(), ray_connection(command.env, command.ray_address) as set_remedy:
        _train(command, partial(runner.train, log=trackers), set_remedy)


def _train(
    command: Train,
    train_run: Callable[[runs.Run, TrainDisplay, Callable[[], bool]], bool],
    set_remedy: Callable[[str], None],
) -> None:
    run = open_run_folder(command)
    resume = resume_command("train", run.path, run.settings) + _log_flag(command)
    remedy = f"resume from the last checkpoint with: {resume}"
    set_remedy(remedy)
    console = CommandConsole()
    console.print(f"run folder: {run.path}", soft_wrap=True)
    config = TrainConfig.from_dict(run.settings)
    try:
        with stop_on_interrupt(console) as should_stop, TrainDisplay(console, config) as display:
            finished = train_run(run, display, should_stop)
    except ValueError:  # such as an unknown environment: leave no folder behind
        if command.resume is None:
            run.discard_if_unused()
        raise
    except OSError as error:  # such as a full disk
        raise OSError(f"the run had to stop: {error}; {remedy}") from error
    if not finished:
        console.print(f"stopped; resume with: {resume}", soft_wrap=True)
        raise KeyboardInterrupt
    if command.resume is not None and not display.has_updates:
        console.print("the run is finished: there was nothing to resume")
    if replaced := replaced_actors(run):
        console.print(f"{actors_replaced(replaced)}; their rollouts were collected again")
    if reason := run.checkpoint("last").state["progress"].get("stop_reason"):
        console.print(f"stopped early: {reason}", soft_wrap=True)
    if config.order.order is not None:
        _print_outcome(console, run)
    if config.env.id in CAGE_ENVS:
        console.print(f"evaluate it with: {command_line('evaluate', run.path)}", soft_wrap=True)
    console.print(f"write a report with: {command_line('report', run.path)}", soft_wrap=True)


def _log_flag(command: Train) -> str:
    """The flag --log of the command that resumes the run; empty if it is the default."""
    return "" if command.log == Train.log else f" --log {shlex.quote(command.log)}"


def _read_trackers(command: Train) -> tuple[str, ...]:
    """Names of the trackers, whose libraries are installed."""
    trackers = parse_trackers(command.log)
    if "wandb" in trackers:
        with _optional.require("the tracker wandb", "wandb", "wandb"):
            pass
    return trackers


def parse_trackers(text: str) -> tuple[str, ...]:
    """Names of trackers from text such as `tensorboard,wandb`; `none` stands for no tracker."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if names == ("none",):
        return ()
    for name in names:
        if name not in TRACKERS:
            known = f"log must be none, or one or more of {', '.join(TRACKERS)} joined by a comma"
            raise ValueError(f"{known}; got {name!r}{suggestion(name, TRACKERS)}")
    return names


def _print_outcome(console: Console, run: runs.Run) -> None:
    """Print why a training with an order ended, and the final evaluation."""
    workflow = run.workflow()
    assert workflow is not None, "a finished training with an order has written workflow.json"
    console.print(f"{workflow.outcome}: {workflow.reason}", soft_wrap=True)
    shares = (
        f"{name} {_format_share(getattr(workflow, name))}" for name in ("compliance", "coverage")
    )
    score = f"{workflow.mean:.2f} ± {workflow.standard_error:.2f}"
    episodes = f"greedy on {workflow.episodes} other games"
    console.print(f"{episodes}: {score}, {', '.join(shares)}")


def _format_share(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


@contextmanager
def stop_on_interrupt(console: Console) -> Iterator[Callable[[], bool]]:
    """The first SIGINT sets the stop flag; the second raises KeyboardInterrupt.

    Yields:
        Whether the stop flag is set.
    """
    stop = threading.Event()

    def set_stop_flag(_signal: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, default_handler)
        console.print("stopping after this update (Ctrl-C again: at once)")

    default_handler = signal.signal(signal.SIGINT, set_stop_flag)
    try:
        yield stop.is_set
    finally:
        signal.signal(signal.SIGINT, default_handler)


@contextmanager
def ray_connection(env: EnvConfig, address: str | None) -> Iterator[Callable[[str], None]]:
    """Connect to the Ray cluster at the address or at `RAY_ADDRESS`, or start one.

    Yields:
        Sets what standard error says about going on if Ray ends this process.
    """
    if env.backend != "ray":
        if address is not None:
            raise ValueError(f"--ray-address needs --backend ray, got {env.backend}")
        yield lambda _remedy: None
        return
    with _optional.require("backend ray", "ray", "ray"):
        from cagepool.train.ray import cluster_connection  # noqa: PLC0415 - slow import
    address = address or os.environ.get("RAY_ADDRESS")
    with cluster_connection(address, env.ray_actors) as set_remedy:
        yield set_remedy


def check_env(env: EnvConfig) -> None:
    """Check that environment, scenarios and reward function exist, also in the current folder."""
    allow_local_modules(env.id, env.reward)
    if env.id == CYBORG:
        try:
            locate.load()
        except CybORGNotFoundError as error:
            raise ValueError(str(error)) from error
    elif not env.is_cage:
        with flag_errors():
            find_env_fn(env.id)
    if env.reward is not None:
        with flag_errors():
            try_reward(env.reward)
    if env.scenario is not None:
        with flag_errors():
            _ = env.scenarios


def read_config(command: Train) -> TrainConfig:
    """The configuration of a command."""
    settings = command.settings()
    if command.preset is not None and command.env.scenario is not None and command.features.belief:
        raise ValueError(
            f"--preset {command.preset} is for CAGE-2 only, got --scenario {command.env.scenario}; "
            "--preset scenarios trains on any scenario"
        )
    if command.fixed_episodes is not None:
        settings["run"]["total_episodes"] = command.fixed_episodes
        settings["order"]["early_stopping"] = False
    if command.run.start_from is not None:  # absolute: the run may be resumed from elsewhere
        settings["run"]["start_from"] = str(Path(command.run.start_from).resolve())
    if command.env.scenario is not None:
        settings["env"]["scenario"] = _absolute_paths(command.env.scenario)
    with flag_errors():
        return TrainConfig.from_dict(settings)


def _absolute_paths(scenarios: str) -> str:
    """Scenarios whose files and folders are absolute: the run may be resumed from elsewhere."""
    names = (name.strip() for name in scenarios.split(","))
    paths = ((name, Path(name)) for name in names)
    return ",".join(str(path.resolve()) if path.exists() else name for name, path in paths)


def open_run_folder(command: Train) -> runs.Run:
    """Create the run folder, or open the one to resume."""
    config = read_config(command)
    if command.resume is None:
        path = command.out or _default_folder(command)
        numbered = command.out is None
        return runs.create(path, config.as_dict(), version("cagepool"), numbered=numbered)
    if command.out is not None:
        raise ValueError(f"a resumed run stays in its folder, got --out {str(command.out)!r}")
    run = runs.open_run(command.resume)
    check_unchanged(config, TrainConfig.from_dict(run.settings))
    return run


def check_unchanged(given: TrainConfig, had: TrainConfig) -> None:
    """Raise ValueError if the settings of a resumed run differ from those that it had."""
    new, old = (runs.flat_settings(config.as_dict()) for config in (given, had))
    changed = [
        f"{flag_of(name, type(given))} {new[name]!r} (it has {old[name]!r})"
        for name in new
        if new[name] != old[name]
    ]
    if changed:
        raise ValueError(f"a resumed run must keep its settings, got {', '.join(changed)}")


def _default_folder(command: Train) -> Path:
    now = datetime.now().astimezone()
    red = command.env.red_agent.replace(":", "")
    return Path("runs") / f"{now:%Y%m%d-%H%M%S}-{red}-seed{command.run.seed}"


def _read_settings(path: Path) -> Settings:
    try:
        content = runs.read_json(path, dict[str, Any], follow_link=True)
    except runs.RunFileError as error:
        raise ValueError(f"--config must be a JSON file of settings: {error}") from error
    if "format" in content:
        return runs.read_settings(path, follow_link=True)
    settings = content.get("settings", content)
    if not isinstance(settings, dict):
        raise ValueError(f"--config must be a JSON file of settings, {path} holds none")
    TrainConfig.from_dict(settings)  # check it before it is merged
    return settings
