"""`cagepool study`: train settings from many seeds, score them on the same games, compare."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Fixed, Positional, UseAppendAction, arg

from cagepool import _optional
from cagepool.cli import EXIT_FAILURE
from cagepool.cli.args import (
    NO_DEFAULT,
    RAY_ADDRESS_HELP,
    EnvFlags,
    OrderFlags,
    PpoFlags,
    RunFlags,
    allow_local_modules,
    check_named_code,
    flag_errors,
    group_flags,
    parse,
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
from cagepool.sim.features import FeatureConfig
from cagepool.train.config import TrainConfig
from cagepool.train.presets import PRESETS, preset_settings

if TYPE_CHECKING:  # loads SciPy
    from cagepool.study.executors import StudyExecutor

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
class Study:
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
    methods: Annotated[Path | None, arg(metavar="FOLDER"), NO_DEFAULT] = None
    """Print the paragraph that describes the protocol of the study in this folder for a paper."""
    ray_address: Annotated[str | None, arg(help=RAY_ADDRESS_HELP), NO_DEFAULT] = None

    def settings(self) -> dict[str, dict[str, Any]]:
        """Settings by group, unchecked."""
        groups = ("env", "ppo", "features", "order", "run")
        return {group: dict(vars(getattr(self, group))) for group in groups}


def parse_study(arguments: Sequence[str]) -> Study:
    """Parse the flags; those of --preset are the defaults of the others.

    Raises:
        ValueError: a flag or the preset is unknown.
    """
    return parse(Study, "cagepool study", arguments, _defaults(_preset_of(arguments)))


def _preset_of(arguments: Sequence[str]) -> str | None:
    for number, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name == "--preset":
            return value or next(iter(arguments[number + 1 :]), None)
    return None


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
        print(read_results(command.methods).methods)
        return
    if command.jobs is not None and command.jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {command.jobs}")
    with _optional.require("a study", "study", *LIBRARIES):
        path, definition = _open(command)
        with ray_connection(command.env, command.ray_address):
            _run(command, path, definition)


def _open(command: Study) -> tuple[Path, StudyFile]:
    """Folder and settings of the study, new or to be resumed."""
    from cagepool.study.folder import create_or_open, read_study_file  # noqa: PLC0415

    if command.study is not None and command.study.is_dir():
        _refuse_changes(command)
        definition = _with_flags(command, read_study_file(command.study))
        _allow_code(definition, trusted=False)
        create_or_open(command.study, definition)
        return command.study, definition
    definition = _definition(command)
    _allow_code(definition, trusted=True)
    path = command.out or Path("runs") / _default_name(command)
    create_or_open(path, definition)
    return path, definition


def _definition(command: Study) -> StudyFile:
    from cagepool.study.config import make_study, parse_vary, read_study  # noqa: PLC0415

    if command.study is None:
        protocol = _protocol(command, {"seeds": first_seeds(DEFAULT_SEEDS)})
        vary = parse_vary(command.vary)
        with flag_errors():
            return make_study(command.settings(), protocol, vary=vary)
    if command.vary or _changed_settings(command):
        given = ", ".join((*(["vary"] if command.vary else []), *_changed_settings(command)))
        raise ValueError(f"a file defines the settings of its study, got flags too: {given}")
    read = read_study(command.study)
    return _with_flags(command, read)


def _with_flags(command: Study, read: StudyFile) -> StudyFile:
    """A study with the values of flags in its protocol."""
    from cagepool.study.config import with_protocol  # noqa: PLC0415 - loads SciPy

    known = {name: getattr(read.protocol, name) for name in read.protocol.__struct_fields__}
    with flag_errors():
        return with_protocol(read, _protocol(command, known))


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
    """Names of the settings that flags change."""
    default = _defaults(None).settings()
    changed = [
        f"{group}.{name}"
        for group, values in command.settings().items()
        for name, value in values.items()
        if value != default[group][name] and name not in ("backend", "ray_actors")
    ]
    return [*changed, *(["preset"] if command.preset else [])]


def _refuse_changes(command: Study) -> None:
    flags = ("vary", "baseline", "editions", "episodes", "policy", "out")
    given = [name for name in flags if getattr(command, name)] + _changed_settings(command)
    if given:
        raise ValueError(f"a resumed study keeps its settings, got {', '.join(given)}")


def _allow_code(definition: StudyFile, *, trusted: bool) -> None:
    """Let runs find modules in this folder; code that a stranger's folder names is refused."""
    for settings in definition.settings.values():
        if not trusted:
            check_named_code(settings, [], "the folder")
        env, ppo = settings["env"], settings["ppo"]
        allow_local_modules(env["id"], env["reward"], ppo["network"])


def _default_name(command: Study) -> str:
    if command.study is not None:
        return command.study.stem
    return f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-study"


def _run(command: Study, path: Path, definition: StudyFile) -> None:
    from cagepool.study.folder import list_tasks, task_scores  # noqa: PLC0415 - loads SciPy
    from cagepool.study.study import run_study  # noqa: PLC0415

    # OpenMP threads that spin-wait would take the cores from other trainings.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    console = CommandConsole()
    console.print(f"study folder: {path}", soft_wrap=True)
    executor = _make_executor(command, path, definition)
    tasks = list_tasks(path, definition)
    complete = [task for task in tasks if task_scores(task).final]
    budget = sum(task.episodes for task in tasks)
    done = f", {len(complete)} of them complete" if complete else ""
    console.print(f"{len(tasks)} runs{done}; {budget:,} training episodes in total")
    with (
        stop_on_interrupt(console) as should_stop,
        StudyDisplay(console, tasks, complete) as display,
    ):
        is_complete, results = run_study(path, definition, executor, display, should_stop)
    _print_results(console, results)
    hint = f"resume with: cagepool study {shlex.quote(str(path))}"
    if results.failures:
        for name, message in results.failures.items():
            console.print(f"failed: {name}: {message}", soft_wrap=True)
        console.print(f"{len(results.failures)} runs failed; {hint}", soft_wrap=True)
        raise SystemExit(EXIT_FAILURE)
    if not is_complete:
        console.print(f"stopped; {hint}", soft_wrap=True)
        raise KeyboardInterrupt
    console.print(f"write a report with: {command_line('report', path)}", soft_wrap=True)


def _make_executor(command: Study, path: Path, definition: StudyFile) -> "StudyExecutor":
    from cagepool.study.executors import (  # noqa: PLC0415 - loads SciPy
        ProcessExecutor,
        RayStudyExecutor,
        default_jobs,
    )

    if command.env.backend == "ray":
        return RayStudyExecutor(path, definition, command.jobs or default_jobs())
    return ProcessExecutor(path, command.jobs)


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
