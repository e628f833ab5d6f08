"""RLlib on native games: PPO configuration, vector environment of env runners, checkpoints.

One env runner has one vector environment of native games, not one process per game.
"""

import logging
import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import floor, inf
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
from gymnasium.spaces import Discrete, Space
from numpy.typing import ArrayLike

from cagepool import _core, _optional
from cagepool._machine import usable_cores
from cagepool.envs.native import NativeVectorEnv
from cagepool.envs.settings import NativeKeywords, read_settings
from cagepool.envs.single import Cage2Env
from cagepool.envs.vector_args import Seed
from cagepool.errors import check_at_least
from cagepool.policy.defenders import Defender, GameBatch, cage2_games
from cagepool.sim.batch import BatchConfig
from cagepool.types import Arrays, Infos, Int64s, Observations

REQUIRED = (
    "ray", "torch", "tree", "lz4", "ormsgpack", "pandas", "pyarrow", "pydantic", "scipy",
    "tensorboardX",
)  # fmt: skip

with _optional.require(__name__, "ray", *REQUIRED):
    import ray
    import torch
    import tree
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core import DEFAULT_MODULE_ID
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.rllib.core.rl_module.rl_module import RLModule
    from ray.tune.registry import register_env

MINIBATCH_SIZE = 500
MODULE_FOLDER = Path("learner_group", "learner", "rl_module", DEFAULT_MODULE_ID)
# Errors that unpickling files of unknown origin may raise.
_READ_ERRORS = (
    AssertionError, AttributeError, EOFError, ImportError, LookupError, OSError, RuntimeError,
    TypeError, ValueError, pickle.UnpicklingError,
)  # fmt: skip


def ppo_config(
    n_env_runners: int = 2,
    n_envs: int = 50,
    *,
    fragment: int = 100,
    seed: int | None = None,
    **game: Unpack[NativeKeywords],
) -> PPOConfig:
    """A configuration that is ready for `build_algo()`; more can be set before.

    Args:
        n_env_runners: Processes that play; 0: the learner's process plays too.
        n_envs: Games per env runner.
        fragment: Steps per game between two updates; all steps together are one batch.
        seed: Random seed; None: a random one.
        game: Settings of the games, see `cagepool.make_vec`: `red`, `max_steps` and so on.

    Raises:
        ValueError: a setting is out of range or has an unknown value.
    """
    _check_settings(n_env_runners, n_envs, fragment, game)
    batch_size = max(1, n_env_runners) * n_envs * fragment
    config = PPOConfig().environment(RunnerPool, env_config=cast("dict[str, Any]", game))
    config.env_runners(
        num_env_runners=n_env_runners,
        num_envs_per_env_runner=n_envs,
        num_cpus_per_env_runner=cast("int", _cpus_per_runner(n_env_runners)),  # may be a fraction
        gym_env_vectorize_mode="vector_entry_point",
        rollout_fragment_length=fragment,
    )
    config.learners(num_learners=0)
    config.debugging(seed=seed)
    return _set_training(config, batch_size)


def register(name: str = "CAGE2") -> None:
    """Register the game with RLlib, so that `"env": "CAGE2"` names it.

    The settings of the game are RLlib's `env_config`. With RLlib's default, each env runner has
    single games; with `gym_env_vectorize_mode="vector_entry_point"` it has one `RunnerPool`.
    """
    register_env(name, _make_env)


def _make_env(context: Mapping[str, Any]) -> "RunnerPool | Cage2Env":
    """A pool if RLlib asks for a number of games, else a single game."""
    return RunnerPool(context) if "num_envs" in context else Cage2Env(**context)


