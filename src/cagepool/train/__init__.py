"""Training: PPO, evaluation, early stopping and the run that writes a run folder."""

from typing import TYPE_CHECKING

from cagepool._lookup import lazy_names

if TYPE_CHECKING:
    from cagepool.train.config import TrainConfig
    from cagepool.train.presets import preset_settings
    from cagepool.train.runner import train
    from cagepool.train.tracking import Callback, evaluation_fields, update_fields

__all__ = [
    "Callback",
    "TrainConfig",
    "evaluation_fields",
    "preset_settings",
    "train",
    "update_fields",
]

_HOMES = {  # on first use: most of this package needs PyTorch
    "Callback": "cagepool.train.tracking",
    "TrainConfig": "cagepool.train.config",
    "evaluation_fields": "cagepool.train.tracking",
    "preset_settings": "cagepool.train.presets",
    "train": "cagepool.train.runner",
    "update_fields": "cagepool.train.tracking",
}
__getattr__ = lazy_names(__name__, _HOMES)
