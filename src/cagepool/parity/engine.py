"""CybORG as an evaluation engine: games in worker processes, shown as arrays like a batch's."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from cagepool import _core
from cagepool._machine import usable_cores
from cagepool.cyborg import CybORGEnv, locate
from cagepool.envs import make_vec
from cagepool.envs.workers import WorkerVectorEnv
from cagepool.evaluate.rollout import StartGames, Trial
from cagepool.parity.recorder import TraceRowReader
from cagepool.scenarios import CAGE2, Layout, Scenario
from cagepool.scenarios.scenario import action_names
from cagepool.sim import dtypes
from cagepool.sim.compliance import ComplianceTracker
from cagepool.sim.trace import trace_row_dtype
from cagepool.types import Float32s, Float64s, Infos, Int32s, Int64s, Observations, Records, Seeds

GAMES_PER_CORE = 4  # a core steps another game while one waits for its answer


class CybORGEngine:
    """Plays trials in CybORG, on all cores."""

    name = "cyborg"

    def __init__(self, checkout: str | None = None) -> None:
        """Load CybORG from a checkout; by default as `CybORGEnv` does."""
        self._checkout = checkout
        self.edition = locate.detect_edition(locate.load(checkout))
        self.max_games = GAMES_PER_CORE * usable_cores()

    @contextmanager
    def open(self, trial: Trial, red: str) -> Iterator[StartGames]:
        """Start the worker processes of a trial against one red agent."""
        if len(trial.scenarios) > 1:
            raise ValueError(f"CybORG plays one scenario per trial, got {len(trial.scenarios)}")
        if trial.order is not None and trial.scenarios not in ((), (CAGE2,)):
            raise ValueError(
                "order must be absent in CybORG's games of scenarios other than CAGE-2, "
                f"got {trial.scenarios[0].name}"
            )
        if trial.edition != self.edition:
            raise ValueError(
                f"edition must be that of the CybORG found, {self.edition}; got {trial.edition!r}"
            )
        env_fn = partial(
            TracedCybORGEnv,
            scenario=trial.scenarios[0] if trial.scenarios else None,
            red=red,
            green=trial.green,
            max_steps=trial.max_steps,
            edition=trial.edition,
            checkout=self._checkout,
        )
        num_envs = min(self.max_games, trial.episodes)
        with make_vec(
            num_envs, env=env_fn, backend="workers", true_state="every", autoreset="disabled"
        ) as envs:
            yield partial(CybORGGames, envs, trial)


def _traced_state_dtype(scenario: Scenario) -> np.dtype[np.void]:
    state = dtypes.true_state(len(scenario.hosts))
    return np.dtype([("state", state), ("row", trace_row_dtype(scenario))])


class TracedCybORGEnv(CybORGEnv):
    """CybORG whose true state includes the trace row of the last step."""

    def reset(self, **keywords: Any) -> tuple[Observations, Infos]:
        """Start a new episode."""
        result = super().reset(**keywords)
        self._reader = TraceRowReader(self)
        self._traced_state = np.zeros((), _traced_state_dtype(self.scenario))
        return result

    def step(
        self, action: SupportsIndex, red_action: SupportsIndex | None = None
    ) -> tuple[Observations, float, bool, bool, Infos]:
        """Play one action of blue, and one of red if red is `given`."""
        self._reader.before_step()
        result = super().step(action, red_action)
        self._traced_state["state"] = true_state = super().true_state()
        self._reader.after_step(true_state, self._traced_state["row"])
        return result

    def true_state(self) -> Records:
        """State and trace row of the last step."""
        return self._traced_state


class CybORGGames:
    """One episode of CybORG per seed; implements `evaluate`'s protocol of a batch of games."""

    observations: Float32s  # by slot of the layout
    rewards: Float64s
    moves: Records
    true_state: Records
    counters: Int32s

    def __init__(self, envs: WorkerVectorEnv, trial: Trial, seeds: Seeds) -> None:
        """Start one game per seed; there may be fewer seeds than environments."""
        self._tracker = _compliance_tracker(trial, len(seeds))
        no_counters = np.zeros((0, _core.COUNTER_COUNT), np.int32)
        self.counters = no_counters if self._tracker is None else self._tracker.counters
        self.scenarios = trial.scenarios or (CAGE2,)
        self.scenario_ids = np.zeros(len(seeds), np.int32)
        self.layout = trial.layout or Layout.of(self.scenarios)
        (scenario,) = self.scenarios
        self._slots = scenario.slots(self.layout)
        self._actions = _scenario_actions(scenario, self.layout)
        self._envs = envs
        self._seeds = seeds.tolist()
        self.games = len(seeds)
        self._ids = np.arange(self.games)
        self.rewards = np.zeros(self.games)
        self.moves = np.zeros(self.games, dtypes.MOVES)
        self.true_state = np.zeros(self.games, dtypes.true_state(len(scenario.hosts)))
        unused = [None] * (envs.num_envs - self.games)
        mask = np.arange(envs.num_envs) < self.games
        observations, _ = envs.reset(seed=[*self._seeds, *unused], options={"reset_mask": mask})
        self.observations = np.zeros((self.games, 4 * len(self.layout.slots)), np.float32)
        self._show(np.arange(self.games), np.asarray(observations)[: self.games])

    def _show(self, ids: Int64s, observations: Float32s) -> None:
        """Write observations of games by slot of the layout."""
        by_slot = self.observations.reshape(self.games, -1, 4)
        by_slot[ids[:, np.newaxis], self._slots] = observations.reshape(len(ids), -1, 4)

    def step(self, actions: Int64s) -> None:
        """Play one action per game."""
        if self._tracker is not None:  # true_state is 0 before the first step: red holds User0 only
            self._tracker.update(self.true_state, actions)
        self._envs.send(self._actions[actions], self._ids)
        ready = self._envs.recv(min_ready=self.games)
        self._show(ready.ids, ready.observations)
        self.rewards[ready.ids] = ready.rewards
        traced: NDArray[Any] = self._envs.true_state[: self.games]
        self.true_state[:] = traced["state"]
        rows = traced["row"]
        for name in self.moves.dtype.names or ():
            self.moves[name] = actions if name == "blue_action" else rows[name]

    def stream_key(self, game: int) -> int:
        """Seed of a game."""
        return int(self._seeds[game])


def _scenario_actions(scenario: Scenario, layout: Layout) -> Int64s:
    """Action of a scenario for each action of a layout; Sleep for those that it lacks."""
    names = {slot: scenario.hosts[host] for host, slot in enumerate(scenario.slots(layout))}
    hosts = [names.get(slot, "") for slot in range(len(layout.slots))]
    known = {name: number for number, name in enumerate(scenario.actions)}
    idle = known.get("Sleep", 0)
    return np.array([known.get(name, idle) for name in action_names(layout.kinds, hosts)])


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
