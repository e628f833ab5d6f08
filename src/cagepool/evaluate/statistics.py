"""Statistics of played games: scores, loss by cause, use of actions, compliance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np

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
from cagepool.policy.defenders import Defender, GameBatch
from cagepool.runs.schema import (
    ActionCounts,
    DefenderScores,
    Differences,
    OrderCompliance,
    ScenarioScore,
    Score,
    ScoreCell,
    TrialScores,
)
from cagepool.scenarios import CAGE2, Layout
from cagepool.sim.compliance import compliance_summary
from cagepool.sim.names import OFFICIAL_REDS
from cagepool.sim.rewards import REWARD_PARTS, reward_tables
from cagepool.types import Float64s, Int32s, Int64s

CAUSES = REWARD_PARTS
NO_HOST = "no host"  # column of Sleep and Monitor in counts of actions


def mean_score(totals: Float64s) -> Score:
    """Mean and standard error of total rewards, (episode,) or (episode, scenario).

    The error is over scenarios, as a sample of a larger set; of one scenario, over episodes.
    """
    samples = totals.mean(axis=0) if totals.ndim > 1 and totals.shape[1] > 1 else totals.ravel()
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    return Score(float(samples.mean()), float(error), len(totals))


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of a defender in a trial."""

    trial: Trial
    totals: Mapping[str, Float64s]  # total rewards by red, (episode, scenario, length)

    @cached_property
    def scores(self) -> dict[str, dict[int, Score]]:
        """Scores by red, then by length."""
        return {
            red: {
                length: mean_score(totals[:, :, column])
                for column, length in enumerate(self.trial.lengths)
            }
            for red, totals in self.totals.items()
        }

    @property
    def is_official(self) -> bool:
        """Whether the nine cells of the official protocol were played."""
        has_cells = {*OFFICIAL_REDS} <= {*self.totals} and {*OFFICIAL_LENGTHS} <= {
            *self.trial.lengths
        }
        return has_cells and self.trial.scenarios == (CAGE2,)

    @cached_property
    def sums(self) -> Float64s:
        """Sum of all cells, or of the nine official ones, (episode, scenario).

        Games against different reds are independent, so that sums over rows give the error.
        """
        lengths = OFFICIAL_LENGTHS if self.is_official else self.trial.lengths
        columns = [self.trial.lengths.index(length) for length in lengths]
        sums: Float64s = np.sum(
            [totals[:, :, columns].sum(axis=2) for totals in self.totals.values()], axis=0
        )
        return sums

    @cached_property
    def total(self) -> Score:
        """Score of the sum of all cells, or of the nine official ones."""
        return mean_score(self.sums)

    @cached_property
    def scenario_scores(self) -> list[ScenarioScore]:
        """Total on each scenario; its games are the only source of chance."""
        return [
            ScenarioScore(name=scenario.name, **msgspec.structs.asdict(mean_score(sums)))
            for scenario, sums in zip(self.trial.scenarios, self.sums.T, strict=True)
        ]

    @property
    def spread(self) -> float | None:
        """Standard deviation of the total over scenarios; none of a single one."""
        means = self.sums.mean(axis=0)
        return float(means.std(ddof=1)) if len(means) > 1 else None

    def to_record(self) -> TrialScores:
        """The table and the settings of its games, as `evaluation.json` has them."""
        names = Trial.__dataclass_fields__.keys() & {*TrialScores.__struct_fields__}
        settings = {name: getattr(self.trial, name) for name in names}
        return msgspec.convert(settings | self._figures(), TrialScores)

    def to_reference(self, defender: str) -> DefenderScores:
        """The table as a comparison in `evaluation.json`."""
        return msgspec.convert({"defender": defender, **self._figures()}, DefenderScores)

    def _figures(self) -> dict[str, object]:
        cells = [
            ScoreCell(red=red, length=length, **msgspec.structs.asdict(score))
            for red, by_length in self.scores.items()
            for length, score in by_length.items()
        ]
        return {
            "scores": cells,
            "total": self.total,
            "official": self.is_official,
            "spread": self.spread,
            "scenarios": self.scenario_scores,
        }


def score_differences(first: ScoreTable, second: ScoreTable) -> Differences:
    """Differences of two tables of the same cells, in standard errors of the difference.

    The deviation of the games is that of the second table, which must have many games: a few games
    of the first one would underestimate it. A difference without any deviation is infinite.
    """
    columns = {length: column for column, length in enumerate(first.trial.lengths)}
    cells: dict[str, dict[int, float | None]] = {
        red: {
            length: _difference(totals[:, :, column], second.totals[red][:, :, column])
            for length, column in columns.items()
        }
        for red, totals in first.totals.items()
    }
    return Differences(
        cells=cells,
        total=_difference(first.sums, second.sums),
        scenarios=[
            _difference(one[:, None], other[:, None])
            for one, other in zip(first.sums.T, second.sums.T, strict=True)
        ],
    )


