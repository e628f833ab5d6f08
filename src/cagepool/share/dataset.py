"""Datasets of recorded games for offline reinforcement learning, in the format of Minari.

Games are played in batches, and every episode is written in one piece. The layout of the HDF5 file
is that of Minari's storage `hdf5`; `metadata.json` is written by Minari itself.
"""

import copy
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from cagepool import _core, _optional
from cagepool.envs.single import ENVIRONMENT_ID, action_space, observation_space
from cagepool.evaluate.rollout import (
    OnProgress,
    Trial,
    game_seeds,
    ignore_progress,
    start_games,
)
from cagepool.policy import Defender, Policy
from cagepool.policy.defenders import GameBatch
from cagepool.scenarios import CAGE2
from cagepool.share.export import check_empty, complete_folder
from cagepool.sim import Batch
from cagepool.sim.dtypes import MOVES, true_state
from cagepool.sim.names import MIX
from cagepool.sim.settings import DEFAULT_MAX_STEPS
from cagepool.types import Arrays, Int64s, Records, Seeds

with _optional.require("a dataset", "minari", "minari", "h5py"):
    import h5py
    import minari
    from minari.dataset.minari_storage import MinariStorage

DATA, FILE = "data", "main_data.hdf5"  # as Minari names them
GAMES_AT_ONCE = 1000
DATASET_ID = re.compile(r"(?:[-\w]+/)*[-\w]+-v\d+")  # namespace/name-v0, as Minari has them
NO_MOVE = -1  # in the row before the first step
_STATE = true_state(len(CAGE2.hosts))
_MOVES = np.dtype([(name, np.int16) for name in MOVES.names or ()])


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """Games of a dataset, and its name."""

    episodes: int = 1000
    """Games to play."""
    red: str = MIX
    """Red agent; `mix` and `a+b` draw one per game."""
    max_steps: int = DEFAULT_MAX_STEPS
    """Steps per game."""
    seed: int = 0
    """Random seed; the games of a short dataset are the first games of a longer one."""
    edition: str | None = None
    """Edition of the game; none: that of the policy's training, else 2.1."""
    sample: bool = False
    """Whether a trained policy samples its actions instead of playing greedily."""
    dataset_id: str | None = None
    """Minari's name of the dataset, such as cage2/mine-v0; none: the name of the folder."""