class RunnerPool(NativeVectorEnv):
    """Native games, made and seeded as RLlib's env runners need it.

    Pass this class to `environment()`, the settings of the games as `env_config`, and
    `gym_env_vectorize_mode="vector_entry_point"` to `env_runners()`; `ppo_config` does so.
    """

    def __init__(self, context: Mapping[str, Any]) -> None:
        """Make `num_envs` games of the context, whose other entries are their settings.

        The autoreset mode is next_step: RLlib's env runners take the observation of the step after
        an end for the first one of the next episode, whatever action was played.
        """
        super().__init__(autoreset="next_step", **{"threads": 1, **context})

    def reset(
        self, *, seed: Seed = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Start new episodes, with seeds that no other env runner uses.

        RLlib gives its env runners consecutive seeds. Consecutive seeds for the games of each
        would make game 1 of one env runner equal to game 0 of the next.
        """
        if isinstance(seed, int | np.integer):
            seed = np.random.SeedSequence(int(seed)).generate_state(self.num_envs).tolist()
        return super().reset(seed=seed, options=options)


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Suppress warnings and log messages, most of which are RLlib's own deprecation warnings."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _set_training(config: PPOConfig, batch_size: int) -> PPOConfig:
    """Set networks and hyper-parameters.

    The value loss is not clipped: RLlib gives no gradient to a value whose squared error is above
    `vf_clip_param`, by default 10, and returns of CAGE-2 are in the hundreds. The critic has its
    own network, since errors of that size would dominate the gradients of a shared one.
    """
    config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], vf_share_layers=False))
    return config.training(
        train_batch_size_per_learner=batch_size,
        minibatch_size=min(MINIBATCH_SIZE, batch_size),
        num_epochs=4,
        lr=1e-3,
        gamma=0.99,
        lambda_=0.95,
        clip_param=0.2,
        entropy_coeff=0.01,
        vf_clip_param=inf,
        use_kl_loss=False,
    )


def _check_settings(n_env_runners: int, n_envs: int, fragment: int, game: NativeKeywords) -> None:
    """Raise here what every env runner would otherwise raise in its own process."""
    check_at_least("n_env_runners", n_env_runners, 0)
    check_at_least("n_envs", n_envs, 1)
    check_at_least("fragment", fragment, 1)
    read_settings(game, ("n_envs", *NativeKeywords.__annotations__))
    red = game.get("red", "")
    if "given" in ([red] if isinstance(red, str) else red):
        raise ValueError("red must be one that plays by itself, got 'given'")
    with RunnerPool({"num_envs": n_envs, **game}) as pool:
        dtype = pool.single_observation_space.dtype
    if dtype != np.float32:
        raise ValueError(f"observation_dtype must be float32, which RLlib needs; got {dtype}")


def _cpus_per_runner(n_env_runners: int) -> float:
    """CPUs per env runner: one, or an equal share of all but the learner's."""
    cpus = ray.cluster_resources()["CPU"] if ray.is_initialized() else usable_cores()
    share = max(1, cpus - 1) / max(1, n_env_runners)
    return min(1.0, floor(share * 10_000) / 10_000)  # Ray's resolution is 1/10,000 CPU


def load_checkpoint(folder: Path) -> Defender:
    """Load the policy of a checkpoint that `Algorithm.save_to_path` or Tune has written.

    A checkpoint consists of pickles, and unpickling can run any code: read only checkpoints from
    people whom you trust.
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
    defender = ModuleDefender(module)
    defender.name = folder.resolve().name
    defender.trained_on = _if_string(game.get("edition", BatchConfig.edition))
    defender.order = _if_string(game.get("order"))
    defender.knowledge = game.get("knowledge", BatchConfig.knowledge)
    defender.definition = game.get("definition", BatchConfig.definition)
    return defender


class ModuleDefender(Defender):
    """An RLModule as a defender of many games; recurrent modules keep their state."""

    def __init__(self, module: Any) -> None:
        """Take a module, which plays greedily."""
        self._module = module

    def begin(self, games: int | GameBatch) -> None:
        """Start an episode in every game."""
        count = cage2_games(games, self.name)
        initial = self._module.get_initial_state() if self._module.is_stateful() else {}
        self._state = self._initial = tree.map_structure(
            lambda value: torch.as_tensor(value).expand(count, *value.shape), initial
        )

    @torch.no_grad()
    def act(self, observations: ArrayLike) -> Int64s:
        """The most probable action per game."""
        rows = torch.from_numpy(np.array(observations, np.float32))
        if self._state:  # recurrent modules expect sequences, here of one step
            inputs = {Columns.OBS: rows[:, None], Columns.STATE_IN: self._state}
        else:
            inputs = {Columns.OBS: rows}
        outputs = self._module.forward_inference(inputs)
        self._state = outputs.get(Columns.STATE_OUT, {})
        logits = outputs[Columns.ACTION_DIST_INPUTS].reshape(len(rows), -1)
        actions: Int64s = logits.argmax(1).numpy()
        return actions

    def reset(self, ids: ArrayLike) -> None:
        """Start an episode in these games."""
        games = torch.from_numpy(np.asarray(ids, np.int64))
        self._state = tree.map_structure(
            lambda now, first: now.index_copy(0, games, first[games]), self._state, self._initial
        )

    def state(self) -> Arrays:
        """Recurrent states of all games."""
        return {f"state_{i}": x.numpy().copy() for i, x in enumerate(tree.flatten(self._state))}

    def restore(self, state: Arrays) -> None:
        """Continue from what `state` returned."""
        arrays = [torch.from_numpy(state[f"state_{i}"].copy()) for i in range(len(state))]
        self._state = tree.unflatten_as(self._initial, arrays)


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
