"""CybORG as the engine of a trial: its games in worker processes, as arrays like a batch's."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool.cyborg import CybORGEnv, locate
from cagepool.cyborg.parity.sight import Sight
from cagepool.envs import make_vec
from cagepool.envs.workers import WorkerVectorEnv
from cagepool.evaluate.rollout import Trial
from cagepool.evaluate.statistics import Start
from cagepool.sim import dtypes
from cagepool.sim.compliance import ComplianceTracker
from cagepool.types import Float32s, Float64s, Infos, Int32s, Int64s, Observations, Records, Seeds

GAMES_PER_CORE = 4  # more keep a core busy while another finishes its step
WATCHED = np.dtype([("state", dtypes.TRUE_STATE), ("row", dtypes.TRACE_ROW)])


class CybORGEngine:
    """CybORG, found as `CybORGEnv` finds it, on all cores."""

    name = "cyborg"

    def __init__(self, folder: str | None = None) -> None:
        """Use the CybORG of this folder.

        Raises:
            CybORGNotFoundError: it is not there, or cannot be imported.
            ValueError: another CybORG has been imported before.
        """
        self._folder = folder
        self.edition = locate.edition(locate.load(folder))
        self.at_once = GAMES_PER_CORE * len(os.sched_getaffinity(0))

    @contextmanager
    def open(self, trial: Trial, red: str) -> Iterator[Start]:
        """Start the workers.

        Raises:
            ValueError: the CybORG found is of another edition.
        """
        if trial.edition != self.edition:
            raise ValueError(
                f"edition must be that of the CybORG found, {self.edition}; got {trial.edition!r}"
            )
        make = partial(
            WatchedEnv,
            red=red,
            green=trial.green,
            max_steps=trial.max_steps,
            edition=trial.edition,
            checkout=self._folder,
        )
        number = min(self.at_once, trial.episodes)
        with make_vec(
            number, env=make, backend="workers", true_state="every", autoreset="disabled"
        ) as envs:
            yield partial(CybORGGames, envs, trial)


class WatchedEnv(CybORGEnv):
    """CybORG whose true state also tells what was done in the last step."""

    def reset(self, **keywords: Any) -> tuple[Observations, Infos]:
        """Start a new episode."""
        started = super().reset(**keywords)
        self._sight = Sight(self)
        self._watched = np.zeros((), WATCHED)
        return started

    def step(self, action: SupportsIndex) -> tuple[Observations, float, bool, bool, Infos]:
        """Play one action of blue's."""
        self._sight.before()
        result = super().step(action)
        self._watched["state"] = truth = super().true_state()
        self._sight.after(truth, self._watched["row"])
        return result

    def true_state(self) -> Records:
        """State and trace row of the last step, fields of `WATCHED`."""
        return self._watched


class CybORGGames:
    """Games that are over when their last step is; see `games.Games`."""

    observations: Float32s
    rewards: Float64s
    moves: Records
    true_state: Records
    counters: Int32s

    def __init__(self, envs: WorkerVectorEnv, trial: Trial, seeds: Seeds) -> None:
        """Start a game for each seed; at most one an environment."""
        self._tracker = _compliance_tracker(trial, len(seeds))
        no_counters = np.zeros((0, _core.COUNTER_COUNT), np.int32)
        self.counters = no_counters if self._tracker is None else self._tracker.counters
        self._envs = envs
        self._seeds = seeds.tolist()
        self.games = len(seeds)
        self._ids = np.arange(self.games)
        self.rewards = np.zeros(self.games)
        self.moves = np.zeros(self.games, dtypes.MOVES)
        self.true_state = np.zeros(self.games, dtypes.TRUE_STATE)
        spare = [None] * (envs.num_envs - self.games)
        mask = np.arange(envs.num_envs) < self.games
        shown, _ = envs.reset(seed=[*self._seeds, *spare], options={"reset_mask": mask})
        self.observations = np.asarray(shown)[: self.games]

    def step(self, actions: Int64s) -> None:
        """Play one action in every game."""
        if self._tracker is not None:  # before the first step nothing but the foothold is held
            self._tracker.update(self.true_state, actions)
        self._envs.send(actions, self._ids)
        ready = self._envs.recv(min_ready=self.games)
        self.observations[ready.ids] = ready.observations
        self.rewards[ready.ids] = ready.rewards
        watched: NDArray[Any] = self._envs.true_state[: self.games]
        self.true_state[:] = watched["state"]
        rows = watched["row"]
        for name in self.moves.dtype.names or ():
            self.moves[name] = actions if name == "blue_action" else rows[name]

    def stream_key(self, game: int) -> int:
        """The seed of the game."""
        return int(self._seeds[game])


def _compliance_tracker(trial: Trial, games: int) -> ComplianceTracker | None:
    if trial.order is None:
        return None
    return ComplianceTracker(
        games,
        trial.order,
        knowledge=trial.knowledge,
        definition=trial.definition,
        alignment=0.0,
    )
