"""`cagepool record`: play a defender and write its games as a dataset of Minari."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cagepool import _optional
from cagepool.cli.args import (
    BLUE_HELP,
    EDITION_HELP,
    NETWORK_HELP,
    NO_DEFAULT,
    RED_CHOICES,
    TRUST_PICKLE_HELP,
    resolve_blue,
)
from cagepool.cli.display import CommandConsole, progress_bars
from cagepool.sim.names import MIX
from cagepool.sim.settings import DEFAULT_MAX_STEPS, Edition


@dataclass(frozen=True, kw_only=True)
class Record:
    """Play a defender and write its games as a dataset for offline RL, in Minari's format."""

    blue: Annotated[Positional[str], arg(metavar="DEFENDER", help=BLUE_HELP)]
    out: Annotated[Path, arg(metavar="FOLDER")]
    """Folder to write: a new or an empty one."""
    episodes: int = 1000
    """Games to play."""
    red: Annotated[str, arg(metavar=RED_CHOICES)] = MIX
    """Red agent. mix and several joined by + draw one per game."""
    max_steps: int = DEFAULT_MAX_STEPS
    """Steps per game."""
    edition: Annotated[Edition | None, arg(help=EDITION_HELP), NO_DEFAULT] = None
    seed: int = 0
    """Random seed of the games and of sampled actions."""
    sample: bool = False
    """Sample the actions of a trained policy instead of playing greedily."""
    dataset_id: Annotated[str | None, NO_DEFAULT] = None
    """Name of the dataset in Minari, such as cage2/mine-v0. Default: the name of the folder."""
    network: Annotated[str | None, arg(help=NETWORK_HELP), NO_DEFAULT] = None
    trust_pickle: Annotated[bool, arg(help=TRUST_PICKLE_HELP)] = False


def record(command: Record) -> None:
    """Record the games and print where they are."""
    blue = resolve_blue(command.blue, trust_pickle=command.trust_pickle, network=command.network)
    with _optional.require("a dataset", "minari", "minari", "h5py"):
        from cagepool.share.dataset import RecordOptions, record_dataset  # noqa: PLC0415

    options = RecordOptions(
        episodes=command.episodes,
        red=command.red,
        max_steps=command.max_steps,
        seed=command.seed,
        edition=command.edition,
        sample=command.sample,
        dataset_id=command.dataset_id,
    )
    with progress_bars() as progress:
        bar = progress.add_task("recording", total=command.episodes)
        folder = record_dataset(
            blue, command.out, options, lambda games: progress.advance(bar, games)
        )
    console = CommandConsole()
    console.print(f"{command.episodes} episodes written to {folder}", soft_wrap=True)
    console.print(f"read them with: minari.MinariDataset({str(folder / 'data')!r})", soft_wrap=True)
