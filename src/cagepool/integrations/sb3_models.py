"""Models that Stable-Baselines3 and sb3-contrib have saved, as defenders."""

import json
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from cagepool import _core, _optional
from cagepool.evaluate.defenders import Defender, GameBatch
from cagepool.evaluate.resolve import ResolvedPolicy
from cagepool.integrations import sb3
from cagepool.types import Int64s

with _optional.require("a model of Stable-Baselines3", "sb3", "stable_baselines3", "sb3_contrib"):
    import sb3_contrib
    import stable_baselines3

# The first that fits: a word in the module of the model's policy class, or one of its settings.
_ALGORITHMS: tuple[tuple[str, Any], ...] = (
    ("recurrent", sb3_contrib.RecurrentPPO),
    ("_last_lstm_states", sb3_contrib.RecurrentPPO),
    ("maskable", sb3_contrib.MaskablePPO),
    ("qrdqn", sb3_contrib.QRDQN),
    ("exploration_fraction", stable_baselines3.DQN),
    ("cg_max_steps", sb3_contrib.TRPO),
    ("clip_range", stable_baselines3.PPO),
    ("use_rms_prop", stable_baselines3.A2C),
    ("gae_lambda", stable_baselines3.A2C),
)


def resolve_model(path: Path) -> ResolvedPolicy:
    """Load the policy of a file that `model.save` has written.

    The file contains pickles, and unpickling can run any code: load only files from people whom you
    trust.

    Raises:
        ValueError: the file is damaged, or its policy does not play CAGE-2 from the 52 values of
            an observation.
    """
    algorithm = _find_algorithm(path)
    try:
        model = algorithm.load(path, device="cpu")
    except Exception as error:  # torch, pickle and SB3 raise what they like for a damaged file
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} can't be loaded by {algorithm.__name__}: {reason}") from error
    _check_spaces(path, model)
    is_recurrent = algorithm is sb3_contrib.RecurrentPPO
    defender: Defender = RecurrentDefender(model) if is_recurrent else sb3.defender(model)
    return ResolvedPolicy(path.name, defender, "policy")


class RecurrentDefender:
    """A model of RecurrentPPO as a defender of many games."""

    def __init__(self, model: Any) -> None:
        """Take a model, which plays greedily."""
        self._model = model

    def begin(self, batch: GameBatch) -> None:
        """Start an episode in every game."""
        self._state: Any = None
        self._starts = np.ones(batch.games, np.bool_)

    def act(self, batch: GameBatch) -> Int64s:
        """The most probable action per game."""
        observations = np.asarray(batch.observations, np.float32)
        actions, self._state = self._model.predict(
            observations, state=self._state, episode_start=self._starts, deterministic=True
        )
        self._starts = np.zeros(batch.games, np.bool_)
        choices: Int64s = actions
        return choices


def _find_algorithm(path: Path) -> Any:
    """Class of the model, of which the file holds the settings but not the name."""
    try:
        with ZipFile(path) as archive:
            settings = json.loads(archive.read("data"))
        policy_module = settings["policy_class"]["__module__"]
    except (BadZipFile, KeyError, OSError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged, or not a model of Stable-Baselines3") from error
    for mark, algorithm in _ALGORITHMS:
        if mark in policy_module or mark in settings:
            return algorithm
    names = dict.fromkeys(algorithm.__name__ for _, algorithm in _ALGORITHMS)
    raise ValueError(f"a model must be of {', '.join(names)}; {path} is of another algorithm")


def _check_spaces(path: Path, model: Any) -> None:
    inputs, actions = model.observation_space.shape, getattr(model.action_space, "n", None)
    if inputs != (_core.OBSERVATION_SIZE,) or actions != _core.ACTION_COUNT:
        raise ValueError(
            f"a model must choose among {_core.ACTION_COUNT} actions from {_core.OBSERVATION_SIZE} "
            f"values, {path} does so among {actions} from {inputs}; with other inputs, evaluate "
            "module:defender with cagepool.integrations.sb3.defender(model, inputs)"
        )
