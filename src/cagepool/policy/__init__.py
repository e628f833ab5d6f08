"""Policies: trained, scripted or of the user; one `load` for every form."""

from typing import TYPE_CHECKING

from cagepool._lookup import lazy_names
from cagepool.policy.defenders import Defender, scripted_defender
from cagepool.policy.load import load, load_run
from cagepool.policy.policy import Policy

if TYPE_CHECKING:
    from cagepool.policy.networks import (
        GruNetwork,
        MlpNetwork,
        NetworkInputs,
        NetworkOutputs,
        NetworkSpec,
        check_outputs,
    )

__all__ = [
    "Defender",
    "GruNetwork",
    "MlpNetwork",
    "NetworkInputs",
    "NetworkOutputs",
    "NetworkSpec",
    "Policy",
    "check_outputs",
    "load",
    "load_run",
    "scripted_defender",
]

_NETWORK_NAMES = ("GruNetwork", "MlpNetwork", "NetworkInputs", "NetworkOutputs", "NetworkSpec")
# On first use: networks need PyTorch.
__getattr__ = lazy_names(
    __name__, dict.fromkeys((*_NETWORK_NAMES, "check_outputs"), "cagepool.policy.networks")
)