def record_dataset(
    policy: Defender,
    folder: str | Path,
    options: RecordOptions | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Path:
    """Play a policy and write its games as a dataset that Minari reads.

    Args:
        policy: Plays blue; see `cagepool.policy.load`.
        folder: Folder to write; it must not exist, or be empty. The data are in its folder `data`.
        options: The games, and the name of the dataset.
        on_progress: Called with the number of games that have been written since the last call.

    Returns:
        The folder.
    """
    options = options or RecordOptions()
    target = Path(folder)
    check_empty(target, "a dataset")
    dataset_id = _checked_id(options.dataset_id, target)
    trial = Trial(
        episodes=max(2, options.episodes),
        max_steps=options.max_steps,
        edition=options.edition or policy.edition,
        seed=options.seed,
    )
    if options.episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {options.episodes}")
    defender = _sampled(policy, options.seed) if options.sample else policy
    seeds = game_seeds(trial, options.red)[: options.episodes]
    _check_space(target, options)
    with complete_folder(target, "a dataset") as fresh:
        storage = _create_storage(fresh / DATA, trial, options.red)
        _write_games(fresh / DATA / FILE, _play(defender, trial, options.red, seeds), on_progress)
        storage.update_metadata(
            {
                "dataset_id": dataset_id,
                "minari_version": minari.__version__,
                "algorithm_name": policy.name,
                "description": _description(policy, trial, options),
                "total_episodes": options.episodes,
                "total_steps": options.episodes * options.max_steps,
            }
        )
        storage.update_metadata({"dataset_size": storage.get_size()})
    return target


class SampledDefender(Defender):
    """A policy that samples its actions."""

    def __init__(self, policy: Policy, seed: int) -> None:
        """Sample by a generator of this seed."""
        self._policy = policy
        self._rng = np.random.default_rng(seed)

    def begin(self, games: int | GameBatch) -> None:
        """Reset all histories."""
        self._policy.begin(games)

    def act(self, observations: ArrayLike) -> Int64s:
        """One sampled action per game."""
        return self._policy.act(observations, greedy=False, rng=self._rng)


def _sampled(policy: Defender, seed: int) -> Defender:
    if not isinstance(policy, Policy):
        raise ValueError(f"sample needs a policy trained by cagepool, {policy.name} is another one")
    return SampledDefender(policy, seed)


def _checked_id(given: str | None, folder: Path) -> str:
    name = folder.resolve().name
    dataset_id = given or (name if DATASET_ID.fullmatch(name) else f"{name}-v0")
    if not DATASET_ID.fullmatch(dataset_id):
        raise ValueError(
            f"dataset_id must be a name such as cage2/mine-v0, as Minari has them, got "
            f"{dataset_id!r}"
        )
    return dataset_id


def _check_space(folder: Path, options: RecordOptions) -> None:
    row = 4 * _core.OBSERVATION_SIZE + _STATE.itemsize + _MOVES.itemsize + 18
    needed = options.episodes * (options.max_steps + 1) * row
    existing = next(path for path in folder.absolute().parents if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise ValueError(
            f"a dataset of {options.episodes} episodes needs {needed // 10**6 + 1} MB of free disk "
            f"space, there are {free // 10**6} MB at {folder}"
        )


def _create_storage(folder: Path, trial: Trial, red: str) -> Any:
    """Minari's storage with its metadata and an empty HDF5 file."""
    folder.mkdir()
    spec = copy.deepcopy(gym.spec(ENVIRONMENT_ID))
    spec.kwargs = {"red": red, "edition": trial.edition, "max_steps": trial.max_steps}
    return MinariStorage.new(
        folder,
        observation_space=observation_space("float32"),
        action_space=action_space(),
        env_spec=spec,
        data_format="hdf5",
    )


def _description(policy: Defender, trial: Trial, options: RecordOptions) -> str:
    how = "sampled" if options.sample else "greedy"
    return (
        f"{policy.name} ({how}) against {options.red} in CAGE Challenge 2, edition "
        f"{trial.edition}, native games of cagepool, seed {options.seed}; infos: true_state and "
        "moves per step"
    )


def _play(
    defender: Defender, trial: Trial, red: str, seeds: Seeds
) -> Iterator[tuple[Seeds, Arrays]]:
    """Play games in batches; yields their seeds, and arrays by name, (games, steps, ...)."""
    for first in range(0, len(seeds), GAMES_AT_ONCE):
        part = seeds[first : first + GAMES_AT_ONCE]
        yield part, _play_batch(defender, start_games(trial, red, part), trial.max_steps)


def _play_batch(defender: Defender, batch: Batch, steps: int) -> Arrays:
    shape = (batch.games, steps + 1)
    observations = np.empty((*shape, _core.OBSERVATION_SIZE), np.float32)
    states, moves = np.empty(shape, _STATE), np.empty(shape, _MOVES)
    for name in _MOVES.names or ():
        moves[name][:, 0] = NO_MOVE
    actions = np.empty((batch.games, steps), np.int64)
    rewards = np.empty((batch.games, steps))
    observations[:, 0] = batch.observations
    _copy_fields(batch.true_state, states[:, 0])
    defender.begin(batch)
    for step in range(steps):
        actions[:, step] = defender.act(batch.observations)
        batch.step(np.ascontiguousarray(actions[:, step]))
        rewards[:, step] = batch.rewards
        observations[:, step + 1] = batch.observations
        _copy_fields(batch.true_state, states[:, step + 1])
        _copy_fields(batch.moves, moves[:, step + 1])
    truncations = np.zeros((batch.games, steps), np.bool_)
    truncations[:, -1] = True
    return {
        "observations": observations,
        "actions": actions,
        "rewards": rewards,
        "terminations": np.zeros_like(truncations),
        "truncations": truncations,
        "true_state": states,
        "moves": moves,
    }


def _copy_fields(source: Records, target: Records) -> None:
    for name in target.dtype.names or ():
        target[name] = source[name]


def _write_games(
    path: Path, batches: Iterator[tuple[Seeds, Arrays]], on_progress: OnProgress
) -> None:
    with h5py.File(path, "w") as file:
        writer = _EpisodeWriter(file)
        episode = 0
        for seeds, arrays in batches:
            for game, seed in enumerate(seeds):
                rows = {name: array[game] for name, array in arrays.items()}
                writer.write(episode, int(seed), rows)
                episode += 1
            on_progress(len(seeds))


class _EpisodeWriter:
    """Writes episodes through h5py's low-level interface: it creates seven datasets per episode.

    Types and shapes are created once; the data of an episode are written without a copy.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._layouts: dict[str, tuple[Any, Any]] = {}  # HDF5 type and shape by name
        self._properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        self._properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        self._scalar = h5py.h5s.create(h5py.h5s.SCALAR)

    def write(self, episode: int, seed: int, rows: Arrays) -> None:
        group = h5py.h5g.create(self._file.id, f"episode_{episode}".encode())
        attributes = {"id": episode, "total_steps": len(rows["rewards"])}
        for name, number in attributes.items():
            self._write_attribute(group, name, np.array(number, np.int64))
        self._write_attribute(group, "seed", np.array(seed, np.uint64))
        infos = h5py.h5g.create(group, b"infos")
        for name, array in rows.items():
            self._write_array(infos if name in ("true_state", "moves") else group, name, array)

    def _write_array(self, group: Any, name: str, array: Any) -> None:
        if name not in self._layouts:
            kind = h5py.h5t.py_create(array.dtype, logical=True)
            self._layouts[name] = (kind, h5py.h5s.create_simple(array.shape))
        dataset = h5py.h5d.create(group, name.encode(), *self._layouts[name], self._properties)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, array)

    def _write_attribute(self, group: Any, name: str, number: Any) -> None:
        kind = h5py.h5t.py_create(number.dtype)
        h5py.h5a.create(group, name.encode(), kind, self._scalar).write(number)
