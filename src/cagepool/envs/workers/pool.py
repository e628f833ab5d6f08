"""`WorkerPool`: starts worker processes, sends requests, reads answers, replaces failed workers."""

import asyncio
import os
import pickle
import select
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, repeat
from numbers import Integral, Real
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Literal, Self, TypeAlias, TypedDict
from weakref import WeakSet

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from cagepool import _core
from cagepool._machine import usable_cores
from cagepool._stages import count_message, stage
from cagepool.envs.spaces import map_tree
from cagepool.envs.vector_args import Autoreset, EnvFn
from cagepool.envs.workers.descriptors import (
    NO_DESCRIPTOR,
    open_epoll,
    open_own_pidfd,
    open_pipe,
)
from cagepool.envs.workers.process import PoolDescriptors, WorkerProcess
from cagepool.envs.workers.protocol import (
    ALL,
    NO_WORDS,
    CallResult,
    EnvsMade,
    FaultReport,
    ImportsDone,
    PipeClosed,
    StepInfos,
    WorkerTask,
    encode_message,
    unpickle,
)
from cagepool.envs.workers.shared_memory import (
    NO_ENV,
    EnvDescription,
    SharedArrays,
    check_platform,
    create_memory,
    map_arrays,
    map_current_env,
)
from cagepool.envs.workers.true_state import TrueStateMode, check_true_state_mode
from cagepool.errors import EnvironmentFault
from cagepool.types import Bools, Infos, Int32s, Int64s

OnFault: TypeAlias = Literal["raise", "restart"]

_CLOSE_S = 5.0  # for environments to close
_START_S = 60.0  # for a worker to start Python and import, whatever the time limit is
_IMPORTS_PER_CORE = 2  # workers that import at the same time: more would only slow each other down


class WorkerSettings(TypedDict, total=False):
    """Keywords of `make_vec` for the backend `workers`; `PoolConfig` documents each."""

    workers: int | None
    timeout: float | None
    on_fault: OnFault
    max_restarts: int
    true_state: TrueStateMode
    check: bool


