"""Scores of defenders over many networks: mean, spread, and the gap to training networks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cagepool.evaluate.defenders import Defender
from cagepool.evaluate.rollout import (
    Engine,
    NativeEngine,
    OnProgress,
    Trial,
    ignore_progress,
    play_steps,
)
from cagepool.runs.schema import NetworkScoresRecord, NetworkTotal
from cagepool.scenarios import Scenario
from cagepool.sim.names import OFFICIAL_REDS, red_bitmask
from cagepool.types import Float64s, Seeds

EPISODES = 20
"""Games per network and red."""
BASELINES = ("react-restore", "react-remove", "sleep")
"""Scripted defenders that a table of networks shows."""
TRAINING_NETWORKS = 100
"""Training networks that a policy is compared on, evenly spread over all of them."""


@dataclass(frozen=True)
class NetworkScores:
    """Total rewards of a defender on each of several networks."""

    defender: str
    networks: tuple[str, ...]  # names
    lengths: tuple[int, ...]
    games: dict[str, Float64s]  # by red: total rewards, (games, networks, lengths)

    @property
    def cells(self) -> dict[str, Float64s]:
        """Means over games by red, (networks, lengths)."""
        return {red: totals.mean(0) for red, totals in self.games.items()}

    @property
    def totals(self) -> Float64s:
        """Sum over reds and lengths of each network's means, as the official total sums them."""
        totals: Float64s = np.sum([cells.sum(1) for cells in self.cells.values()], axis=0)
        return totals

    @property
    def mean(self) -> float:
        """Mean of the totals over networks."""
        return float(self.totals.mean())

    @property
    def spread(self) -> float:
        """Standard deviation of the totals over networks; nan for a single one."""
        return float(self.totals.std(ddof=1)) if len(self.networks) > 1 else float("nan")

    @property
    def standard_error(self) -> float:
        """Of the mean, if the networks are drawn from a larger set; nan for a single one."""
        return self.spread / float(np.sqrt(len(self.networks)))

    @property
    def network_errors(self) -> Float64s:
        """Standard error of each network's total, whose games are its only source of chance."""
        sums = [totals.sum(2) for totals in self.games.values()]
        variances = [of_red.var(0, ddof=1) / len(of_red) for of_red in sums]
        errors: Float64s = np.sqrt(np.sum(variances, axis=0))
        return errors

    def differences(self, other: "NetworkScores") -> Float64s:
        """This score minus another one, network by network, in standard errors; 0 if equal."""
        difference = self.totals - other.totals
        errors = np.hypot(self.network_errors, other.network_errors)
        return np.divide(difference, errors, out=np.zeros_like(difference), where=errors > 0)

    def to_record(self) -> NetworkScoresRecord:
        """The scores in the form of a file."""
        return NetworkScoresRecord(
            defender=self.defender,
            mean=self.mean,
            standard_error=_number(self.standard_error),
            spread=_number(self.spread),
            cells={
                red: dict(zip(self.lengths, cells.mean(0).tolist(), strict=True))
                for red, cells in self.cells.items()
            },
            networks=[
                NetworkTotal(name=name, total=total)
                for name, total in zip(self.networks, self.totals.tolist(), strict=True)
            ],
        )


def playable_reds(scenarios: Sequence[Scenario]) -> tuple[str, ...]:
    """Official reds that can play all of these networks."""
    return tuple(
        red
        for red in OFFICIAL_REDS
        if all(scenario.red_refusal(red) is None for scenario in scenarios)
    )


def network_scores(  # noqa: PLR0913 - what to play, and how
    name: str,
    defender: Defender,
    trial: Trial,
    reds: Sequence[str],
    *,
    engine: Engine | None = None,
    on_progress: OnProgress = ignore_progress,
) -> NetworkScores:
    """Play `trial.episodes` games per network of the trial and red.

    Raises:
        ValueError: the defender cannot play a network.
    """
    engine = engine or NativeEngine()
    # CybORG plays one network at a time.
    parts = [trial] if isinstance(engine, NativeEngine) else _one_by_one(trial)
    games = {
        red: np.concatenate(
            [_play_together(defender, part, red, engine, on_progress) for part in parts], axis=1
        )
        for red in reds
    }
    names = tuple(scenario.name for scenario in trial.scenarios)
    return NetworkScores(name, names, trial.lengths, games)


def _one_by_one(trial: Trial) -> list[Trial]:
    return [replace(trial, scenarios=(scenario,)) for scenario in trial.scenarios]


def _play_together(
    defender: Defender, trial: Trial, red: str, engine: Engine, on_progress: OnProgress
) -> Float64s:
    """Total rewards, (games, networks, lengths)."""
    count = len(trial.scenarios)
    by_network = [network_seeds(trial, red, scenario) for scenario in trial.scenarios]
    seeds = np.stack(by_network, 1).ravel()  # game i plays network i modulo their number
    per_batch = max(1, engine.max_games // count) * count
    totals = []
    with engine.open(trial, red) as start:
        for first in range(0, len(seeds), per_batch):
            batch = start(seeds[first : first + per_batch])
            steps = play_steps(defender, trial, batch)
            at_lengths = [so_far for step, so_far in steps if step in trial.lengths]
            totals.append(np.stack(at_lengths, 1).reshape(-1, count, len(trial.lengths)))
            on_progress(batch.games)
    return np.concatenate(totals)


def network_seeds(trial: Trial, red: str, scenario: Scenario) -> Seeds:
    """Seeds of the games on one network: others than on other networks, whatever these are.

    With shared seeds, red's draws would agree between networks, and so would the errors of means.
    """
    key = red_bitmask(red), int(scenario.hash[:8], 16)
    sequence = np.random.SeedSequence(trial.seed, spawn_key=key)
    return np.random.PCG64(sequence).random_raw(trial.episodes)


def spread_evenly(scenarios: tuple[Scenario, ...], count: int) -> tuple[Scenario, ...]:
    """At most so many of the scenarios, evenly spread over all of them."""
    if len(scenarios) <= count:
        return scenarios
    return tuple(scenarios[number * len(scenarios) // count] for number in range(count))


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
