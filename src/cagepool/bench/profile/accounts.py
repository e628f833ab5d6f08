"""From what the clock counted to what was spent: the profiler's own cost apart, samples for all."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple

from cagepool.bench.profile.clock import Lane, Node, Spot, Stage, StageClock

CALLS = 20  # watched ones in a trial
TRIALS = 50  # to begin with


class OwnCost(NamedTuple):
    """Seconds that watching one call takes."""

    inside: float
    """That the clock counts at the spot itself."""
    around: float
    """That it counts at the spot from which the call came."""


@dataclass(frozen=True)
class Block:
    """A spot as reached from another one."""

    label: str
    stage: Stage
    seconds: float
    """Spent right there, the profiler's own left out."""
    calls: float
    parts: tuple["Block", ...] = ()

    @property
    def total(self) -> float:
        """Seconds with all that was called from there."""
        return self.seconds + sum(part.total for part in self.parts)

    def stages(self) -> Counter[Stage]:
        """Seconds by stage."""
        found = Counter({self.stage: self.seconds})
        for part in self.parts:
            found.update(part.stages())
        return found

    def times(self, seconds: float, calls: float) -> "Block":
        """The same of so many times as much."""
        parts = tuple(part.times(seconds, calls) for part in self.parts)
        return Block(self.label, self.stage, seconds * self.seconds, calls * self.calls, parts)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "label": self.label,
            "stage": str(self.stage),
            "seconds": self.seconds,
            "calls": round(self.calls),
            "parts": [part.as_dict() for part in self.parts],
        }


class Calibration:
    """Finds out what watching costs, as often as it is asked: machines are not always as fast."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Try it some times for a start."""
        self._now = now
        self._trials: list[OwnCost] = []
        for _ in range(TRIALS):
            self.try_again()

    @property
    def cost(self) -> OwnCost:
        """The median of all trials."""
        inside, around = zip(*self._trials, strict=True)
        return OwnCost(median(inside), max(0.0, median(around)))

    def try_again(self) -> None:
        """Call a method that does nothing with and without a watch."""
        now, idle = self._now, _Idle()
        clock = StageClock(now)
        watched = _Idle()
        watched.call = clock.watched(watched.call, Spot("call", Stage.STEP))  # type: ignore[method-assign]
        with clock.running(Spot("trial", Stage.OTHER)) as lane:
            for _ in range(CALLS):
                watched.call(1, 2)
        start = now()
        for _ in range(CALLS):
            idle.call(1, 2)
        bare = now() - start
        inside = lane.root.children["call"].seconds
        self._trials.append(OwnCost(inside / CALLS, (lane.root.seconds - bare) / CALLS))


class _Idle:
    def call(self, one: int, other: int) -> None: ...


def counted_cost(root: Node, cost: OwnCost) -> float:
    """Seconds that watching has taken under a node, by the number of calls."""
    return sum(_taken(node, cost) for node in root.walk())


def _taken(node: Node, cost: OwnCost) -> float:
    nested = sum(child.entries for child in node.children.values())
    return min(node.seconds, node.entries * cost.inside + nested * cost.around)


def settled(lane: Lane, cost: OwnCost, seen: Spot, unseen: Spot) -> Block:
    """What a thread spent; adds up to all of its time.

    Args:
        lane: Its clock, which has stopped.
        cost: What watching cost; it becomes a part of its own.
        seen: Where some slices were looked into; its parts stand for those of
        unseen: too, where nobody looked further.
    """
    block = _stretched(_block(lane.root, cost), seen, unseen)
    own = Block(Stage.PROFILER, Stage.PROFILER, counted_cost(lane.root, cost), 0)
    return replace(block, parts=(*block.parts, own))


def _block(node: Node, cost: OwnCost) -> Block:
    parts = tuple(_block(child, cost) for child in node.children.values())
    seconds = node.seconds - _taken(node, cost)
    return Block(node.spot.label, node.spot.stage, seconds, node.entries, parts)


def _stretched(block: Block, seen: Spot, unseen: Spot) -> Block:
    """The same with the parts of the seen in the place of the unseen."""
    parts = {part.label: part for part in block.parts}
    found, missing = parts.pop(seen.label, None), parts.pop(unseen.label, None)
    if found is None or missing is None or not found.total:
        return block
    seconds = (found.total + missing.total) / found.total
    calls = (found.calls + missing.calls) / found.calls
    return replace(block, parts=(found.times(seconds, calls), *parts.values()))
