"""Who is evaluated: a scripted defender or the policy of a run, by what a user types."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cagepool import runs
from cagepool.evaluate.defenders import SCRIPTED, Defender, scripted_defender
from cagepool.evaluate.policy import CAGE_ENVS, Policy, PolicyDefender, load
from cagepool.sim.names import EDITIONS


@dataclass(frozen=True)
class Contender:
    """A defender, and what has to be said of it."""

    name: str
    defender: Defender
    kind: Literal["scripted", "policy"] = "scripted"
    run: Path | None = None  # folder of the run; none: not of a run of ours
    checkpoint: str | None = None  # such as best-000120
    trained_on: str | None = None  # edition
    order: str | None = None  # that it was trained to keep
    knowledge: Literal["true", "observed"] = "true"  # by which its keeping was judged
    definition: Literal["host", "seed"] = "host"  # the same

    def edition(self, wanted: str | None = None) -> str:
        """The edition to play: what is wanted, or that of the training, or today's."""
        return wanted or self.trained_on or next(iter(EDITIONS))

    def as_dict(self) -> dict[str, Any]:
        """What stands in `evaluation.json`."""
        return {
            "name": self.name,
            "kind": self.kind,
            "checkpoint": self.checkpoint,
            "trained_on": self.trained_on,
        }


def contender(name: str, which: str = "best") -> Contender:
    """The scripted defender of that name, or the policy of the run in that folder.

    Raises:
        ValueError: it is neither, or the run cannot be read, or is of another environment.
    """
    if name in SCRIPTED:
        return Contender(name, scripted_defender(name))
    if not Path(name).is_dir():
        raise ValueError(f"blue must be one of {', '.join(SCRIPTED)} or a run folder; got {name!r}")
    policy = load(name, which)
    try:
        return _trained(Path(name), policy, which)
    except KeyError as error:
        raise ValueError(f"{name} is damaged: its settings have no {error}") from error


def _trained(folder: Path, policy: Policy, which: str) -> Contender:
    settings = policy.settings
    if settings["env"]["id"] not in CAGE_ENVS:
        raise ValueError(f"a policy must be one for CAGE-2, that of {folder} is for another game")
    return Contender(
        name=folder.resolve().name,
        defender=PolicyDefender(policy),
        kind="policy",
        run=folder,
        checkpoint=_checkpoint(runs.open_run(folder), which),
        trained_on=settings["env"]["edition"],
        order=settings["order"]["order"],
        knowledge=settings["order"]["knowledge"],
        definition=settings["order"]["definition"],
    )


def _checkpoint(run: runs.Run, which: str) -> str:
    """Name of the checkpoint that `load` takes: the last one where there is no best yet."""
    kind = which if run.updates_of(which) else "last"
    return f"{kind}-{run.updates_of(kind)[-1]:06d}"
