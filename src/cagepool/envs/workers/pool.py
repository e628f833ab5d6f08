"""The worker processes: asking them, taking in what they say, replacing those that fail."""

import os
import pickle
import select
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from time import monotonic
from types import TracebackType
from typing import Self

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from cagepool import _core
from cagepool.envs.env_fns import Maker
from cagepool.envs.space_tree import mapped
from cagepool.envs.workers import faults, protocol
from cagepool.envs.workers.config import PoolConfig
from cagepool.envs.workers.messages import Answer, Fault, Given, Made, Task
from cagepool.envs.workers.process import Line
from cagepool.envs.workers.routes import Routes
from cagepool.envs.workers.shared_memory import (
    Block,
    Form,
    Marks,
    mapped_block,
    mapped_marks,
    new_memory,
)
from cagepool.errors import EnvironmentFault
from cagepool.types import Bools, Infos, Int64s

_CLOSING_S = 5.0  # that environments have to close
_STARTING_S = 60.0  # that Python has to start and import, however short the time limit is


class Pool:
    """Worker processes and the memory that they share."""

    block: Block
    form: Form
    lines: list[Line]  # the workers, in the order of their environments
    restarts: Int64s  # how often each environment was replaced
    out: Bools  # environments that were asked for freely and whose answers were not yet taken
    away: int  # how many these are
    ready: int  # environments that have answered
    infos: dict[int, Infos]  # of environments that have answered
    closed: bool

    def __init__(self, makers: Sequence[Maker], config: PoolConfig) -> None:
        """Start the processes and wait until all environments are made.

        Raises:
            EnvironmentFault: one cannot be made.
        """
        self.config = config
        self.num_envs = len(makers)
        self.lines, self.infos, self.ready, self.away = [], {}, 0, 0
        self.restarts = np.zeros(len(makers), np.int64)
        self.out = np.zeros(len(makers), np.bool_)
        self._arrived: list[protocol.Words] = []
        self._begun = False
        self._faults = 0
        self._owner = os.getpid()
        self.closed = False
        self._memory = new_memory()
        self._life_of_workers, self._life = os.pipe()
        self._epoll = select.epoll()
        self._by_pipe: dict[int, Line] = {}
        self._watch_next_s = monotonic()
        with self:
            self._start(makers)

    def __enter__(self) -> Self:
        """Begin to talk with workers."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End all processes if the talk was broken off, be it by Ctrl-C: what was said is lost."""
        if kind is not None:
            self.close(at_once=True)

    def ask_all(self) -> None:
        """Let every environment be stepped, with one answer a worker."""
        for line in self.lines:
            line.doing, line.request = "stepped", protocol.ALL
            self._write(line, protocol.ALL, line.task.stop - line.task.start)

    def ask(self, line: Line, request: str, arguments: tuple[object, ...], answers: int) -> None:
        """Let a worker call its method of this name; it answers for so many environments."""
        line.doing, line.request = f"asked to {request}", protocol.message((request, arguments))
        self._write(line, line.request, answers)

    def ask_for(self, ids: Int64s) -> None:
        """Let these environments be stepped, with answers as they get ready."""
        self.out[ids] = True
        self.away += len(ids)
        for worker, words, count in self._routes.parts(ids):
            line = self.lines[worker]
            line.doing = "stepped"
            self._write(line, words, count)

    def turn(self, limit_s: float | None = None) -> None:
        """Take in what workers say; wait for it a moment, or as long as the limit.

        Raises:
            EnvironmentFault: an environment has failed for good; all processes have ended.
        """
        wait_s = self.config.tick_s if limit_s is None else limit_s
        if self._looks and wait_s:
            self._waiter.wait(wait_s)
            wait_s = 0.0
        events = self._epoll.poll(wait_s)
        for pipe, _ in events:
            self._hear(self._by_pipe[pipe])
        if not events or monotonic() >= self._watch_next_s:
            self._watch()

    def taken(self) -> protocol.Words:
        """Environments that have answered since the last call, in the order of their answers."""
        arrived, self._arrived, self.ready = self._arrived, [], 0
        return arrived[0] if len(arrived) == 1 else np.concatenate(arrived)

    def fileno(self) -> int:
        """A descriptor that can be read when a worker has said something."""
        return self._epoll.fileno()

    def close(self, *, at_once: bool = False) -> None:
        """End all processes; those that do not end by themselves in time are killed.

        Args:
            at_once: Do not wait for workers that are at work.
        """
        if self.closed or os.getpid() != self._owner:  # a fork must not end its parent's workers
            return
        self.closed = True
        deadline_s = monotonic() + _CLOSING_S
        for line in self.lines:
            line.stop()
            if at_once and not line.is_idle:
                line.process.kill()
        for line in self.lines:
            line.end(deadline_s - monotonic())
        self._epoll.close()
        for descriptor in (self._memory, self._life, self._life_of_workers):
            os.close(descriptor)
        # A mapping has a descriptor of its own, for as long as anybody looks at it.
        vars(self).pop("block", None)
        vars(self).pop("_marks", None)

    def _start(self, makers: Sequence[Maker]) -> None:
        workers = self.config.processes_for(self.num_envs)
        bounds = [self.num_envs * worker // workers for worker in range(workers + 1)]
        # Those that look while they wait must leave a core to each of those that work.
        self._looks = workers <= len(os.sched_getaffinity(0))
        self._waiter = _core.SpinWait(self._epoll.fileno(), spin=self._looks)
        self._routes = Routes(bounds)
        self._marks = mapped_marks(self._memory, workers).array
        self._marks[:] = Marks.NOWHERE
        for worker, (start, stop) in enumerate(pairwise(bounds)):
            task = Task(
                worker=worker,
                workers=workers,
                num_envs=self.num_envs,
                start=start,
                stop=stop,
                makers=cloudpickle.dumps(list(makers[start:stop])),
                autoreset=self.config.autoreset,
                true_state=self.config.true_state,
                looks=self._looks,
                restart=self.config.on_fault == "restart",
            )
            self.lines.append(self._connected(task))
        while any(line.form is None for line in self.lines):
            self.turn()
        self.block = mapped_block(self._memory, workers, self.num_envs, self.form)
        self._begun = True

    def _connected(self, task: Task) -> Line:
        line = Line(task, self._memory, self._life_of_workers)
        self._by_pipe[line.inbox.pipe] = line
        self._epoll.register(line.inbox.pipe, select.EPOLLIN)
        with suppress(protocol.HungUp, TimeoutError):  # it will be found dead or hung
            line.write(protocol.message(task), self.config.timeout)
        return line

    def _write(self, line: Line, content: bytes, answers: int) -> None:
        """Write what will get so many answers; a worker still in the making gets it later."""
        line.expect(answers)
        if line.form is not None:
            self._deliver(line, content)

    def _deliver(self, line: Line, content: bytes) -> None:
        try:
            line.write(content, self.config.timeout)
        except protocol.HungUp:
            self._replace(line, faults.died(line, self._mark(line)))
        except TimeoutError:
            self._replace(line, self._hung(line))

    def _hear(self, line: Line) -> None:
        try:
            words, messages = line.inbox.read()
        except protocol.HungUp:
            self._replace(line, faults.died(line, self._mark(line)))
            return
        for content in messages:
            self._take_in(line, content)
        if len(words):
            self._arrived.append(words)
            self.ready += len(words)
            line.answered(len(words))

    def _take_in(self, line: Line, content: Made | Given | Fault | Answer) -> None:
        match content:
            case Given(infos):
                self.infos.update((index, pickle.loads(pickled)) for index, pickled in infos)
            case Made(form):
                self._made(line, form)
            case Fault(index, trace):
                line.trace = trace
                self._count(faults.raised(line, index, trace), slice(index, index + 1))
            case Answer():
                line.answer = content
                line.answered(1)

    def _made(self, line: Line, form: Form) -> None:
        """A worker has its environments; it gets what it has missed in the meantime."""
        if not hasattr(self, "form"):
            self.form = form
        if not form.fits(self.form):
            raise faults.differs(line)
        line.form = form
        if line.request is not None:
            self._deliver(line, line.request)
        elif line.waiting:
            waiting = self.out.copy()
            waiting[np.concatenate([*self._arrived, protocol.NONE])] = False
            ids = np.flatnonzero(waiting[line.task.start : line.task.stop]) + line.task.start
            self._deliver(line, ids.astype(np.int32).tobytes())

    def _watch(self) -> None:
        """Look at workers that are at work, in case one hangs or has died without a sound."""
        now_s = monotonic()
        self._watch_next_s = now_s + self.config.tick_s
        for line in self.lines:
            if line.is_idle:
                continue
            if line.gives_sign(self._mark(line)):
                line.since_s = now_s
            elif line.process.poll() is not None and not line.inbox.is_ready():
                self._replace(line, faults.died(line, self._mark(line)))
            elif now_s - line.since_s > self._limit_s(line):
                self._replace(line, self._hung(line))

    def _limit_s(self, line: Line) -> float:
        """Seconds that a worker may take until its next sign of life."""
        limit_s = float("inf") if self.config.timeout is None else self.config.timeout
        has_begun = line.form is not None or self._mark(line) != Marks.NOWHERE
        return limit_s if has_begun else max(limit_s, _STARTING_S)

    def _hung(self, line: Line) -> EnvironmentFault:
        line.process.kill()
        return faults.hung(line, self._mark(line), self.config.timeout or 0.0)

    def _mark(self, line: Line) -> int:
        """The environment that a worker is in."""
        return int(self._marks[line.task.worker])

    def _replace(self, line: Line, fault: EnvironmentFault) -> None:
        """Start another worker in the place of one that has ended or must end."""
        line.process.kill()
        self._count(fault, slice(line.task.start, line.task.stop))
        if fault.index is not None:  # it may have been half written
            mapped(lambda array: array[fault.index].fill(0), self.block.observations)
        self._marks[line.task.worker] = Marks.NOWHERE
        del self._by_pipe[line.inbox.pipe]
        line.end(0.0)
        successor = self._connected(replace(line.task, lost=str(fault)))
        successor.take_over(line)
        self.lines[line.task.worker] = successor

    def _count(self, fault: EnvironmentFault, lost: slice) -> None:
        """Note a fault that can be made up for; raise any other."""
        self._faults += 1
        self.restarts[lost] += 1
        if self._begun and self.config.on_fault == "restart":
            if self._faults <= self.config.max_restarts:
                return
            fault.add_note(f"after {self.config.max_restarts} restarts, the most allowed")
        raise fault
