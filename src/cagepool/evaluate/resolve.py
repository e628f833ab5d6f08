"""Resolve the name that a user types to a policy: of ours, of the user, or in a file."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from cagepool import runs
from cagepool._lookup import is_reference, load_object, suggestion
from cagepool.evaluate import zoo
from cagepool.evaluate.defenders import SCRIPTED, Defender, scripted_defender
from cagepool.evaluate.load import checkpoint_kind, load
from cagepool.evaluate.policy import PolicyDefender
from cagepool.evaluate.policy_function import as_defender
from cagepool.sim.names import EDITIONS

RLLIB_CHECKPOINT = "rllib_checkpoint.json"  # in every checkpoint folder of RLlib


@dataclass(frozen=True)
class ResolvedPolicy:
    """A defender with its name and the settings that it was trained with."""

    name: str
    defender: Defender
    kind: Literal["scripted", "policy"] = "scripted"
    run: Path | None = None  # run folder; none for policies from elsewhere
    checkpoint: str | None = None  # such as best-000120
    trained_on: str | None = None  # edition
    scenario: str | None = None  # networks of the training; none: that of CAGE-2
    reward: str | None = None  # reward function of the training; none: the official reward
    order: str | None = None  # workflow order of the training
    knowledge: Literal["true", "observed"] = "true"  # of compliance in the training
    definition: Literal["host", "seed"] = "host"  # of compliance in the training

    def edition(self, requested: str | None = None) -> str:
        """The edition to play: the requested one, else that of the training, else the current."""
        return requested or self.trained_on or next(iter(EDITIONS))


def resolve_policy(name: str, which: str = "best", *, network: str | None = None) -> ResolvedPolicy:
    """The policy that a name stands for.

    Args:
        name: Run folder, `zoo:NAME`, ONNX file, `module:attribute` (see
            `policy_function.FunctionDefender`), or scripted defender.
        which: Checkpoint of a run folder, `best` or `last`.
        network: `module:Class` that the run folder names, to confirm that it may be called.

    Raises:
        ValueError: there is no such policy, it can't be read, or it is for another environment.
    """
    path = Path(name)
    check_which(path, which)
    if name in SCRIPTED:
        return ResolvedPolicy(name, scripted_defender(name))
    if name.startswith(zoo.PREFIX):
        return replace(_trained_policy(zoo.zoo_folder(name), which), name=name, run=None)
    if path.is_dir():
        return _trained_policy(path, which, network)
    if path.is_file():
        return ResolvedPolicy(path.name, _load_file(path), "policy")
    if is_reference(name):
        return ResolvedPolicy(name, as_defender(load_object(name, "policy"), name), "policy")
    known = (*SCRIPTED, *zoo.zoo_names())
    raise ValueError(
        f"a defender must be a run folder, a model file, module:policy, or one of "
        f"{', '.join(known)}; got {name!r}{suggestion(name, known)}"
    )


def _load_file(path: Path) -> Defender:
    if path.suffix != ".onnx":
        raise ValueError(f"a model file must be .onnx, or .zip of Stable-Baselines3, got {path}")
    from cagepool.evaluate.onnx_policy import load_onnx  # noqa: PLC0415 - an optional library

    return load_onnx(path)


def check_which(path: Path, which: str) -> None:
    """Raise ValueError if another checkpoint than the best is asked for where there is none."""
    if which != "best" and not runs.is_run(path):
        raise ValueError(f"only a run folder has a {which} checkpoint, got {str(path)!r}")


def is_rllib_checkpoint(path: Path) -> bool:
    """Whether a folder is an RLlib checkpoint; a run folder is none, whatever else it holds."""
    return (path / RLLIB_CHECKPOINT).is_file() and not runs.is_run(path)


def check_trust(path: Path, *, trust_pickle: bool) -> None:
    """Raise ValueError unless the user trusts a file or folder whose pickles would be loaded."""
    if not trust_pickle:
        raise ValueError(
            f"{path} contains pickles, and loading a pickle executes its code: pass "
            "--trust-pickle if you trust its author"
        )


def _trained_policy(folder: Path, which: str, network: str | None = None) -> ResolvedPolicy:
    policy = load(folder, which, network=network)
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
        scenario=settings.env.scenario,
        reward=settings.env.reward,
        order=settings.order.order,
        knowledge=settings.order.knowledge,
        definition=settings.order.definition,
    )


def _checkpoint_name(run: runs.Run, which: str) -> str:
    """Name of the checkpoint that `load` reads, such as best-000120."""
    kind = checkpoint_kind(run, which)
    return f"{kind}-{run.checkpoint_updates(kind)[-1]:06d}"
