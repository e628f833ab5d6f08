"""Profiling stages: `with stage("env_step"): ...` counts time while a profile is recorded.

Without a recording `stage` returns one shared object that does nothing (about 0.1 us per `with`).
`cagepool.bench.profile` turns a recording into a table and a flame graph.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

StageName = Literal[
    "setup",  # create and close environments and networks
    "rollout",  # rollout loop: features, rewards and ends into the rollout buffer
    "policy_forward",  # logits of the actor; of MLPs, sampling too
    "sampling",  # action sampling with masks
    "env_step",  # step of the vector environment in this process
    "worker_wait",  # wait for worker processes
    "thread_wait",  # wait for another thread of this process
    "compliance",  # true states, and compliance that is computed from them outside the core
    "advantages",  # critic values and GAE
    "update",  # epochs, minibatches, optimizer
    "evaluation",  # periodic and final evaluation
    "logging",  # metrics, TensorBoard, display
    "checkpoint",  # save weights and state
    "profiler",  # cost of the recording itself
    "unsampled",  # paused recording
    "other",  # main thread outside all stages
    "idle",  # other threads outside all stages
]


@dataclass(frozen=True)
class StageTimes:
    """Times of one stage as entered from its parent stage."""

    name: StageName
    seconds: float
    """Exclusive: without the time of nested stages."""
    calls: int
    children: tuple["StageTimes", ...] = ()
    counted: int = 0
    """Calls that the core has counted; the recording does not pay for them."""

    @property
    def total(self) -> float:
        """Seconds including nested stages."""
        return self.seconds + sum(child.total for child in self.children)

    def by_stage(self) -> Counter[StageName]:
        """Exclusive seconds per stage name."""
        seconds = Counter({self.name: self.seconds})
        for child in self.children:
            seconds.update(child.by_stage())
        return seconds

    def calls_of(self, name: StageName) -> int:
        """Number of times that a stage was entered, here or below."""
        own = self.calls if self.name == name else 0
        return own + sum(child.calls_of(name) for child in self.children)


class Recording:
    """Stage times per thread; complete after the `record` block."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin at the present time of `clock`."""
        self.threads: dict[str, StageTimes] = {}
        """By thread name: "main" is the thread that records. Each total is the wall time."""
        self.messages = 0
        self.message_bytes = 0
        self.entries = 0
        """Number of stages that were entered."""
        self._clock = clock
        self._start = clock()
        self._local = threading.local()
        self._thread_clocks: dict[str, _ThreadClock] = {}
        self._thread_clock("main", "other")

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._start

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Count the time of the block as "unsampled" and ignore the stages in it."""
        global _recording  # noqa: PLW0603
        with stage("unsampled"):
            _recording = None
            try:
                yield
            finally:
                _recording = self

    def enter(self, name: StageName) -> "_Node":
        """Return the node of a stage that is entered from the current stage of this thread."""
        self.entries += 1
        return self._current_node().child(name)

    def divide(self, seconds: float, shares: Mapping[StageName, float], calls: int) -> None:
        """Move shares of the last `seconds` of the current stage to stages within it."""
        node = self._current_node()
        for name, share in shares.items():
            child = node.child(name)
            child.seconds += share * seconds
            child.calls += calls
            child.counted += calls
            node.seconds -= share * seconds

    def finish(self) -> None:
        """Fill `threads` with the times until now."""
        now = self._clock()
        self.threads = {name: clock.times(now) for name, clock in self._thread_clocks.items()}

    def _current_node(self) -> "_Node":
        try:
            thread: _ThreadClock = self._local.thread
        except AttributeError:
            thread = self._thread_clock(f"thread {len(self._thread_clocks)}", "idle")
        return thread.node

    def _thread_clock(self, name: str, root: StageName) -> "_ThreadClock":
        thread = _ThreadClock(root, self._clock, self._start)
        self._local.thread = self._thread_clocks[name] = thread
        return thread


class _ThreadClock:
    """Current stage of one thread and the time since which it is the current one."""

    __slots__ = ("clock", "node", "root", "since")

    def __init__(self, root: StageName, clock: Callable[[], float], start: float) -> None:
        self.clock = clock
        self.since = start
        self.root = self.node = _Node(root, self, None)

    def times(self, now: float) -> StageTimes:
        """Stage times until `now`, open stages included."""
        self.node.seconds += now - self.since
        self.since = now
        return self.root.times()


class _Node:
    """One stage as entered from its parent stage, in one thread: a context manager."""

    __slots__ = ("calls", "children", "counted", "name", "parent", "seconds", "thread")

    def __init__(self, name: StageName, thread: _ThreadClock, parent: "_Node | None") -> None:
        self.name = name
        self.thread = thread
        self.parent = parent
        self.seconds = 0.0
        self.calls = 0
        self.counted = 0
        self.children: dict[StageName, _Node] = {}

    def child(self, name: StageName) -> "_Node":
        try:
            return self.children[name]
        except KeyError:
            node = self.children[name] = _Node(name, self.thread, self)
            return node

    def times(self) -> StageTimes:
        children = tuple(child.times() for child in self.children.values())
        return StageTimes(self.name, self.seconds, self.calls, children, self.counted)

    def __enter__(self) -> None:
        thread = self.thread
        now = thread.clock()
        thread.node.seconds += now - thread.since
        thread.since = now
        thread.node = self

    def __exit__(self, *_: object) -> None:
        thread = self.thread
        now = thread.clock()
        self.seconds += now - thread.since
        self.calls += 1
        thread.since = now
        assert self.parent is not None
        thread.node = self.parent


class _NoStage:
    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_NO_STAGE = _NoStage()
_recording: Recording | None = None


def stage(name: StageName) -> AbstractContextManager[None]:
    """Count the time of a `with` block under a stage, nested stages excluded."""
    return _NO_STAGE if _recording is None else _recording.enter(name)


def divide_time(seconds: float, shares: Mapping[StageName, float], calls: int) -> None:
    """Move shares of the last `seconds` of the current stage to stages that the core has timed."""
    if _recording is not None:
        _recording.divide(seconds, shares, calls)


def count_message(size: int) -> None:
    """Count a message of `size` bytes to or from another process."""
    if _recording is not None:
        _recording.messages += 1
        _recording.message_bytes += size


@contextmanager
def record(clock: Callable[[], float] = time.perf_counter) -> Iterator[Recording]:
    """Record the stages of all threads during the block."""
    global _recording  # noqa: PLW0603
    if _recording is not None:
        raise RuntimeError("only one profile can be recorded at a time")
    recording = _recording = Recording(clock)
    try:
        yield recording
    finally:
        _recording = None
        recording.finish()
