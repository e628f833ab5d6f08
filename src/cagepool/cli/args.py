"""Parsing of command-line flags: grouped settings, choices, and errors that name flags."""

import argparse
import io
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import tyro
from tyro.conf import arg, subcommand
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from cagepool._lookup import suggestion
from cagepool.policy.defenders import SCRIPTED, Defender
from cagepool.policy.load import load, zoo_names
from cagepool.sim.names import MIX, OFFICIAL_REDS, TRAINABLE_REDS
from cagepool.train.config import (
    EnvConfig,
    OrderConfig,
    PpoConfig,
    RunConfig,
    Settings,
    TrainConfig,
)

# A flag without a default value has no value `None` on the command line.
FLAGS = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
# Flags of nested settings are flat.
NESTED_FLAGS = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone, tyro.conf.SuppressFixed)
POSITIONAL_MARKER = get_args(tyro.conf.Positional[str])[1]
NO_DEFAULT = arg(help_behavior_hint="")  # the help of the flag says what happens without it
EDITION_HELP = (
    "2.1: the CybORG release that is installed today. leaderboard: the release behind the "
    "published scores. Default: the edition of the run's training, else 2.1."
)
RED_CHOICES = f"{{{','.join((MIX, *TRAINABLE_REDS))}}}[+...]"
RED_LIST = f"{{{','.join(OFFICIAL_REDS)}}} ..."
RAY_ADDRESS_HELP = (
    "With --backend ray: host:port of the head of a Ray cluster, or auto for the cluster on this "
    "machine. Default: RAY_ADDRESS, else a new local cluster."
)
BLUE_HELP = (
    f"Defender: a run folder; {', '.join(zoo_names())} (trained policies that come with cagepool); "
    f"{', '.join(SCRIPTED)} (scripted); module:policy (a function of yours); a model file of "
    "Stable-Baselines3 (.zip) or ONNX (.onnx); or an RLlib checkpoint."
)
NETWORK_HELP = (
    "module:Class of a run with a network of its own: code that a run folder names is called only "
    "if you name it too."
)
TRUST_PICKLE_HELP = (
    "Load a policy that consists of pickles: an RLlib checkpoint, or a .zip of Stable-Baselines3. "
    "Loading executes code of its author. Other policies need no trust."
)

Command = TypeVar("Command")


class Unchecked:
    """Mixin that defers the checks of settings to the configuration that is made of them."""

    def __post_init__(self) -> None:
        """Skip the checks."""


@dataclass(frozen=True, kw_only=True)
class EnvFlags(Unchecked, EnvConfig):
    """Environments: the game and where it runs."""

    id: Annotated[str, arg(name="env")] = EnvConfig.id
    red_agent: Annotated[str, arg(metavar=RED_CHOICES)] = EnvConfig.red_agent
    reward: Annotated[str | None, NO_DEFAULT] = EnvConfig.reward
    lengths: Annotated[str | None, NO_DEFAULT] = EnvConfig.lengths


@dataclass(frozen=True, kw_only=True)
class PpoFlags(Unchecked, PpoConfig):
    """PPO hyper-parameters, under the names of Stable-Baselines3, and the networks."""

    overlap: Annotated[bool, arg(name="async")] = PpoConfig.overlap
    start_bias: Annotated[str | None, NO_DEFAULT] = PpoConfig.start_bias


@dataclass(frozen=True, kw_only=True)
class OrderFlags(Unchecked, OrderConfig):
    """Workflow order: alignment reward, compliance and early stopping."""

    order: Annotated[str | None, NO_DEFAULT] = OrderConfig.order
    n_eval_episodes: Annotated[int, arg(name="order-eval-episodes")] = OrderConfig.n_eval_episodes


@dataclass(frozen=True, kw_only=True)
class RunFlags(Unchecked, RunConfig):
    """Run: length, seed, evaluations and checkpoints."""

    start_from: Annotated[str | None, NO_DEFAULT] = RunConfig.start_from
    target_score: Annotated[float | None, NO_DEFAULT] = RunConfig.target_score


class GroupedFlags:
    """A command whose flags include groups of settings."""

    def settings(self) -> dict[str, dict[str, Any]]:
        """Settings by group, as typed."""
        groups = ("env", "ppo", "features", "order", "run", "search")
        return {group: dict(vars(getattr(self, group))) for group in groups if hasattr(self, group)}