def _difference(first: Float64s, second: Float64s) -> float:
    """Of the means of totals, (episode, scenario), of the same scenarios."""
    difference = float(first.mean() - second.mean())
    deviation = np.sqrt(second.var(axis=0, ddof=1).sum()) / second.shape[1]
    error = float(deviation * np.sqrt(1 / len(first) + 1 / len(second)))
    if not error:
        return float(np.copysign(np.inf, difference)) if difference else 0.0
    return difference / error


@dataclass(frozen=True)
class GameStatistics:
    """Counts over the games of a trial against one red."""

    totals: Float64s  # total rewards, (episode, scenario, length)
    loss_tenths: Int64s  # (CAUSES,), of all games
    action_uses: Int64s  # by action of the layout
    layout: Layout
    counters: Int32s  # (game, COUNTER_COUNT), see `sim.COUNTERS`; no rows without an order
    definition: str  # of compliance
    actions: Int64s  # (game, step), of the first games; game i plays scenario i modulo their number

    @property
    def games(self) -> int:
        """Number of games."""
        return self.totals[:, :, 0].size

    def mean_loss(self) -> dict[str, float]:
        """Mean loss per game by cause; the sum is minus the mean total reward."""
        return {
            cause: int(loss) / (10 * self.games)
            for cause, loss in zip(CAUSES, self.loss_tenths, strict=True)
        }

    def mean_action_uses(self) -> ActionCounts:
        """Mean uses per game by kind of action and host."""
        places = [name.partition(" ")[::2] for name in self.layout.actions]
        kinds = list(dict.fromkeys(kind for kind, _ in places))
        hosts = [*self.layout.slots, NO_HOST]
        counts = np.zeros((len(kinds), len(hosts)))
        for (kind, host), uses in zip(places, self.action_uses, strict=True):
            counts[kinds.index(kind), hosts.index(host or NO_HOST)] = uses / self.games
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
    if isinstance(engine, NativeEngine) or len(trial.scenarios) == 1:
        return _play_together(defender, trial, red, engine, on_progress)
    trial = replace(trial, layout=trial.layout or Layout.of(trial.scenarios))
    parts = [
        _play_together(defender, replace(trial, scenario=scenario), red, engine, on_progress)
        for scenario in trial.scenarios  # CybORG plays one at a time
    ]
    totals = np.concatenate([part.totals for part in parts], axis=1)
    actions = np.stack([part.actions for part in parts], axis=1).reshape(-1, trial.max_steps)
    return replace(_sum(parts), totals=totals, actions=actions)


def _play_together(
    defender: Defender, trial: Trial, red: str, engine: Engine, on_progress: OnProgress
) -> GameStatistics:
    count = len(trial.scenarios)
    by_scenario = [game_seeds(trial, red, scenario) for scenario in trial.scenarios]
    seeds = np.stack(by_scenario, axis=1).ravel()  # game i plays scenario i modulo their number
    at_once = max(1, engine.max_games // count) * count
    with engine.open(trial, red) as start:
        batches = [
            _play_batch(defender, trial, start(seeds[first : first + at_once]), on_progress)
            for first in range(0, len(seeds), at_once)
        ]
    totals = np.concatenate([batch.totals for batch in batches])
    return replace(_sum(batches), totals=totals, actions=batches[0].actions)


def _play_batch(
    defender: Defender, trial: Trial, batch: GameBatch, on_progress: OnProgress
) -> GameStatistics:
    totals = []
    loss = np.zeros(len(CAUSES), np.int64)
    tables = reward_tables(batch.scenarios, batch.layout)
    actions = np.empty((batch.games, trial.max_steps), np.int64)
    for step, so_far in play_steps(defender, trial, batch):
        if step in trial.lengths:
            totals.append(so_far)
        parts = tables.step_part_tenths(batch.true_state, batch.moves, batch.scenario_ids)
        loss -= parts.sum(axis=0)
        actions[:, step - 1] = batch.moves["blue_action"]
        on_progress(batch.games / trial.max_steps)
    return GameStatistics(
        totals=np.stack(totals, axis=1).reshape(-1, len(trial.scenarios), len(trial.lengths)),
        loss_tenths=loss,
        action_uses=np.bincount(actions.ravel(), minlength=len(batch.layout.actions)),
        layout=batch.layout,
        counters=batch.counters.copy(),
        definition=trial.definition,
        actions=actions,
    )


def _sum(parts: Sequence[GameStatistics]) -> GameStatistics:
    """The first part with the counts of all."""
    return replace(
        parts[0],
        loss_tenths=np.sum([part.loss_tenths for part in parts], axis=0),
        action_uses=np.sum([part.action_uses for part in parts], axis=0),
        counters=np.concatenate([part.counters for part in parts]),
    )
