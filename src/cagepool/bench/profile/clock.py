"""A clock with stages: entering one stops the one around it, so that every moment counts once."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, NamedTuple


class Stage(StrEnum):
    """What time is spent on."""

    FORWARD = "policy forward"
    SAMPLING = "sampling"
    STEP = "env step"
    TRANSPORT = "transport"
    WAITING = "waiting"
    TRUTH = "true state, compliance"
    STORING = "storing"
    ADVANTAGE = "advantage"
    UPDATE = "update"
    LOGGING = "logging"
    CHECKS = "checks"
    START = "start and end"
    OTHER = "other"
    PROFILER = "profiler"
    UNSEEN = "not looked into"
    IDLE = "idle"


# Whatever is called in these belongs to them: asking for a true state may wait for workers too.
CLOSED = (Stage.TRUTH, Stage.CHECKS)


class Spot(NamedTuple):
    """What is watched, and the stage that it is."""

    label: str  # one stage only has this one
    stage: Stage


class Node:
    """A spot as reached from another one, and the time spent right there."""

    __slots__ = ("children", "entries", "is_closed", "seconds", "spot")

    def __init__(self, spot: Spot) -> None:
        """Begin with no time spent."""
        self.spot = spot
        self.is_closed = spot.stage in CLOSED
        self.seconds = 0.0
        self.entries = 0
        self.children: dict[str, Node] = {}  # by label

    def child(self, spot: Spot) -> "Node":
        """The node of a spot that is entered from here."""
        if spot.label not in self.children:
            self.children[spot.label] = Node(spot)
        return self.children[spot.label]

    def walk(self) -> "Iterator[Node]":
        """This node and all under it."""
        yield self
        for child in self.children.values():
            yield from child.walk()


class Lane:
    """The clock of one thread: where it is, and since when."""

    __slots__ = ("mark", "node", "root")

    def __init__(self, root: Spot, mark: float) -> None:
        """Start at the root."""
        self.root = self.node = Node(root)
        self.mark = mark


class StageClock:
    """Times of all threads; those that `running` did not start are idle between watched calls."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        """Read the time from `now`."""
        self.now = now
        self.lanes: dict[str, Lane] = {}
        self._began = 0.0
        self._here = threading.local()

    @contextmanager
    def running(self, root: Spot) -> Iterator[Lane]:
        """Count the time of this thread inside of the block, and that of others beside it."""
        self._began = self.now()
        lane = self._here.lane = self.lanes["main"] = Lane(root, self._began)
        try:
            yield lane
        finally:
            end = self.now()
            for one in self.lanes.values():
                one.node.seconds += end - one.mark
                one.mark = end

    def watched(self, method: Callable[..., Any], spot: Spot) -> Callable[..., Any]:
        """The method, with its time counted at that spot."""
        now, here, label = self.now, self._here, spot.label

        def call(*arguments: Any, **keywords: Any) -> Any:
            try:
                lane = here.lane
            except AttributeError:  # the first call in this thread
                lane = self._new_lane()
            around = lane.node
            if around.is_closed:
                return method(*arguments, **keywords)
            children = around.children
            node = children[label] if label in children else around.child(spot)
            moment = now()
            around.seconds += moment - lane.mark
            lane.mark, lane.node = moment, node
            try:
                return method(*arguments, **keywords)
            finally:
                moment = now()
                node.seconds += moment - lane.mark
                node.entries += 1
                lane.mark, lane.node = moment, around

        return call

    def _new_lane(self) -> Lane:
        name = f"thread {len(self.lanes)}"
        lane = self._here.lane = self.lanes[name] = Lane(Spot(name, Stage.IDLE), self._began)
        return lane
