"""Flags of the command line: settings by group, choices, and errors that name flags."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import tyro
from tyro.conf import arg
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from cagepool.train.config import (
    EnvConfig,
    OrderConfig,
    PpoConfig,
    RunConfig,
    TrainConfig,
)

FLAGS = (tyro.conf.FlagCreatePairsOff,)
# Flags of nested settings are flat, and a flag that has no value by default takes no None.
NESTED_FLAGS = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)

Command = TypeVar("Command")


class Unchecked:
    """Settings as typed; the configuration made of them is checked, with errors like all others."""

    def __post_init__(self) -> None:
        """Check nothing."""


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

    n_eval_episodes: Annotated[int, arg(name="order-eval-episodes")] = OrderConfig.n_eval_episodes


@dataclass(frozen=True, kw_only=True)
class RunFlags(Unchecked, RunConfig):
    """Run: length, seed, evaluations and checkpoints."""


def group_flags(config: TrainConfig) -> dict[str, Any]:
    """The groups of a training's configuration, as flags."""
    return {
        "env": EnvFlags(**vars(config.env)),
        "ppo": PpoFlags(**vars(config.ppo)),
        "features": config.features,
        "order": OrderFlags(**vars(config.order)),
        "run": RunFlags(**vars(config.run)),
    }


def parse(command: type[Command], prog: str, arguments: Sequence[str], default: Command) -> Command:
    """Parse the flags of a command with nested settings.

    Raises:
        SystemExit: they cannot be parsed, or ask for help.
    """
    return tyro.cli(
        command,
        prog=prog,
        args=arguments,
        default=default,
        config=NESTED_FLAGS,
        registry=_choices_registry(),
    )


@contextmanager
def flag_errors(kind: type[TrainConfig] = TrainConfig) -> Iterator[None]:
    """Let a ValueError about settings, such as `env.n_envs`, speak of flags, such as `--n-envs`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(_with_flags(str(error), kind)) from error


def flag_of(setting: str, kind: type[TrainConfig] = TrainConfig) -> str:
    """The flag of a setting that is given as group.name."""
    flags = {f"{group}.{name}": flat for flat, (group, name) in kind.flat_names().items()}
    flags["ppo.overlap"] = "async"
    return "--" + flags[setting].replace("_", "-")


def _with_flags(sentence: str, kind: type[TrainConfig]) -> str:
    settings = "|".join(f"{group}[.]{name}" for group, name in kind.flat_names().values())
    named = re.sub(rf"\b({settings})\b", lambda found: flag_of(found[0], kind), sentence)
    return re.sub(
        "^(preset|ray_address)(?= )", lambda found: "--" + found[0].replace("_", "-"), named
    )


def _choices_registry() -> ConstructorRegistry:
    """Shows the choices of a closed set in the help, and leaves the check to the configuration."""
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
