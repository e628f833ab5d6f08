"""Play a trial's games against one red and count what happened in them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from cagepool import _core
from cagepool.evaluate.defenders import Defender
from cagepool.evaluate.games import Games
from cagepool.evaluate.reward_breakdown import loss_parts
from cagepool.evaluate.rollout import GAMES_AT_ONCE, Trial, game_seeds, opened, played
from cagepool.sim.compliance import compliance_summary
from cagepool.types import Bytes, Float64s, Int32s, Int64s, Seeds

Start: TypeAlias = Callable[[Seeds], Games]
"""Starts a game for each seed."""


class Engine(Protocol):
    """Who plays the games."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def at_once(self) -> int:
        """Games that it can start at once."""

    def open(self, trial: Trial, red: str, /) -> AbstractContextManager[Start]:
        """Make ready for a trial's games against one red."""


class NativeEngine:
    """The core in this process."""

    name = "native"
    at_once = GAMES_AT_ONCE

    @contextmanager
    def open(self, trial: Trial, red: str) -> Iterator[Start]:
        """Nothing to make ready."""
        yield lambda seeds: opened(trial, red, seeds)


@dataclass(frozen=True)
class Tally:
    """What came of games."""

    totals: Float64s  # (episode, length)
    held: Int64s  # (HOST_COUNT,), steps in which red was privileged there
    stopped: int  # steps in which OTService did not run
    uses: Int64s  # (ACTION_COUNT,), how often each action was played
    counters: Int32s  # (episode, COUNTER_COUNT), see `sim.COUNTERS`; no rows without an order
    definition: str  # of compliance
    actions: Bytes  # (game, step), of the first games: enough to play them again

    @property
    def episodes(self) -> int:
        """How many games."""
        return len(self.totals)

    def loss(self) -> dict[str, float]:
        """Mean loss of a game by part; the parts add up to minus its mean total."""
        parts = loss_parts(self.held, self.stopped, self.uses)
        return {part: tenths / (10 * self.episodes) for part, tenths in parts.items()}

    def compliance(self) -> dict[str, float | None] | None:
        """Compliance with the order (docs/workflow.md, section 2); none without an order."""
        if not len(self.counters):
            return None
        return compliance_summary(self.counters, self.definition).as_dict()


def tally(
    defender: Defender,
    trial: Trial,
    red: str,
    engine: Engine | None = None,
    on_played: Callable[[int], None] = lambda _games: None,
) -> Tally:
    """Play the trial's games against one red; `on_played` is told how many more are over."""
    engine = engine or NativeEngine()
    seeds = game_seeds(trial, red)
    parts = []
    with engine.open(trial, red) as start:
        for first in range(0, trial.episodes, engine.at_once):
            some = seeds[first : first + engine.at_once]
            parts.append(_tally_together(defender, trial, start(some)))
            on_played(len(some))
    return _joined(parts)


def _tally_together(defender: Defender, trial: Trial, batch: Games) -> Tally:
    totals = []
    held = np.zeros(_core.HOST_COUNT, np.int64)
    stopped = 0
    actions = np.empty((batch.games, trial.max_steps), np.uint8)
    for step, so_far in played(defender, trial, batch):
        if step in trial.lengths:
            totals.append(so_far)
        held += np.count_nonzero(batch.true_state["privileged"], axis=0)
        stopped += int(np.count_nonzero(batch.true_state["ot_running"] == 0))
        actions[:, step - 1] = batch.moves["blue_action"]
    uses = np.bincount(actions.ravel(), minlength=_core.ACTION_COUNT)
    return Tally(
        totals=np.stack(totals, axis=1),
        held=held,
        stopped=stopped,
        uses=uses,
        counters=batch.counters.copy(),
        definition=trial.definition,
        actions=actions,
    )


def _joined(parts: list[Tally]) -> Tally:
    return Tally(
        totals=np.concatenate([part.totals for part in parts]),
        held=np.sum([part.held for part in parts], axis=0),
        stopped=sum(part.stopped for part in parts),
        uses=np.sum([part.uses for part in parts], axis=0),
        counters=np.concatenate([part.counters for part in parts]),
        definition=parts[0].definition,
        actions=parts[0].actions,
    )
