"""Looking into some slices of a run only, so that looking costs next to nothing."""

from collections.abc import Callable
from statistics import median, quantiles
from typing import Any, NamedTuple

import numpy as np

from cagepool.bench.profile.accounts import Calibration, OwnCost, counted_cost
from cagepool.bench.profile.clock import Node, Spot, Stage, StageClock
from cagepool.bench.profile.instruments import Instruments

PREPARING = Spot("instruments put on", Stage.PROFILER)
FINISHING = Spot("instruments taken off", Stage.PROFILER)
MOST = 0.01  # share of the time beyond which nothing is looked into


class Turn(NamedTuple):
    """A slice that is over."""

    is_seen: bool
    seconds: float
    steps: int

    @property
    def seconds_per_step(self) -> float:
        """Of one step of all environments."""
        return self.seconds / self.steps


class Slices:
    """Runs a part of the program again and again, with its instruments on or off.

    The first slice is looked into, and no two in a row. Beyond that luck decides, so that nothing
    that recurs is always missed, as long as looking stays cheap.
    """

    def __init__(self, clock: StageClock, spot: Spot) -> None:
        """Count slices that are looked into at this spot."""
        self.calibration = Calibration(clock.now)
        self.seen = spot
        self.unseen = Spot(f"{spot.label}, {Stage.UNSEEN}", Stage.UNSEEN)
        self.instruments = Instruments()
        self.first = Instruments()  # on in the first slice only
        self.turns: list[Turn] = []
        self._clock = clock
        self._run_seen = clock.watched(_called, self.seen)
        self._run_unseen = clock.watched(_called, self.unseen)
        self._prepare = clock.watched(self._put_on, PREPARING)
        self._finish = clock.watched(self._take_off, FINISHING)
        self._began = 0.0
        self._own_seconds = 0.0  # that looking has taken
        self._rng = np.random.default_rng(0)

    def run(self, part: Callable[[], Any], steps: Callable[[], int]) -> Any:
        """Run one slice; `steps` tells afterwards how many steps it had."""
        is_seen = self._looks()
        try:
            if is_seen:
                self._prepare()
            start = self._clock.now()
            result = (self._run_seen if is_seen else self._run_unseen)(part)
            self.turns.append(Turn(is_seen, self._clock.now() - start, steps()))
        finally:
            if is_seen:
                self._finish()
        return result

    @property
    def overhead(self) -> dict[str, Any]:
        """How much slower slices were that were looked into; nothing is known of one kind alone."""
        seen, bare = (self._rates(is_seen=is_seen) for is_seen in (True, False))
        return {
            "slices": len(self.turns),
            "looked_into": sum(turn.is_seen for turn in self.turns),
            "compared": [len(seen), len(bare)],
            "seconds_per_step": [_quartiles(seen), _quartiles(bare)],
            "slower": median(seen) / median(bare) - 1 if seen and bare else None,
            "seconds_per_watched_call": sum(self.calibration.cost),
        }

    @property
    def seen_seconds(self) -> float:
        """Of the slices that were looked into."""
        return sum(turn.seconds for turn in self.turns if turn.is_seen)

    def _rates(self, *, is_seen: bool) -> list[float]:
        """Of all slices but the first, which also warms up."""
        return [turn.seconds_per_step for turn in self.turns[1:] if turn.is_seen == is_seen]

    def _looks(self) -> bool:
        if not self.turns:
            self._began = self._clock.now()
            return True
        if self.turns[-1].is_seen or self._rng.random() < 0.5:
            return False
        return self._own_seconds < MOST * (self._clock.now() - self._began)

    def _put_on(self) -> None:
        self.calibration.try_again()
        self.instruments.put_on()
        if not self.turns:
            self.first.put_on()

    def _take_off(self) -> None:
        self.first.take_off()
        self.instruments.take_off()
        cost = self.calibration.cost
        self._own_seconds = sum(_own(lane.root, cost) for lane in self._clock.lanes.values())


def _own(root: Node, cost: OwnCost) -> float:
    """Seconds of the profiler's own."""
    ours = (node.seconds for node in root.walk() if node.spot.stage == Stage.PROFILER)
    return counted_cost(root, cost) + sum(ours)


def _called(part: Callable[[], Any]) -> Any:
    return part()


def _quartiles(values: list[float]) -> list[float] | None:
    return quantiles(values, n=4) if len(values) > 1 else None
