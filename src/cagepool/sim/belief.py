"""The exact belief of blue: what the state of a game can be, given what blue did and saw."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cagepool import _core
from cagepool.errors import short_repr
from cagepool.sim import dtypes
from cagepool.sim.names import (
    EXPLOITS,
    HOSTS,
    OFFICIAL_REDS,
    RED_AGENTS,
    edition_code,
    red_class_name,
)
from cagepool.sim.settings import DEFAULT_EDITION, DEFAULT_MAX_STEPS
from cagepool.types import Arrays, Bools, Float32s, Float64s, Int64s, Observations, Records, Seeds

BELIEF_FEATURES = _core.BELIEF_FEATURES
"""Policy features of a belief, per game."""
BELIEF_REDS = tuple(name for name in RED_AGENTS if RED_AGENTS[name] < _core.BELIEVABLE_REDS)
"""Red agents that a belief can have as hypotheses, in the order of its arrays."""
DECOY_PORTS = tuple((HOSTS[host], EXPLOITS[exploit]) for host, exploit in _core.decoy_ports())
"""Host and exploit of each value of `decoy_ports` in the probabilities of a belief."""


@dataclass(frozen=True)
class BeliefTotals:
    """Sums over all updates of a filter."""

    updates: int
    hypotheses: int  # after the updates
    misfits: int  # updates after which no red fitted
    dropped: int  # hypotheses beyond the capacity
    dropped_mass: float  # their probability, summed over the steps


@dataclass(frozen=True, kw_only=True)
class BeliefConfig:
    """Settings of a belief filter; edition and green must be those of the games."""

    reds: Sequence[str] = OFFICIAL_REDS
    """Red agents that blue may face, by class name or alias."""
    weights: Sequence[float] | None = None
    """Prior weight of each red agent, positive; None: all are equal."""
    edition: str = DEFAULT_EDITION
    """Edition of the game."""
    green: bool = False
    """Whether GreenAgent scans hosts."""
    capacity: int = 64
    """Most hypotheses per game; the least probable ones beyond it are dropped and counted."""
    threads: int = 1
    """Threads that update games."""

    def __post_init__(self) -> None:
        """Check the settings that the core does not check."""
        reds = [red_class_name(red) for red in self.reds]
        unknown = set(reds).difference(BELIEF_REDS)
        if unknown:
            raise ValueError(f"reds must be among {', '.join(BELIEF_REDS)}; got {unknown.pop()}")
        if len(set(reds)) != len(reds) or not reds:
            raise ValueError(f"reds must be different red agents, got {short_repr(self.reds)}")
        if self.weights is not None and len(self.weights) != len(reds):
            raise ValueError(
                f"weights must have one value per red agent, "
                f"got {len(self.weights)} for {len(reds)}"
            )
        if self.weights is not None and not all(0 < weight < np.inf for weight in self.weights):
            raise ValueError(f"weights must be positive numbers, got {short_repr(self.weights)}")

    @property
    def prior(self) -> Float64s:
        """Prior weight of each agent of BELIEF_REDS."""
        weights = [1.0] * len(self.reds) if self.weights is None else self.weights
        by_name = dict(zip(map(red_class_name, self.reds), weights, strict=True))
        return np.array([float(by_name.get(red, 0.0)) for red in BELIEF_REDS])


class BeliefFilter:
    """Bayes' rule over the states of many games, exact, by enumeration of all random draws.

    A filter knows only blue's actions and observations, so it works beside any engine that plays
    the rules, CybORG included. As long as nothing is dropped (`dropped`), its probabilities are
    those of Bayes' rule; the horizon of the games does not matter.

    As policy input: after a step, `update` the games that go on and `reset` those that start a new
    episode, then `write_features`. Each game depends on its own steps only, and `state` and
    `restore` carry a filter across processes.
    """

    def __init__(self, games: int, config: BeliefConfig | None = None) -> None:
        """Start an episode in every game.

        Raises:
            TypeError: a setting has another type.
            ValueError: a setting is unknown or out of range.
        """
        self.config = config or BeliefConfig()
        self.games = games
        self.reds = tuple(map(red_class_name, self.config.reds))
        self.core = _core.BeliefFilter(
            games=games,
            prior=self.config.prior.tolist(),
            edition=edition_code(self.config.edition),
            green=self.config.green,
            capacity=self.config.capacity,
            threads=self.config.threads,
        )
        self._all = np.arange(games)

    def reset(self, ids: Int64s | None = None) -> None:
        """Start new episodes in all games, or in those of `ids`."""
        self.core.reset(self._all if ids is None else ids)

    def update(
        self, actions: Int64s, observations: Observations | Seeds, ids: Int64s | None = None
    ) -> None:
        """Add a step to all games, or to those of `ids`.

        A game whose observation no red agent can have caused has no hypothesis from then on:
        `fits` is False, all its probabilities are 0, and it stays so until its reset.

        Args:
            actions: Blue's actions, one per game.
            observations: The observations that followed: 52 values per game (float32 or uint8), or
                one uint64 per game with value k as bit k.
            ids: Games of the rows of both.

        Raises:
            TypeError: an array has another type or rank.
            ValueError: an array has another shape, or a game is named twice.
            IndexError: an action or a game is out of range; nothing was changed.
        """
        self.core.update(self._all if ids is None else ids, actions, observations)

    def write_features(
        self, features: Float32s, *, column: int = 0, ids: Int64s | None = None
    ) -> None:
        """Write the belief as `BELIEF_FEATURES` policy features per game.

        Args:
            features: One row per game, C-contiguous; its columns from `column` to
                `column + BELIEF_FEATURES` are written. They are the fields of `probabilities`.
            column: First column.
            ids: Games of the rows.
        """
        self.core.write_features(self._all if ids is None else ids, features, column)

    @property
    def probabilities(self) -> Records:
        """Probabilities by name, one record per game; see `dtypes.BELIEF`."""
        rows = np.zeros(self.games, dtypes.BELIEF)
        self.core.write_probabilities(dtypes.as_bytes(rows))
        return rows

    @property
    def posterior(self) -> Float64s:
        """Probability of each red agent of `reds`, (games, reds)."""
        posterior: Float64s = self.probabilities["reds"][:, self._columns]
        return posterior

    @property
    def log_likelihood(self) -> Float64s:
        """Logarithm of the probability of the episode's observations, (games, reds).

        One column per red agent of `reds`; -inf if the agent cannot have caused them. Blue's
        actions are given. Differences of two columns are log Bayes factors.
        """
        prior = self.config.prior[self._columns]
        evidence = self._states()["log_evidence"][:, None]
        with np.errstate(divide="ignore"):
            result: Float64s = evidence + np.log(self.posterior) - np.log(prior / prior.sum())
        return result

    @property
    def counts(self) -> Int64s:
        """Number of hypotheses of each game."""
        return self._states()["count"].astype(np.int64)

    @property
    def fits(self) -> Bools:
        """Whether any red agent can have caused the observations of each game."""
        return self.counts > 0

    @property
    def dropped(self) -> Records:
        """Number and probability of the hypotheses dropped in each game's episode.

        `mass` is summed over the steps. While it is 0 the belief is exact.
        """
        states = self._states()
        dropped = np.zeros(self.games, [("number", np.int64), ("mass", np.float64)])
        dropped["number"] = states["dropped"]
        dropped["mass"] = states["dropped_mass"]
        return dropped

    @property
    def totals(self) -> BeliefTotals:
        """Sums over all updates of this filter."""
        return BeliefTotals(*self.core.totals())

    def hypotheses(self, game: int) -> tuple[Records, Float64s]:
        """Hypotheses of a game (`dtypes.GAME`), reduced to what matters, and their probabilities.

        Raises:
            IndexError: there is no such game.
        """
        games, weights = self.core.hypotheses(game)
        return np.frombuffer(games, dtypes.GAME), np.array(weights)

    def probability_of(self, ids: Int64s, blobs: Sequence[bytes]) -> Float64s:
        """Probability of saved games (`Batch.save`), one per entry of `ids`.

        It is that of the state, up to what no future depends on: the random stream, the return, and
        whatever else the belief leaves out (docs/belief.md). 0 if the belief excludes the state.

        Raises:
            IndexError: there is no such game.
            ValueError: a snapshot is damaged.
        """
        probabilities = np.zeros(len(ids))
        self.core.write_probabilities_of(ids, list(blobs), probabilities)
        return probabilities

    def sample(self, ids: Int64s, seed: int, *, max_steps: int = DEFAULT_MAX_STEPS) -> list[bytes]:
        """Draw whole games from the belief, one per entry of `ids`.

        Each is a snapshot for `Batch.restore` that can be played on: sample i has the random stream
        of seed `seed + i`. Its return counts from now on, and each kind of red's sessions on a host
        counts once.

        Args:
            ids: Games; one may be named several times.
            seed: Decides the draws and the random streams.
            max_steps: Length of the episodes of the sampled games.

        Raises:
            IndexError: there is no such game.
            ValueError: no red fits a game, or it has played `max_steps` already.
        """
        if not 1 <= max_steps <= _core.MAX_STEPS:
            raise ValueError(f"max_steps must be from 1 to {_core.MAX_STEPS}, got {max_steps}")
        return [
            self.core.sample(int(game), (seed + i) % 2**64, max_steps) for i, game in enumerate(ids)
        ]

    def state(self) -> Arrays:
        """All beliefs as arrays, for `restore`."""
        states = self._states()
        saved = np.frombuffer(self.core.saved_hypotheses(), np.uint8)
        return {
            "belief_states": dtypes.as_bytes(states),
            "belief_hypotheses": saved.reshape(-1, _core.HYPOTHESIS_BYTES).copy(),
        }

    def restore(self, arrays: Arrays) -> None:
        """Replace all beliefs by those that `state` returned.

        Raises:
            ValueError: the arrays are missing, damaged, or of a filter with other settings; nothing
                was changed.
        """
        for name in ("belief_states", "belief_hypotheses"):
            if name not in arrays:
                raise ValueError(f"a saved belief must have {name}, got {short_repr(list(arrays))}")
        self.core.restore(arrays["belief_states"], arrays["belief_hypotheses"])

    @property
    def _columns(self) -> list[int]:
        """Red agents of `reds`, as indices of BELIEF_REDS."""
        return [BELIEF_REDS.index(red) for red in self.reds]

    def _states(self) -> Records:
        states = np.zeros(self.games, dtypes.BELIEF_STATE)
        self.core.write_states(dtypes.as_bytes(states))
        return states
