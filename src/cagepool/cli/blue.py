"""Who plays blue, by what a user types: ours, scripted ones, and policies of other libraries."""

from pathlib import Path

from cagepool.evaluate.defenders import SCRIPTED
from cagepool.evaluate.resolve import Contender, contender

CHECKPOINT = "rllib_checkpoint.json"  # a file in all checkpoints that RLlib writes


def chosen(name: str, which: str = "best") -> Contender:
    """The scripted defender of that name, or the policy in that folder.

    Raises:
        ValueError: it is neither, or the folder cannot be read, or is of another environment.
    """
    folder = Path(name)
    if name in SCRIPTED or not (folder / CHECKPOINT).is_file():
        return contender(name, which)
    # Imported late: RLlib takes seconds to load.
    from cagepool.integrations.rllib import checkpoint  # noqa: PLC0415

    return checkpoint.contender(folder)
