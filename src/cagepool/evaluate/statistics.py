"""Statistics of played games: scores, loss by cause, use of actions, compliance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from cagepool import _core
from cagepool.evaluate.defenders import Defender, GameBatch
from cagepool.evaluate.reward_breakdown import loss_by_cause
from cagepool.evaluate.rollout import (
    OFFICIAL_LENGTHS,
    Engine,
    NativeEngine,
    OnProgress,
    Trial,
    game_seeds,
    ignore_progress,
    play_steps,
)
from cagepool.runs.schema import ActionCounts, OrderCompliance, Score, ScoreCell, TrialScores
from cagepool.sim.compliance import compliance_summary
from cagepool.sim.names import HOSTS, OFFICIAL_REDS, action_name
from cagepool.types import Bytes, Float64s, Int32s, Int64s

NO_HOST = "no host"  # column of Sleep and Monitor in counts of actions


def mean_score(totals: Float64s) -> Score:
    """Mean and standard error of the total rewards of episodes."""
    error = totals.std(ddof=1) / np.sqrt(len(totals))
    return Score(float(totals.mean()), float(error), len(totals))


@dataclass(frozen=True)
class ScoreTable:
    """Scores of a defender in a trial."""

    trial: Trial
    scores: dict[str, dict[int, Score]]  # by red, then by length
    total: Score | None  # sum over the nine official cells; none unless all were played

    @classmethod
    def from_totals(cls, trial: Trial, totals: Mapping[str, Float64s]) -> "ScoreTable":
        """The table of episodes with these total rewards, (episode, length), by red."""
        columns = {length: column for column, length in enumerate(trial.lengths)}
        scores = {
            red: {length: mean_score(red_totals[:, column]) for length, column in columns.items()}
            for red, red_totals in totals.items()
        }
        if {*OFFICIAL_REDS} - {*totals} or {*OFFICIAL_LENGTHS} - {*columns}:
            return cls(trial, scores, None)
        # Games against different reds are independent, so sums over rows give the standard error.
        official = [columns[length] for length in OFFICIAL_LENGTHS]
        nine_cells = np.sum([totals[red][:, official].sum(axis=1) for red in OFFICIAL_REDS], axis=0)
        return cls(trial, scores, mean_score(nine_cells))

    def to_record(self) -> TrialScores:
        """The table in the form of `evaluation.json`."""
        cells = [
            ScoreCell(
                red=red,
                length=length,
                mean=score.mean,
                standard_error=score.standard_error,
                episodes=score.episodes,
            )
            for red, by_length in self.scores.items()
            for length, score in by_length.items()
        ]
        names = Trial.__dataclass_fields__.keys() & {*TrialScores.__struct_fields__}
        settings = {name: getattr(self.trial, name) for name in names}
        return TrialScores(**settings, scores=cells, total=self.total)


@dataclass(frozen=True)
class GameStatistics:
    """Counts over the games of a trial against one red."""

    totals: Float64s  # total rewards, (episode, length)
    privileged_steps: Int64s  # (HOST_COUNT,), steps in which red was privileged on a host
    outage_steps: int  # steps in which OTService did not run
    action_uses: Int64s  # (ACTION_COUNT,)
    counters: Int32s  # (episode, COUNTER_COUNT), see `sim.COUNTERS`; no rows without an order
    definition: str  # of compliance
    actions: Bytes  # (game, step), of the first games: enough to play them again

    @property
    def episodes(self) -> int:
        """Number of games."""
        return len(self.totals)

    def mean_loss(self) -> dict[str, float]:
        """Mean loss per game by cause; the sum is minus the mean total reward."""
        tenths = loss_by_cause(self.privileged_steps, self.outage_steps, self.action_uses)
        return {cause: loss / (10 * self.episodes) for cause, loss in tenths.items()}

    def mean_action_uses(self) -> ActionCounts:
        """Mean uses per game by kind of action and host."""
        places = [_kind_and_host(action) for action in range(_core.ACTION_COUNT)]
        kinds = list(dict.fromkeys(kind for kind, _ in places))
        hosts = [*HOSTS, NO_HOST]
        counts = np.zeros((len(kinds), len(hosts)))
        for (kind, host), uses in zip(places, self.action_uses, strict=True):
            counts[kinds.index(kind), hosts.index(host)] = uses / self.episodes
        return ActionCounts(kinds=kinds, hosts=hosts, counts=counts.tolist())

    def compliance(self) -> OrderCompliance | None:
        """Compliance with the order (docs/workflow.md, section 2); none without an order."""
        if not len(self.counters):
            return None
        summary = compliance_summary(self.counters, self.definition)
        return msgspec.convert(summary.as_dict(), OrderCompliance)


def play_and_count(
    defender: Defender,
    trial: Trial,
    red: str,
    engine: Engine | None = None,
    on_progress: OnProgress = ignore_progress,
) -> GameStatistics:
    """Play the games of a trial against one red and collect their statistics."""
    engine = engine or NativeEngine()
    seeds = game_seeds(trial, red)
    batches = []
    with engine.open(trial, red) as start:
        for first in range(0, trial.episodes, engine.max_games):
            batch = start(seeds[first : first + engine.max_games])
            batches.append(_play_batch(defender, trial, batch, on_progress))
    return _concatenate(batches)


def _play_batch(
    defender: Defender, trial: Trial, batch: GameBatch, on_progress: OnProgress
) -> GameStatistics:
    totals = []
    privileged_steps = np.zeros(_core.HOST_COUNT, np.int64)
    outage_steps = 0
    actions = np.empty((batch.games, trial.max_steps), np.uint8)
    for step, so_far in play_steps(defender, trial, batch):
        if step in trial.lengths:
            totals.append(so_far)
        privileged_steps += np.count_nonzero(batch.true_state["privileged"], axis=0)
        outage_steps += int(np.count_nonzero(batch.true_state["ot_running"] == 0))
        actions[:, step - 1] = batch.moves["blue_action"]
        on_progress(batch.games / trial.max_steps)
    return GameStatistics(
        totals=np.stack(totals, axis=1),
        privileged_steps=privileged_steps,
        outage_steps=outage_steps,
        action_uses=np.bincount(actions.ravel(), minlength=_core.ACTION_COUNT),
        counters=batch.counters.copy(),
        definition=trial.definition,
        actions=actions,
    )


def _concatenate(batches: Sequence[GameStatistics]) -> GameStatistics:
    return GameStatistics(
        totals=np.concatenate([batch.totals for batch in batches]),
        privileged_steps=np.sum([batch.privileged_steps for batch in batches], axis=0),
        outage_steps=sum(batch.outage_steps for batch in batches),
        action_uses=np.sum([batch.action_uses for batch in batches], axis=0),
        counters=np.concatenate([batch.counters for batch in batches]),
        definition=batches[0].definition,
        actions=batches[0].actions,
    )


def _kind_and_host(action: int) -> tuple[str, str]:
    kind, _, host = action_name(action).partition(" ")
    return kind, host or NO_HOST
