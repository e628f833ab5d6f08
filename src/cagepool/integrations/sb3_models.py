"""Models that Stable-Baselines3 and sb3-contrib have saved, as defenders."""

import json
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import ArrayLike

from cagepool import _core, _optional
from cagepool.integrations import sb3
from cagepool.policy.defenders import Defender, GameBatch, cage2_games
from cagepool.types import Arrays, Int64s

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


def load_model(path: Path) -> Defender:
    """Load the policy of a file that `model.save` has written.

    The file contains pickles, and unpickling can run any code: load only files from people whom you
    trust.
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
    defender.name = path.name
    return defender


class RecurrentDefender(Defender):
    """A model of RecurrentPPO as a defender of many games, which plays greedily."""

    def __init__(self, model: Any) -> None:
        """Take a model."""
        self._model = model

    def begin(self, games: int | GameBatch) -> None:
        """Start an episode in every game."""
        self._state: Any = None
        self._starts = np.ones(cage2_games(games, self.name), np.bool_)

    def act(self, observations: ArrayLike) -> Int64s:
        """The most probable action per game."""
        actions, self._state = self._model.predict(
            np.asarray(observations, np.float32),
            state=self._state,
            episode_start=self._starts,
            deterministic=True,
        )
        self._starts = np.zeros_like(self._starts)
        choices: Int64s = actions
        return choices

    def reset(self, ids: ArrayLike) -> None:
        """Start an episode in these games."""
        self._starts[np.asarray(ids, np.int64)] = True

    def state(self) -> Arrays:
        """Hidden and cell states, and the games that start."""
        names = ("hidden", "cell")
        states = {} if self._state is None else dict(zip(names, self._state, strict=True))
        return {name: array.copy() for name, array in {**states, "starts": self._starts}.items()}

    def restore(self, state: Arrays) -> None:
        """Continue from what `state` returned."""
        self._starts = state["starts"].copy()
        self._state = (state["hidden"], state["cell"]) if "hidden" in state else None


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
