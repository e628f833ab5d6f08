"""`cagepool study`: train settings from many seeds, score them on the same games, compare."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Fixed, Positional, UseAppendAction, arg

from cagepool import _optional
from cagepool.cli import EXIT_FAILURE, printable
from cagepool.cli.args import (
    NO_DEFAULT,
    RAY_ADDRESS_HELP,
    EnvFlags,
    GroupedFlags,
    OrderFlags,
    PpoFlags,
    RunFlags,
    allow_local_modules,
    flag_errors,
    group_flags,
    named_code,
    parse,
    read_early,
)
from cagepool.cli.display import CommandConsole, StudyDisplay, command_line
from cagepool.cli.train import ray_connection, stop_on_interrupt
from cagepool.runs.study_schema import (
    ResultsFile,
    StudyFile,
    StudyProtocol,
    first_seeds,
    read_results,
)
from cagepool.sim.encoder import FeatureConfig
from cagepool.train.config import TrainConfig
from cagepool.train.presets import PRESETS, preset_settings

LIBRARIES = ("scipy", "tensorboard", "safetensors")
DEFAULT_SEEDS = 10
MOST_COMPARISONS = 30  # that are printed whatever their outcome


@dataclass(frozen=True, kw_only=True)
class StudyRunFlags(RunFlags):
    """Run: length, evaluations and checkpoints of each training."""

    seed: Fixed[int] = 0
    start_from: Fixed[str | None] = None


@dataclass(frozen=True, kw_only=True)
class StudyPpoFlags(PpoFlags):
    """PPO hyper-parameters, under the names of Stable-Baselines3, and the networks."""

    threads: Fixed[int] = 1


@dataclass(frozen=True, kw_only=True)
class Study(GroupedFlags):
    """Train settings from many seeds, score all runs on the same games, and compare them.

    The same command resumes a study that was stopped with Ctrl-C or killed, to the same numbers.
    """

    study: Annotated[Positional[Path | None], arg(metavar="STUDY"), NO_DEFAULT] = None
    """TOML file of a study, or the folder of one to resume. Without it, flags define the study."""
    seeds: Annotated[int | None, NO_DEFAULT] = None
    """Number of seeds per setting. By default 10, or the seeds of the file."""
    vary: Annotated[
        UseAppendAction[tuple[str, ...]], arg(metavar="NAME=VALUE,..."), NO_DEFAULT
    ] = ()
    """Values of a setting, such as ppo.ent_coef=0,0.01. Several make a grid of all combinations."""
    baseline: Annotated[str | None, NO_DEFAULT] = None
    """Setting that the others are compared with. By default all pairs are compared."""
    editions: Annotated[str | None, NO_DEFAULT] = None
    """Editions of the final evaluation, joined by commas. By default that of the training."""
    episodes: Annotated[int | None, NO_DEFAULT] = None
    """Games per red of each evaluation. By default 1000."""
    policy: Annotated[str | None, arg(metavar="{best,last}"), NO_DEFAULT] = None
    """Policy that is scored: the best of the periodic evaluations (default), or the last."""
    env: EnvFlags = field(default_factory=EnvFlags)
    ppo: StudyPpoFlags = field(default_factory=StudyPpoFlags)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    order: OrderFlags = field(default_factory=OrderFlags)
    run: StudyRunFlags = field(default_factory=StudyRunFlags)
    preset: Annotated[
        str | None,
        arg(metavar=f"{{{','.join(PRESETS)}}}", help="Preset. Other flags override it."),
        NO_DEFAULT,
    ] = None
    out: Annotated[Path | None, NO_DEFAULT] = None
    """Folder of the study. By default runs/ and the name of the file, or the current time."""
    jobs: Annotated[int | None, NO_DEFAULT] = None
    """Trainings at a time, each in a process with one thread. By default one per core."""
    allow_code: Annotated[
        UseAppendAction[tuple[str, ...]], arg(metavar="MODULE:NAME"), NO_DEFAULT
    ] = ()
    """Code that the file or folder names and that may be called. May be repeated."""
    methods: Annotated[Path | None, arg(metavar="FOLDER"), NO_DEFAULT] = None
    """Print the paragraph that describes the protocol of the study in this folder for a paper."""
    ray_address: Annotated[str | None, arg(help=RAY_ADDRESS_HELP), NO_DEFAULT] = None


def parse_study(arguments: Sequence[str]) -> Study:
    """Parse the flags; those of --preset are the defaults of the others."""
    preset = read_early(arguments, "preset").preset
    return parse(Study, "cagepool study", arguments, _defaults(preset))


def _defaults(preset: str | None) -> Study:
    with flag_errors():
        config = TrainConfig.from_dict(preset_settings(preset) if preset else {})
    flags = group_flags(config)
    flags["run"] = StudyRunFlags(**vars(config.run))
    flags["ppo"] = StudyPpoFlags(**{**vars(config.ppo), "threads": 1})
    return Study(**flags)


def study(command: Study) -> None:
    """Run or resume a study and print its results, or print its methods paragraph."""
    if command.methods is not None:
        print(printable(read_results(command.methods).methods))
        return
    if command.jobs is not None and command.jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {command.jobs}")
    with _optional.require("a study", "study", *LIBRARIES):
        path, definition = _open(command)
        with ray_connection(command.env, command.ray_address):
            _run(command, path, definition)


def _open(command: Study) -> tuple[Path, StudyFile]:
    """Folder and settings of the study, new or to be resumed."""
    from cagepool.study.study import create_or_open  # noqa: PLC0415 - loads SciPy

    definition = _definition(command)
    _allow_code(definition, command)
    folder = command.study if command.study and command.study.is_dir() else None
    path = folder or command.out or Path("runs") / _default_name(command)
    create_or_open(path, definition)
    return path, definition


def _definition(command: Study) -> StudyFile:
    from cagepool.study import config as settings  # noqa: PLC0415 - loads SciPy
    from cagepool.study.study import read_study_file  # noqa: PLC0415

    if command.study is None:
        protocol = _protocol(command, {"seeds": first_seeds(DEFAULT_SEEDS)})
        vary = settings.parse_vary(command.vary)
        with flag_errors():
            return settings.make_study(command.settings(), protocol, vary=vary)
    changed = _changed_settings(command)
    if command.study.is_dir():
        flags = ("baseline", "editions", "episodes", "policy", "out")
        if given := [*(name for name in flags if getattr(command, name)), *changed]:
            raise ValueError(f"a resumed study keeps its settings, got {', '.join(given)}")
        read = read_study_file(command.study)
    else:
        if changed:
            raise ValueError(
                f"a file defines the settings of its study, got flags too: {', '.join(changed)}"
            )
        read = settings.read_study(command.study)
    known = {name: getattr(read.protocol, name) for name in read.protocol.__struct_fields__}
    with flag_errors():
        return settings.with_protocol(read, _protocol(command, known))


def _protocol(command: Study, known: dict[str, Any]) -> StudyProtocol:
    """The protocol with the values of flags where they are given."""
    flags = {
        "seeds": None if command.seeds is None else first_seeds(command.seeds),
        "baseline": command.baseline,
        "editions": command.editions.split(",") if command.editions else None,
        "episodes": command.episodes,
        "policy": command.policy,
    }
    if command.policy not in (None, "best", "last"):
        raise ValueError(f"policy must be best or last, got {command.policy!r}")
    return StudyProtocol(
        **known | {name: value for name, value in flags.items() if value is not None}
    )


def _changed_settings(command: Study) -> list[str]:
    """Names of the flags that change settings."""
    default = _defaults(None).settings()
    changed = [
        f"{group}.{name}"
        for group, values in command.settings().items()
        for name, value in values.items()
        if value != default[group][name] and name not in ("backend", "ray_actors")
    ]
    return [*(name for name in ("vary", "preset") if getattr(command, name)), *changed]


def _code(definition: StudyFile) -> list[str]:
    """Code that the settings name, each once."""
    every = [code for one in definition.settings.values() for _, code in named_code(one)]
    return [*dict.fromkeys(every)]


def _allow_code(definition: StudyFile, command: Study) -> None:
    """Let runs find modules in this folder; code that a file or folder names must be allowed."""
    for code in _code(definition):
        if command.study is not None and code not in command.allow_code:
            raise ValueError(
                f"{command.study} names code to be called, {code}: if you trust it, add "
                f"--allow-code {shlex.quote(code)}"
            )
        allow_local_modules(code)


def _default_name(command: Study) -> str:
    if command.study is not None:
        return command.study.stem
    return f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-study"


def _run(command: Study, path: Path, definition: StudyFile) -> None:
    from cagepool.study.config import list_trainings  # noqa: PLC0415 - loads SciPy
    from cagepool.study.study import is_complete, run_study  # noqa: PLC0415

    console = CommandConsole()
    console.print(f"study folder: {path}", soft_wrap=True)
    tasks = list_trainings(path, definition)
    complete = [task for task in tasks if is_complete(task)]
    budget = sum(task.episodes for task in tasks)
    done = f", {len(complete)} of them complete" if complete else ""
    console.print(f"{len(tasks)} runs{done}; {budget:,} training episodes in total")
    with (
        stop_on_interrupt(console) as should_stop,
        StudyDisplay(console, tasks, complete) as display,
    ):
        all_complete, results = run_study(
            path, display, should_stop, jobs=command.jobs, on_ray=command.env.backend == "ray"
        )
    _print_results(console, results)
    allowed = (part for code in _code(definition) for part in ("--allow-code", code))
    hint = f"resume with: {command_line('study', path, *allowed)}"
    if results.failures:
        for name, message in results.failures.items():
            console.print(f"failed: {name}: {message}", soft_wrap=True)
        console.print(f"{len(results.failures)} runs failed; {hint}", soft_wrap=True)
        raise SystemExit(EXIT_FAILURE)
    if not all_complete:
        console.print(f"stopped; {hint}", soft_wrap=True)
        raise KeyboardInterrupt
    console.print(f"write a report with: {command_line('report', path)}", soft_wrap=True)


def _print_results(console: CommandConsole, results: ResultsFile) -> None:
    for edition in results.editions:
        console.print(f"edition {edition.edition}, total of the nine cells:")
        width = max(len(setting.name) for setting in edition.settings)
        header = f"{'':{width}}  seeds  {'IQM [95 % interval]':>26}  {'mean':>7}  {'SD':>6}"
        console.print(header, soft_wrap=True)
        for setting in edition.settings:
            iqm = setting.statistics["iqm"]
            score = f"{iqm.estimate:.1f} [{iqm.low:.1f}, {iqm.high:.1f}]"
            mean = f"{setting.statistics['mean'].estimate:.1f}"
            deviation = f"{setting.standard_deviation:.1f}"
            numbers = f"{len(setting.seeds):>5}  {score:>26}  {mean:>7}  {deviation:>6}"
            console.print(f"{setting.name:{width}}  {numbers}", soft_wrap=True)
        clear = [one for one in edition.comparisons if one.verdict != "unclear"]
        shown = edition.comparisons if len(edition.comparisons) <= MOST_COMPARISONS else clear
        for comparison in shown:
            console.print(comparison.sentence, soft_wrap=True)
        left_out = len(edition.comparisons) - len(shown)
        if left_out:
            console.print(f"{left_out} comparisons that cannot tell are in results.json only")
    for found in results.convergence:
        console.print(found.sentence, soft_wrap=True)