@dataclass(frozen=True, kw_only=True)
class PoolConfig:
    """Distribution of environments over processes, and handling of faults."""

    workers: int | None = None
    """Processes, at most one per environment; None: one per usable core."""
    timeout: float | None = 60.0
    """Time limit in seconds for one step or reset of one environment; None or inf: no limit."""
    on_fault: OnFault = "raise"
    """Whether an environment that raises, dies or hangs is an error or is replaced."""
    max_restarts: int = 100
    """Total number of replacements, after which the next fault is an error."""
    autoreset: Autoreset = "next_step"
    """Gymnasium's autoreset mode."""
    true_state: TrueStateMode = "never"
    """When `true_state()` is queried: `every` step, every n steps, at the `end`, or `never`."""
    check: bool = False
    """Whether an observation outside of its space, in dtype, shape or bounds, is a fault."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_true_state_mode(self.true_state)
        if self.autoreset not in ("next_step", "same_step", "disabled"):
            raise ValueError(
                f"autoreset must be next_step, same_step or disabled, got {self.autoreset!r}"
            )
        if self.on_fault not in ("raise", "restart"):
            raise ValueError(f"on_fault must be 'raise' or 'restart', got {self.on_fault!r}")
        if self.workers is not None:
            _check_count("workers", self.workers, 1)
        _check_count("max_restarts", self.max_restarts, 0)
        if self.timeout is None:
            return
        if not isinstance(self.timeout, Real):
            raise TypeError(f"timeout must be a number of seconds or None, got {self.timeout!r}")
        if not self.timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, got {self.timeout}")

    @property
    def time_limit_s(self) -> float:
        """The timeout as a float, `inf` without one."""
        return float("inf") if self.timeout is None else float(self.timeout)

    @property
    def liveness_check_s(self) -> float:
        """Seconds between two checks of workers that do not answer."""
        return min(0.5, self.time_limit_s / 4)


def _check_count(name: str, value: object, least: int) -> None:
    if not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")


class WorkerPool:
    """Worker processes and the memory that they share."""

    arrays: SharedArrays
    env: EnvDescription  # of each environment
    workers: list[WorkerProcess]  # in the order of their environments
    restarts: Int64s  # replacements per environment
    pending: Bools  # environments that were sent and not yet received
    pending_count: int
    answered_count: int  # answers that arrived and were not yet taken
    infos: dict[int, Infos]  # of environments that answered
    closed: bool
    is_forked: bool  # whether this is a forked child's copy of the pool, which is closed
    call_lock: Lock  # of the environment that owns the pool

    def __init__(self, env_fns: Sequence[EnvFn], config: PoolConfig) -> None:
        """Start the processes and wait until all environments are made."""
        check_platform()
        self.config = config
        self.num_envs = len(env_fns)
        self.workers, self.infos, self.answered_count, self.pending_count = [], {}, 0, 0
        self.restarts = np.zeros(len(env_fns), np.int64)
        self.pending = np.zeros(len(env_fns), np.bool_)
        self._answered: list[Int32s] = []
        self._is_started = False
        self._faults = 0
        self.closed, self.is_forked = False, False
        self.call_lock = Lock()
        self._memory = create_memory()
        self._life_pipe = open_pipe()  # workers watch it; it closes when this process ends
        self._pidfd = open_own_pidfd()  # so that a fork that holds the life pipe does no harm
        self._epoll = open_epoll()
        self._worker_by_pipe: dict[int, WorkerProcess] = {}
        self._next_liveness_check_s = monotonic()
        _register_fork_hook()
        _POOLS.add(self)
        with self:
            self._start(env_fns)

    def __enter__(self) -> Self:
        """Begin an exchange with the workers."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End all processes if the exchange was broken off, since its answers are lost."""
        if kind is not None:
            self.close(kill_busy=True)

    def request_step_all(self) -> None:
        """Request a step of every environment, with one answer per worker."""
        for worker in self.workers:
            worker.activity, worker.request = "stepped", ALL
            worker.expect(worker.task.stop - worker.task.start)
            count_message(len(ALL))
        for number, rest in self._step_requests.write_all():
            self._write_now(self.workers[number], rest)

    def request_steps(self, ids: Int64s) -> None:
        """Request a step of these environments, with an answer for each as it gets ready."""
        self.pending[ids] = True
        self.pending_count += len(ids)
        for number, answers in self._count_by_worker(ids):
            worker = self.workers[number]
            worker.activity = "stepped"
            worker.expect(answers)
        for number, rest in self._step_requests.write(ids):
            self._write_now(self.workers[number], rest)

    def request(
        self, worker: WorkerProcess, method: str, arguments: tuple[object, ...], answers: int
    ) -> None:
        """Request a call of a method of `Worker`, which answers for so many environments."""
        worker.activity = f"asked to {method}"
        worker.request = encode_message((method, arguments))
        self._write(worker, worker.request, answers)

    def poll(self, timeout_s: float | None = None, answers: int = 1) -> None:
        """Take the answers that have arrived; waits for some at most for the timeout.

        Args:
            timeout_s: By default the time until the next liveness check.
            answers: Number of answers to steps to wait for. Fewer may be there on return.
        """
        wait_s = self.config.liveness_check_s if timeout_s is None else timeout_s
        with stage("worker_wait"):
            if self._spin and wait_s:
                if self.pending_count:
                    self._spin_wait.wait_for(self._completions, answers, wait_s)
                else:
                    self._spin_wait.wait(wait_s)
                wait_s = 0.0
            elif self.pending_count and wait_s and not self._completions.arm(answers):
                wait_s = 0.0
            events = self._epoll.poll(wait_s)
        for pipe, _ in events:
            self._read_answers(self._worker_by_pipe[pipe])
        if self.pending_count:
            self._completions.disarm()
            self._take_completions()
        if monotonic() >= self._next_liveness_check_s:
            self._check_liveness()

    async def wait_readable(self, answers: int) -> None:
        """Wait in asyncio until so many answers arrive or the next liveness check is due.

        Other events, such as the end of a worker, end the wait early.
        """
        if not self._completions.arm(answers):
            return
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        descriptor = self._epoll.fileno()
        loop.add_reader(descriptor, arrived.set)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(arrived.wait(), self.config.liveness_check_s)
        finally:
            loop.remove_reader(descriptor)

    def take_answered(self) -> Int32s:
        """Return and clear the environments that answered, in the order of their answers."""
        answered, self._answered, self.answered_count = self._answered, [], 0
        return answered[0] if len(answered) == 1 else np.concatenate(answered)

    def drop_answered(self) -> None:
        """Clear the environments that answered."""
        self._answered, self.answered_count = [], 0

    def mark_received(self, ids: Int64s) -> None:
        """Clear the pending state of environments whose results were received."""
        self.pending[ids] = False
        self.pending_count -= len(ids)

    def merge_fault(self, env: int, error: Exception) -> EnvironmentFault:
        """Fault of an environment whose info can't be merged with those of others."""
        worker = self.workers[int(self._worker_of_env[env])]
        return worker.merge_fault(env, error)

    def close(self, *, kill_busy: bool = False) -> None:
        """End all processes; those that do not exit in time are killed.

        Args:
            kill_busy: Kill workers that have outstanding requests at once.
        """
        if self.closed:
            return
        self.closed = True
        deadline_s = monotonic() + _CLOSE_S
        for worker in self.workers:
            if kill_busy and not worker.is_idle:
                worker.kill()
            else:
                worker.request_stop()
            worker.close_pipes()
        for worker in self.workers:
            worker.end(deadline_s - monotonic())
        self._close_descriptors()

    def abandon(self) -> None:
        """Close the pool in a forked child, which must not use the workers or hold their pipes."""
        self.is_forked = True
        if self.call_lock.locked():  # by a thread that the child does not have
            self.call_lock.release()
        if not self.closed:
            self.closed = True
            for worker in self.workers:
                worker.abandon()
            self._close_descriptors()

    def _close_descriptors(self) -> None:
        self._epoll.close()
        for descriptor in (self._memory, *self._life_pipe, self._pidfd):
            if descriptor != NO_DESCRIPTOR:
                os.close(descriptor)
        # A mapping keeps its own file descriptor open for as long as an array refers to it.
        for name in ("arrays", "_completions", "_current_env"):
            vars(self).pop(name, None)

    def _start(self, env_fns: Sequence[EnvFn]) -> None:
        cores = usable_cores()
        workers = min(self.num_envs, self.config.workers or cores)
        bounds = [self.num_envs * worker // workers for worker in range(workers + 1)]
        # A process that spins while it waits needs a core of its own.
        self._spin = workers <= cores
        self._spin_wait = _core.SpinWait(self._epoll.fileno(), spin=self._spin)
        self._worker_of_env = np.repeat(np.arange(workers, dtype=np.int32), np.diff(bounds))
        self._request_pipes = np.full(workers, -1, np.int32)  # -1: the worker is starting
        self._step_requests = _core.StepRequests(
            worker_of_env=self._worker_of_env, pipes=self._request_pipes
        )
        self._current_env = map_current_env(self._memory, workers)
        self._current_env[:] = NO_ENV
        for worker, (start, stop) in enumerate(pairwise(bounds)):
            task = WorkerTask(
                worker=worker,
                workers=workers,
                num_envs=self.num_envs,
                start=start,
                stop=stop,
                env_fns=cloudpickle.dumps(list(env_fns[start:stop])),
                autoreset=self.config.autoreset,
                true_state=self.config.true_state,
                spin=self._spin,
                restart=self.config.on_fault == "restart",
                check=self.config.check,
            )
            while sum(worker.is_importing for worker in self.workers) >= _IMPORTS_PER_CORE * cores:
                self.poll()
            self.workers.append(self._start_worker(task))
        while any(worker.env is None for worker in self.workers):
            self.poll()
        self.arrays = map_arrays(self._memory, workers, self.num_envs, self.env)
        self._completions = self.arrays.completions()
        self._taken = np.empty(self.num_envs, np.int32)  # buffer of `_take_completions`
        self._is_started = True

    def _start_worker(self, task: WorkerTask) -> WorkerProcess:
        inherited = PoolDescriptors(self._memory, self._life_pipe[0], self._pidfd)
        worker = WorkerProcess(task, inherited)
        self._worker_by_pipe[worker.reader.pipe] = worker
        self._epoll.register(worker.reader.pipe, select.EPOLLIN)
        return worker

    def _count_by_worker(self, ids: Int64s | Int32s) -> Iterable[tuple[int, int]]:
        """Workers of these environments and their number; a worker may come several times."""
        workers = self._worker_of_env[ids]
        if len(ids) < len(self.workers):  # faster than counting
            return zip(workers.tolist(), repeat(1))
        counts = np.bincount(workers)
        return [(worker, count) for worker, count in enumerate(counts.tolist()) if count]

    def _write(self, worker: WorkerProcess, content: bytes, answers: int) -> None:
        """Write a request; a worker that is still starting gets it from `_finish_start`."""
        worker.expect(answers)
        if worker.env is not None:
            self._write_now(worker, content)

    def _write_now(self, worker: WorkerProcess, content: bytes) -> None:
        count_message(len(content))
        try:
            worker.write(content, self.config.time_limit_s)
        except PipeClosed:
            self._replace_worker(worker, worker.exit_fault(self._env_of(worker)))
        except TimeoutError:
            self._replace_worker(worker, self._kill_hung(worker))

    def _read_answers(self, worker: WorkerProcess) -> None:
        try:
            data = worker.reader.read_bytes()
        except BlockingIOError:  # an event without bytes
            return
        count_message(len(data))
        try:
            words, messages = worker.reader.parse(data)
        except PipeClosed:
            self._replace_worker(worker, worker.exit_fault(self._env_of(worker)))
            return
        for message in messages:
            self._handle_message(worker, message)
            if worker.requests == NO_DESCRIPTOR:  # replaced; its successor answers instead
                return
        if len(words):
            self._answered.append(words)
            self.answered_count += len(words)
            worker.count_answers(len(words))

    def _take_completions(self) -> None:
        """Take the answers that workers posted as completion flags."""
        count = self._completions.take(self._taken)
        if not count:
            return
        words = self._taken[:count].copy()
        self._answered.append(words)
        self.answered_count += count
        for worker, answers in self._count_by_worker(words):
            self.workers[worker].count_answers(answers)

    def _handle_message(
        self,
        worker: WorkerProcess,
        message: ImportsDone | EnvsMade | StepInfos | FaultReport | CallResult,
    ) -> None:
        match message:
            case StepInfos(infos):
                self._load_infos(worker, infos)
            case ImportsDone():
                worker.is_importing = False
            case EnvsMade(pickled):
                self._finish_start(worker, self._load_description(worker, pickled))
            case FaultReport(env, error, activity, ends_worker):
                worker.traceback = error.traceback
                fault = worker.exception_fault(env, error, activity)
                if ends_worker and self._allows_restarts:  # counted when the worker has exited
                    worker.last_fault = fault
                    return
                envs = slice(worker.task.start, worker.task.stop)
                self._count_fault(fault, envs if env == NO_ENV else slice(env, env + 1))
            case CallResult():
                worker.call_result = message
                worker.count_answers(1)

    def _load_infos(self, worker: WorkerProcess, infos: list[tuple[int, bytes]]) -> None:
        """Store infos; an environment whose info can't be loaded here costs its worker."""
        for env, pickled in infos:
            try:
                self.infos[env] = unpickle(pickled)
            except pickle.UnpicklingError as error:
                for loaded, _ in infos:  # the words that answer for them are dropped
                    self.infos.pop(loaded, None)
                fault = worker.unpickling_fault(env, "an info", error)
                self._replace_worker(worker, fault)
                return

    def _load_description(self, worker: WorkerProcess, pickled: bytes) -> EnvDescription:
        try:
            description: EnvDescription = unpickle(pickled)
        except pickle.UnpicklingError as error:
            what = "spaces or metadata"
            raise worker.unpickling_fault(worker.task.start, what, error) from error
        return description

    def _finish_start(self, worker: WorkerProcess, description: EnvDescription) -> None:
        """Mark a worker as started, and write the request that it missed."""
        if not hasattr(self, "env"):
            self.env = description
        if not description.has_same_arrays(self.env):
            raise worker.mismatch_fault()
        worker.env = description
        self._request_pipes[worker.task.worker] = worker.requests
        if worker.request is not None:
            self._write_now(worker, worker.request)
        elif worker.outstanding:
            unanswered = self.pending.copy()
            unanswered[np.concatenate([*self._answered, NO_WORDS])] = False
            start, stop = worker.task.start, worker.task.stop
            ids = np.flatnonzero(unanswered[start:stop]) + start
            self._write_now(worker, ids.astype(np.int32).tobytes())

    def _check_liveness(self) -> None:
        """Find workers that hang, or that died without closing their pipes."""
        now_s = monotonic()
        self._next_liveness_check_s = now_s + self.config.liveness_check_s
        for worker in self.workers:
            if worker.is_idle:
                continue
            if worker.has_progressed(self._env_of(worker)):
                worker.last_progress_s = now_s
            elif worker.has_exited() and not worker.reader.is_readable():
                self._replace_worker(worker, worker.exit_fault(self._env_of(worker)))
            elif now_s - worker.last_progress_s > self._time_limit_s(worker):
                self._replace_worker(worker, self._kill_hung(worker))

    def _time_limit_s(self, worker: WorkerProcess) -> float:
        """Seconds that a worker may take until its next progress."""
        limit_s = self.config.time_limit_s
        is_starting = worker.env is None and self._env_of(worker) == NO_ENV
        return max(limit_s, _START_S) if is_starting else limit_s

    def _kill_hung(self, worker: WorkerProcess) -> EnvironmentFault:
        fault = worker.timeout_fault(self._env_of(worker), self._time_limit_s(worker))
        worker.kill()
        return fault

    def _env_of(self, worker: WorkerProcess) -> int:
        """The environment that a worker is in, or NO_ENV."""
        return int(self._current_env[worker.task.worker])

    def _replace_worker(self, worker: WorkerProcess, fault: EnvironmentFault) -> None:
        """Start a new worker in place of one that ended or hangs."""
        worker.kill()
        self._count_fault(fault, slice(worker.task.start, worker.task.stop))
        if fault.index is not None:  # its observation may be half written
            map_tree(lambda rows: rows[fault.index].fill(0), self.arrays.observations)
        self._current_env[worker.task.worker] = NO_ENV
        self._request_pipes[worker.task.worker] = -1
        # Closing alone would leave the pipe in epoll if a fork of this process holds a copy.
        self._epoll.unregister(worker.reader.pipe)
        del self._worker_by_pipe[worker.reader.pipe]
        worker.end(0.0)
        if self.pending_count:
            self._take_completions()  # the successor must not step these environments again
        successor = self._start_worker(replace(worker.task, restart_reason=str(fault)))
        successor.inherit_requests(worker)
        self.workers[worker.task.worker] = successor

    @property
    def _allows_restarts(self) -> bool:
        return self._is_started and self.config.on_fault == "restart"

    def _count_fault(self, fault: EnvironmentFault, envs: slice) -> None:
        """Count a fault that a restart handles; raise any other."""
        self._faults += 1
        self.restarts[envs] += 1
        if self._allows_restarts:
            if self._faults <= self.config.max_restarts:
                return
            fault.add_note(f"after {self.config.max_restarts} restarts, the most allowed")
        raise fault


_POOLS: WeakSet[WorkerPool] = WeakSet()


@cache
def _register_fork_hook() -> None:
    """Make forked children abandon all pools, once per process: hooks cannot be removed."""
    os.register_at_fork(after_in_child=_abandon_pools)


def _abandon_pools() -> None:
    for pool in list(_POOLS):
        pool.abandon()
