"""Load the policy of a run: an MLP in NumPy, another network in PyTorch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cagepool import runs
from cagepool._lookup import is_reference
from cagepool._optional import MissingExtraError, require
from cagepool.evaluate import zoo
from cagepool.evaluate.policy import MLP, Policy, PolicySettings
from cagepool.types import Arrays


def load(run: str | Path, which: str = "best", *, network: str | None = None) -> Policy:
    """Load the policy of a run.

    Args:
        run: Run folder, or `zoo:NAME` for a policy that comes with the package.
        which: `best`, by the evaluations on other seeds during training, or `last`.
        network: `module:Class` of a run with a network of its own. The class is code that the run
            folder names; it is called only if you name it too.

    Raises:
        ValueError: the folder is not a run folder, is damaged, has no such policy, or names
            another network than you.
        ImportError: the network needs PyTorch, which is not installed.
    """
    if isinstance(run, str) and run.startswith(zoo.PREFIX):
        run = zoo.zoo_folder(run)
    opened = runs.open_run(run)
    if which not in ("best", "last"):
        raise ValueError(f"which must be best or last, got {which!r}")
    checkpoint = opened.checkpoint(checkpoint_kind(opened, which))
    try:
        settings = PolicySettings.from_dict(opened.settings)
    except ValueError as error:
        raise runs.damage_error(opened.path, error) from error
    _check_named_network(settings.ppo.network, network, opened.path)
    try:
        return make_policy(checkpoint.arrays, opened.settings)
    except MissingExtraError:
        raise
    except ValueError as error:
        raise runs.damage_error(opened.path, error) from error


def make_policy(arrays: Arrays, settings: Mapping[str, Mapping[str, Any]]) -> Policy:
    """Build a policy from weights: an MLP in NumPy, another network in PyTorch.

    Raises:
        ValueError: the weights do not fit the settings.
        ImportError: the network needs PyTorch, which is not installed.
    """
    network = PolicySettings.from_dict(settings).ppo.network
    if network == MLP:
        return Policy(arrays, settings)
    with require(f"a policy with network {network}", "train", "torch"):
        from cagepool.evaluate.network_policy import NetworkPolicy  # noqa: PLC0415 - slow import

        return NetworkPolicy(arrays, settings)


def _check_named_network(network: str, named: str | None, path: Path) -> None:
    """Raise ValueError if code that a run folder names is not what the caller named."""
    if named is not None and named != network:
        raise ValueError(f"the network of {path} is {network}, got {named}")
    if is_reference(network) and named is None:
        raise ValueError(
            f"{path} names code to be called, {network}: if you trust it, name it too, as "
            f"--network {network} or load(..., network={network!r})"
        )


def checkpoint_kind(run: runs.Run, which: str) -> str:
    """Kind of the checkpoint that `load` reads: `last` if the run has no `best` one yet."""
    return which if run.checkpoint_updates(which) else "last"
