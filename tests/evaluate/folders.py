"""Run folders with small random networks, made without any training."""

from pathlib import Path
from typing import Any

import numpy as np

from cagepool import runs
from cagepool.policy.policy import PolicySettings, feature_encoder
from cagepool.train.config import TrainConfig

HIDDEN = 16
CONFIG = TrainConfig.from_flat(total_episodes=1000)
METRICS = ("update", "episodes")
EVALUATIONS = ("update", "score", "standard_error")


def make_run(path: Path, *, network: int = 0, kind: str = "best", **settings: Any) -> Path:
    """A run that trained nothing; `network` decides its random weights."""
    run = runs.create(path, CONFIG.with_settings(**settings).as_dict(), "0.1.0")
    add_checkpoint(path, network, kind)
    table = runs.TableWriter(run.path / runs.METRICS, METRICS)
    table.append({"update": 1, "episodes": 600})
    table.append({"update": 2, "episodes": 1000})
    table.close()
    evaluations = runs.TableWriter(run.path / runs.EVALUATIONS, EVALUATIONS)
    for update, score in ((1, -40.0), (2, -30.0 - network), (3, -35.0)):
        evaluations.append({"update": update, "score": score, "standard_error": 0.5})
    evaluations.close()
    return path


def add_checkpoint(path: Path, network: int, kind: str, update: int = 2) -> None:
    """One more random network."""
    run = runs.open_run(path)
    inputs = feature_encoder(PolicySettings.from_dict(run.settings), 1)
    draw = np.random.default_rng(network)
    shapes = {
        "actor.0.weight": (HIDDEN, inputs.size),
        "actor.0.bias": (HIDDEN,),
        "actor.2.weight": (inputs.n_choices, HIDDEN),
        "actor.2.bias": (inputs.n_choices,),
    }
    weights = {
        name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    run.save_checkpoint(kind, weights, {"update": update})