def read_early(arguments: Sequence[str], *flags: str) -> argparse.Namespace:
    """Values of the flags that decide the defaults of others."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in flags:
        parser.add_argument(f"--{flag}", nargs="?")
    return parser.parse_known_args(arguments)[0]


def group_flags(config: TrainConfig) -> dict[str, Any]:
    """Groups of flags with the values of a configuration."""
    return {
        "env": EnvFlags(**vars(config.env)),
        "ppo": PpoFlags(**vars(config.ppo)),
        "features": config.features,
        "order": OrderFlags(**vars(config.order)),
        "run": RunFlags(**vars(config.run)),
    }


def parse(
    command: type[Command], prog: str, arguments: Sequence[str], default: Command | None = None
) -> Command:
    """Parse the flags of a command: a dataclass of flags, or of groups of them with a default."""
    arguments = _rename_flags(command, arguments)
    errors = io.StringIO()
    try:
        with redirect_stderr(errors):
            result = _call_tyro(command, prog, arguments, default)
    except SystemExit as exit_:
        if exit_.code:
            check_flags(arguments, _known_flags(command, prog, default), prog)
        sys.stderr.write(errors.getvalue())
        raise
    _check_choices(result)
    return result


def print_overview(commands: Mapping[str, type[Any]]) -> NoReturn:
    """Print the help of the `cagepool` command, and exit."""
    summaries = tuple(
        Annotated[flags, subcommand(name, description=(flags.__doc__ or "").partition("\n\n")[0])]
        for name, flags in commands.items()
    )
    any_command: Any = Union[summaries]  # noqa: UP007 - a union of computed types
    tyro.cli(
        any_command,
        prog="cagepool",
        description="Train, evaluate and benchmark defenders of CAGE Challenge 2. "
        "--version prints the version.",
        args=["--help"],
    )
    raise SystemExit(0)


def check_flags(arguments: Sequence[str], known: Iterable[str], prog: str) -> None:
    """Raise a ValueError that suggests the nearest flag if an argument is an unknown flag."""
    known = {*known}
    for argument in arguments:
        flag = argument.partition("=")[0].replace("_", "-")
        if flag == "--":
            return
        if flag.startswith("--") and flag not in known:
            hint = suggestion(flag, known) or f"; {prog} --help lists the flags"
            raise ValueError(f"unknown flag {flag}{hint}")


def allow_local_modules(*settings: object) -> None:
    """Put the current folder on the module search path if a setting is `module:attribute`.

    The script `cagepool`, unlike `python -m cagepool`, lacks the current folder. Worker processes
    get the same path.
    """
    folder = str(Path.cwd())
    names_module = any(isinstance(value, str) and ":" in value for value in settings)
    if names_module and not {"", folder} & {*sys.path}:
        sys.path.insert(0, folder)


def check_named_code(settings: Settings, arguments: Sequence[str], source: str) -> None:
    """Check that code which a file names is named on the command line too.

    The settings in a stranger's run folder, `source`, could otherwise call any function.
    """
    for name, code in named_code(settings):
        if not any(argument in (code, f"{flag_of(name)}={code}") for argument in arguments):
            raise ValueError(
                f"{source} names code to be called, {code}: if you trust it, add "
                f"{flag_of(name)} {shlex.quote(code)}"
            )


def resume_command(command: str, path: Path, settings: Settings) -> str:
    """The command that resumes a run or a search, fit for a shell."""
    code = (f" {flag_of(name)} {shlex.quote(code)}" for name, code in named_code(settings))
    return f"cagepool {command} --resume {shlex.quote(str(path))}{''.join(code)}"


def named_code(settings: Settings) -> list[tuple[str, str]]:
    """Settings that are `module:attribute`."""
    names = ("env.id", "env.reward", "ppo.network")
    values = ((name, *name.split(".")) for name in names)
    code = ((name, str(settings.get(group, {}).get(key))) for name, group, key in values)
    return [(name, value) for name, value in code if ":" in value]


def resolve_blue(
    name: str, which: str = "best", *, trust_pickle: bool, network: str | None = None
) -> Defender:
    """The defender that a user names; see `BLUE_HELP` and `cagepool.policy.load`."""
    allow_local_modules(name, network)
    return load(name, which, network=network, trust_pickle=trust_pickle)


def _rename_flags(command: type[Any], arguments: Sequence[str]) -> list[str]:
    """Accept --red and --red-agent, --n-envs and --num-envs alike: a command shows one of them."""
    has_red = "red" in {field.name for field in fields(command)}
    reds = ("--red", "--red-agent") if has_red else ("--red-agent", "--red")
    renamed = [*arguments]
    for shown, other in (reds, ("--n-envs", "--num-envs")):
        pattern = re.compile(f"^{other}(?==|$)")
        if any(map(pattern.match, renamed)) and any(
            re.match(f"{shown}(=|$)", argument) for argument in renamed
        ):
            raise ValueError(f"{shown} must be given once, got {shown} and {other}")
        renamed = [pattern.sub(shown, argument) for argument in renamed]
    return renamed


def _call_tyro(
    command: type[Command], prog: str, arguments: Sequence[str], default: Command | None
) -> Command:
    registry = choices_registry()
    if default is None:
        return tyro.cli(command, prog=prog, args=arguments, config=FLAGS, registry=registry)
    return tyro.cli(
        command,
        prog=prog,
        args=arguments,
        default=default,
        config=NESTED_FLAGS,
        registry=registry,
    )


def _known_flags(command: type[Command], prog: str, default: Command | None) -> set[str]:
    """All flags of a command, from its help."""
    text = io.StringIO()
    with redirect_stdout(text), suppress(SystemExit):
        _call_tyro(command, prog, ["--help"], default)
    return {*re.findall(r"--[a-z][a-z0-9-]*", text.getvalue())}


def _check_choices(settings: Any) -> None:
    types = get_type_hints(type(settings))
    annotations = get_type_hints(type(settings), include_extras=True)
    for name, value in vars(settings).items():
        choices = [*_choices(types[name])]
        if is_dataclass(value):
            _check_choices(value)
        elif choices and value is not None and value not in choices:
            is_positional = POSITIONAL_MARKER in get_args(annotations[name])
            label = name if is_positional else f"--{name.replace('_', '-')}"
            known = f"{label} must be one of {', '.join(choices)}"
            raise ValueError(f"{known}; got {value!r}{suggestion(value, choices)}")


@contextmanager
def field_errors(command: type[Any]) -> Iterator[None]:
    """Replace the field of a command, such as `max_steps`, by its flag in a ValueError."""
    annotations = get_type_hints(command, include_extras=True)
    flags = [
        field.name
        for field in fields(command)
        if POSITIONAL_MARKER not in get_args(annotations[field.name])
    ]
    try:
        yield
    except ValueError as error:
        sentence = re.sub(
            rf"^({'|'.join(flags)})(?= must | needs | takes )",
            lambda found: "--" + found[0].replace("_", "-"),
            str(error),
        )
        if sentence == str(error):
            raise
        raise ValueError(sentence) from error


@contextmanager
def flag_errors(kind: type[TrainConfig] = TrainConfig) -> Iterator[None]:
    """Replace settings, such as `env.n_envs`, by flags, such as `--n-envs`, in a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(_with_flags(str(error), kind)) from error


