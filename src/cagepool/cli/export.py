"""`cagepool export`: write a policy to a folder that can be shared."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cagepool.cli.args import NETWORK_HELP, NO_DEFAULT, allow_local_modules
from cagepool.cli.display import CommandConsole, progress_bars
from cagepool.evaluate import protocol
from cagepool.share.export import ExportOptions, export_run
from cagepool.sim.names import OFFICIAL_REDS


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write the best policy of a run to a folder to share: weights, ONNX, scores, model card.

    The folder is a run folder, which `cagepool.load` and `cagepool evaluate` take, with a model
    card that Hugging Face's hub reads.
    """

    run: Annotated[Positional[str], arg(metavar="RUN", help="Run folder, or zoo:NAME.")]
    folder: Annotated[
        Positional[Path], arg(metavar="FOLDER", help="Folder to write: a new or an empty one.")
    ]
    name: Annotated[str | None, NO_DEFAULT] = None
    """Name of the policy in the model card. Default: the name of the folder."""
    license: Annotated[str | None, NO_DEFAULT] = None
    """License in the model card, such as mit. Default: the card names none."""
    episodes: int = protocol.EPISODES
    """Games per red agent, played if the best policy of the run has not been evaluated yet."""
    network: Annotated[str | None, arg(help=NETWORK_HELP), NO_DEFAULT] = None


def export(command: Export) -> None:
    """Write the folder and print what it holds."""
    allow_local_modules(command.network)
    options = ExportOptions(
        network=command.network,
        episodes=command.episodes,
        name=command.name,
        license=command.license,
    )
    with progress_bars() as progress:
        bar = progress.add_task(
            "playing, native", total=command.episodes * len(OFFICIAL_REDS), visible=False
        )

        def show(games: float) -> None:
            progress.update(bar, advance=games, visible=True)

        folder = export_run(command.run, command.folder, options, show)
    console = CommandConsole()
    names = sorted(path.name for path in folder.iterdir())
    console.print(f"written to {folder}: {', '.join(names)}", soft_wrap=True)
    console.print(
        f"upload it with: hf upload NAME {shlex.quote(str(folder))}", soft_wrap=True, markup=False
    )
