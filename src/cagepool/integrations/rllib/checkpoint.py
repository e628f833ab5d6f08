"""A policy that RLlib has saved, as a defender to be evaluated."""

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
from cagepool.integrations.rllib.quiet import quietly
from cagepool.sim.batch import BatchConfig
from cagepool.types import Int64s

MODULE = Path("learner_group", "learner", "rl_module", DEFAULT_MODULE_ID)
# What reading pickles of unknown origin may end with, besides what the files themselves do.
_DAMAGE = (
    AssertionError, AttributeError, EOFError, ImportError, LookupError, OSError, RuntimeError,
    TypeError, ValueError, pickle.UnpicklingError,
)  # fmt: skip


def contender(folder: Path) -> ResolvedPolicy:
    """The policy of a checkpoint that `Algorithm.save_to_path` or Tune has written.

    A checkpoint is made of pickles, and reading them runs what they say: only those from people
    whom you trust should be read.

    Raises:
        ValueError: the checkpoint is damaged, or its policy is not one that plays CAGE-2 from the
            52 values of a step.
    """
    try:
        with quietly():
            settings = _settings(folder)
            module = RLModule.from_checkpoint(str(folder.resolve() / MODULE))
    except _DAMAGE as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{folder} is damaged, or not a checkpoint of RLlib's: {said}") from error
    _check_plays_cage(folder, module)
    if settings.get("_env_to_module_connector") is not None:
        raise ValueError(
            f"a policy must see what blue sees, that of {folder} has connectors in between"
        )
    game = settings.get("env_config", {})
    return ResolvedPolicy(
        name=folder.resolve().name,
        defender=ModuleDefender(module),
        kind="policy",
        trained_on=_one(game.get("edition", BatchConfig.edition)),
        order=_one(game.get("order")),
        knowledge=game.get("knowledge", BatchConfig.knowledge),
        definition=game.get("definition", BatchConfig.definition),
    )


class ModuleDefender:
    """One of RLlib's modules as a defender of many games, which remembers if the module does."""

    def __init__(self, module: Any) -> None:
        """Let this module play, greedily."""
        self._module = module

    def begin(self, batch: GameBatch) -> None:
        """Forget the past: an episode starts in every game of the batch."""
        first = self._module.get_initial_state() if self._module.is_stateful() else {}
        self._state = tree.map_structure(
            lambda value: torch.as_tensor(value).expand(batch.games, *value.shape), first
        )

    @torch.no_grad()
    def act(self, batch: GameBatch) -> Int64s:
        """The likeliest action in every game."""
        seen = torch.from_numpy(batch.observations.astype(np.float32))
        if self._state:  # modules with a memory expect sequences, here of one step
            shown = {Columns.OBS: seen[:, None], Columns.STATE_IN: self._state}
        else:
            shown = {Columns.OBS: seen}
        said = self._module.forward_inference(shown)
        self._state = said.get(Columns.STATE_OUT, {})
        logits = said[Columns.ACTION_DIST_INPUTS].reshape(batch.games, -1)
        chosen: Int64s = logits.argmax(1).numpy()
        return chosen


def _settings(folder: Path) -> dict[str, Any]:
    """Those of the algorithm that wrote the checkpoint."""
    written = pickle.loads((folder / "class_and_ctor_args.pkl").read_bytes())
    (settings, *_), _ = written["ctor_args_and_kwargs"]
    return dict(settings)


def _one(setting: object) -> str | None:
    """A setting that is the same in all games, none if there is none."""
    return setting if isinstance(setting, str) else None


def _check_plays_cage(folder: Path, module: Any) -> None:
    seen, chosen = module.observation_space, module.action_space
    if (
        not isinstance(seen, Space)
        or seen.shape != (_core.OBSERVATION_SIZE,)
        or chosen != Discrete(_core.ACTION_COUNT)
    ):
        raise ValueError(
            f"a policy must be one for CAGE-2, that of {folder} sees {seen} and plays {chosen}"
        )
