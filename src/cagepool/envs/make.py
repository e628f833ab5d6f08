"""The front door."""

from typing import Unpack

from gymnasium.vector import AutoresetMode

from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.settings import Autoreset, RenderMode, VectorSettings


def make_vec(
    num_envs: int,
    *,
    autoreset: Autoreset | AutoresetMode = "next_step",
    copy: bool = True,
    statistics: bool = True,
    render_mode: RenderMode | None = None,
    **settings: Unpack[VectorSettings],
) -> NativeVectorEnv:
    """Games of CAGE-2 as a Gymnasium vector environment.

    Args:
        num_envs: How many games.
        autoreset: When a game that is over starts anew.
        copy: Whether the caller owns what `reset` and `step` return; if not, the next call
            overwrites it.
        statistics: Whether infos hold return, length and seconds of the episodes that ended, as
            Gymnasium's RecordEpisodeStatistics gives them; that wrapper needs it to be off.
        render_mode: What `render` gives.
        settings: What is played and how, see `sim.BatchConfig`: `red`, `max_steps`, `edition`,
            `green`, `order`, `alignment`, `knowledge`, `definition`, `observation_dtype` and
            `threads`.

    Raises:
        ValueError: a setting is not one that the game knows.
    """
    return NativeVectorEnv(
        num_envs,
        autoreset=autoreset,
        copy=copy,
        statistics=statistics,
        render_mode=render_mode,
        **settings,
    )
