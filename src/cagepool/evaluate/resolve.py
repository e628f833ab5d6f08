"""Resolve the name that a user types to a policy: a scripted defender or a run folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cagepool import runs
from cagepool.evaluate.defenders import SCRIPTED, Defender, scripted_defender
from cagepool.evaluate.policy import Policy, PolicyDefender, checkpoint_kind, load
from cagepool.sim.names import EDITIONS


@dataclass(frozen=True)
class ResolvedPolicy:
    """A defender with its name and the settings that it was trained with."""

    name: str
    defender: Defender
    kind: Literal["scripted", "policy"] = "scripted"
    run: Path | None = None  # run folder; none for policies from elsewhere
    checkpoint: str | None = None  # such as best-000120
    trained_on: str | None = None  # edition
    order: str | None = None  # workflow order of the training
    knowledge: Literal["true", "observed"] = "true"  # of compliance in the training
    definition: Literal["host", "seed"] = "host"  # of compliance in the training

    def edition(self, requested: str | None = None) -> str:
        """The edition to play: the requested one, else that of the training, else the current."""
        return requested or self.trained_on or next(iter(EDITIONS))


def resolve_policy(name: str, which: str = "best") -> ResolvedPolicy:
    """The scripted defender of that name, or the policy of the run in that folder.

    Raises:
        ValueError: the name is neither, the run cannot be read, or it is for another environment.
    """
    if name in SCRIPTED:
        return ResolvedPolicy(name, scripted_defender(name))
    if not Path(name).is_dir():
        raise ValueError(f"blue must be one of {', '.join(SCRIPTED)} or a run folder; got {name!r}")
    return _trained_policy(Path(name), load(name, which), which)


def _trained_policy(folder: Path, policy: Policy, which: str) -> ResolvedPolicy:
    settings = policy.settings
    if not settings.is_cage:
        raise ValueError(f"a policy must be one for CAGE-2, that of {folder} is for another game")
    return ResolvedPolicy(
        name=folder.resolve().name,
        defender=PolicyDefender(policy),
        kind="policy",
        run=folder,
        checkpoint=_checkpoint_name(runs.open_run(folder), which),
        trained_on=settings.env.edition,
        order=settings.order.order,
        knowledge=settings.order.knowledge,
        definition=settings.order.definition,
    )


def _checkpoint_name(run: runs.Run, which: str) -> str:
    """Name of the checkpoint that `load` reads, such as best-000120."""
    kind = checkpoint_kind(run, which)
    return f"{kind}-{run.checkpoint_updates(kind)[-1]:06d}"