def flag_of(setting: str, kind: type[TrainConfig] = TrainConfig) -> str:
    """Flag of a setting, which is given as group.name."""
    flags = {f"{group}.{name}": flat for flat, (group, name) in kind.flat_names().items()}
    flags["ppo.overlap"] = "async"
    return "--" + flags[setting].replace("_", "-")


def _with_flags(sentence: str, kind: type[TrainConfig]) -> str:
    settings = "|".join(f"{group}[.]{name}" for group, name in kind.flat_names().values())
    named = re.sub(rf"\b({settings})\b", lambda found: flag_of(found[0], kind), sentence)
    return re.sub(
        "^(env|preset|ray_address|reward)(?= )",
        lambda found: "--" + found[0].replace("_", "-"),
        named,
    )


def _choices(hint: Any) -> Iterator[str]:
    """Values of a Literal, or of the Literals in a union."""
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    elif get_origin(hint) in (Union, UnionType):
        for member in get_args(hint):
            yield from _choices(member)


def choices_registry() -> ConstructorRegistry:
    """Shows the choices of a Literal in the help; `_check_choices` checks them."""
    registry = ConstructorRegistry()

    @registry.primitive_rule
    def choices(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[str] | None:
        if get_origin(info.type) is not Literal:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=f"{{{','.join(get_args(info.type))}}}",
            instance_from_str=lambda values: values[0],
            is_instance=lambda value: isinstance(value, str),
            str_from_instance=lambda value: [value],
        )

    return registry
