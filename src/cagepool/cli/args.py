"""Parsing of command-line flags: grouped settings, choices, and errors that name flags."""

import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, is_dataclass
from difflib import get_close_matches
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

from cagepool.evaluate.defenders import SCRIPTED
from cagepool.evaluate.resolve import ResolvedPolicy, resolve_policy
from cagepool.train.config import (
    EnvConfig,
    OrderConfig,
    PpoConfig,
    RunConfig,
    TrainConfig,
)

# A flag without a default value has no value `None` on the command line.
FLAGS = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
# Flags of nested settings are flat.
NESTED_FLAGS = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)
POSITIONAL_MARKER = get_args(tyro.conf.Positional[str])[1]
NO_DEFAULT = arg(help_behavior_hint="")  # the help of the flag says what happens without it
EDITION_HELP = (
    "2.1: the CybORG release that is installed today. leaderboard: the release behind the "
    "published scores. Default: the edition of the run's training, else 2.1."
)
RAY_ADDRESS_HELP = (
    "With --backend ray: host:port of the head of a Ray cluster, or auto for the cluster on this "
    "machine. Default: RAY_ADDRESS, else a new local cluster."
)
RLLIB_CHECKPOINT = "rllib_checkpoint.json"  # in every checkpoint folder of RLlib

Command = TypeVar("Command")


class Unchecked:
    """Mixin that defers the checks of settings to the configuration that is made of them."""

    def __post_init__(self) -> None:
        """Skip the checks."""


@dataclass(frozen=True, kw_only=True)
class EnvFlags(Unchecked, EnvConfig):
    """Environments: the game and where it runs."""

    id: Annotated[str, arg(name="env")] = EnvConfig.id


@dataclass(frozen=True, kw_only=True)
class PpoFlags(Unchecked, PpoConfig):
    """PPO hyper-parameters, under the names of Stable-Baselines3, and the networks."""

    overlap: Annotated[bool, arg(name="async")] = PpoConfig.overlap


@dataclass(frozen=True, kw_only=True)
class OrderFlags(Unchecked, OrderConfig):
    """Workflow order: alignment reward, compliance and early stopping."""

    order: Annotated[str | None, NO_DEFAULT] = OrderConfig.order
    n_eval_episodes: Annotated[int, arg(name="order-eval-episodes")] = OrderConfig.n_eval_episodes


@dataclass(frozen=True, kw_only=True)
class RunFlags(Unchecked, RunConfig):
    """Run: length, seed, evaluations and checkpoints."""

    start_from: Annotated[str | None, NO_DEFAULT] = RunConfig.start_from


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
    """Parse the flags of a command.

    Args:
        command: Dataclass with one field per flag, or with groups of flags.
        prog: Name of the command in the help.
        arguments: Arguments after the name of the command.
        default: Default values of a command that has groups of flags.

    Raises:
        ValueError: a flag is unknown, or a value is not one of the choices.
        SystemExit: the arguments can't be parsed otherwise, or ask for help.
    """
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


def suggestion(given: str, choices: Iterable[str]) -> str:
    """The nearest of the choices as the end of a sentence; empty if none is similar."""
    nearest = get_close_matches(given, [*choices], n=1)
    return f", did you mean {nearest[0]}?" if nearest else ""


def resolve_blue(name: str, which: str = "best") -> ResolvedPolicy:
    """Scripted defender of that name, or policy in that run folder or RLlib checkpoint.

    Raises:
        ValueError: there is no such defender, or the folder holds no policy for CAGE-2.
    """
    if name in SCRIPTED or not (Path(name) / RLLIB_CHECKPOINT).is_file():
        return resolve_policy(name, which)
    from cagepool.integrations import rllib  # noqa: PLC0415 - takes seconds to load

    return rllib.resolve_checkpoint(Path(name))


def _call_tyro(
    command: type[Command], prog: str, arguments: Sequence[str], default: Command | None
) -> Command:
    registry = _choices_registry()
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
        "^(preset|ray_address)(?= )", lambda found: "--" + found[0].replace("_", "-"), named
    )


def _choices(hint: Any) -> Iterator[str]:
    """Values of a Literal, or of the Literals in a union."""
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    elif get_origin(hint) in (Union, UnionType):
        for member in get_args(hint):
            yield from _choices(member)


def _choices_registry() -> ConstructorRegistry:
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
