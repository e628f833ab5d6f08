"""Loads the policy of an RLlib checkpoint as a defender."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tree
from gymnasium.spaces import Discrete, Space
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule

from cagepool import _core
from cagepool.evaluate.defenders import GameBatch
from cagepool.evaluate.resolve import ResolvedPolicy
from cagepool.integrations.rllib.config import suppress_warnings
from cagepool.sim.batch import BatchConfig
from cagepool.types import Int64s

MODULE_FOLDER = Path("learner_group", "learner", "rl_module", DEFAULT_MODULE_ID)
# Errors that unpickling files of unknown origin may raise.
_READ_ERRORS = (
    AssertionError, AttributeError, EOFError, ImportError, LookupError, OSError, RuntimeError,
    TypeError, ValueError, pickle.UnpicklingError,
)  # fmt: skip


def resolve_checkpoint(folder: Path) -> ResolvedPolicy:
    """Load the policy of a checkpoint that `Algorithm.save_to_path` or Tune has written.

    A checkpoint consists of pickles, and unpickling can run any code: read only checkpoints from
    people whom you trust.

    Raises:
        ValueError: the checkpoint is damaged, or its policy does not play CAGE-2 from the 52
            values of an observation.
    """
    try:
        with suppress_warnings():
            settings = _read_settings(folder)
            module = RLModule.from_checkpoint(str(folder.resolve() / MODULE_FOLDER))
    except _READ_ERRORS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{folder} is damaged, or not a checkpoint of RLlib's: {reason}"
        ) from error
    _check_spaces(folder, module)
    if settings.get("_env_to_module_connector") is not None:
        raise ValueError(
            f"a policy must see what blue sees, that of {folder} has connectors in between"
        )
    game = settings.get("env_config", {})
    return ResolvedPolicy(
        name=folder.resolve().name,
        defender=ModuleDefender(module),
        kind="policy",
        trained_on=_if_string(game.get("edition", BatchConfig.edition)),
        order=_if_string(game.get("order")),
        knowledge=game.get("knowledge", BatchConfig.knowledge),
        definition=game.get("definition", BatchConfig.definition),
    )


class ModuleDefender:
    """An RLModule as a defender of many games; recurrent modules keep their state."""

    def __init__(self, module: Any) -> None:
        """Take a module, which plays greedily."""
        self._module = module

    def begin(self, batch: GameBatch) -> None:
        """Start an episode in every game."""
        initial = self._module.get_initial_state() if self._module.is_stateful() else {}
        self._state = tree.map_structure(
            lambda value: torch.as_tensor(value).expand(batch.games, *value.shape), initial
        )

    @torch.no_grad()
    def act(self, batch: GameBatch) -> Int64s:
        """The most probable action per game."""
        observations = torch.from_numpy(batch.observations.astype(np.float32))
        if self._state:  # recurrent modules expect sequences, here of one step
            inputs = {Columns.OBS: observations[:, None], Columns.STATE_IN: self._state}
        else:
            inputs = {Columns.OBS: observations}
        outputs = self._module.forward_inference(inputs)
        self._state = outputs.get(Columns.STATE_OUT, {})
        logits = outputs[Columns.ACTION_DIST_INPUTS].reshape(batch.games, -1)
        actions: Int64s = logits.argmax(1).numpy()
        return actions


def _read_settings(folder: Path) -> dict[str, Any]:
    """Settings of the algorithm that wrote the checkpoint."""
    content = pickle.loads((folder / "class_and_ctor_args.pkl").read_bytes())
    (settings, *_), _ = content["ctor_args_and_kwargs"]
    return dict(settings)


def _if_string(setting: object) -> str | None:
    """The setting if it is the same in all games, otherwise None."""
    return setting if isinstance(setting, str) else None


def _check_spaces(folder: Path, module: Any) -> None:
    observations, actions = module.observation_space, module.action_space
    if (
        not isinstance(observations, Space)
        or observations.shape != (_core.OBSERVATION_SIZE,)
        or actions != Discrete(_core.ACTION_COUNT)
    ):
        raise ValueError(
            f"a policy must be one for CAGE-2, that of {folder} sees {observations} "
            f"and plays {actions}"
        )
