"""Settings that the environments take as keywords; `BatchConfig` says what each means."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypedDict, cast

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import DTypeLike

from cagepool.sim.batch import BatchConfig
from cagepool.types import Bools

Autoreset: TypeAlias = Literal["next_step", "same_step", "disabled"]
RenderMode: TypeAlias = Literal["ansi"]

METADATA: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}


class GameSettings(TypedDict, total=False):
    """What is played."""

    red: str | Sequence[str]
    edition: str | Sequence[str]
    max_steps: int | Sequence[int]
    green: bool | Sequence[bool]
    order: str | Sequence[str] | None
    alignment: float
    knowledge: Literal["true", "observed"]
    definition: Literal["host", "seed"]
    observation_dtype: DTypeLike


class VectorSettings(GameSettings, total=False):
    """What is played, and by how many threads."""

    threads: int


def single_config(settings: GameSettings) -> BatchConfig:
    """A batch of one, which the caller resets."""
    return BatchConfig(autoreset="disabled", threads=1, **settings)


def vector_config(autoreset: Autoreset | AutoresetMode, settings: VectorSettings) -> BatchConfig:
    """A batch that resets its games in a mode by our name or by Gymnasium's."""
    return BatchConfig(autoreset=mode_name(autoreset), **settings)


def mode_name(autoreset: Autoreset | AutoresetMode) -> Autoreset:
    """Our name of an autoreset mode."""
    if isinstance(autoreset, AutoresetMode):
        return cast("Autoreset", autoreset.name.lower())
    return autoreset


def check_render_mode(render_mode: str | None) -> None:
    """Refuse what we do not draw."""
    if render_mode not in (None, *METADATA["render_modes"]):
        raise ValueError(f"render_mode must be 'ansi' or None, got {render_mode!r}")


def reset_mask(mask: object, num_envs: int) -> Bools:
    """Which environments `reset` is about: those of Gymnasium's option, or all.

    Raises:
        ValueError: the option is not an array of Booleans that names one at least.
    """
    if mask is None:
        return np.ones(num_envs, np.bool_)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        form = f"{mask.dtype} of shape {mask.shape}" if isinstance(mask, np.ndarray) else repr(mask)
        raise ValueError(f"reset_mask must be an array of {num_envs} Booleans, got {form}")
    if not mask.any():
        raise ValueError("reset_mask must name at least one game, got none")
    return mask
