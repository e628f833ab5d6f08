"""`WorkerPool`: starts worker processes, sends requests, reads answers, replaces failed workers."""

import asyncio
import os
import pickle
import select
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from time import monotonic
from types import TracebackType
from typing import Literal, Self, TypeAlias, TypedDict

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from cagepool import _core
from cagepool._stages import count_message, stage
from cagepool.envs.env_fns import EnvFn
from cagepool.envs.space_tree import map_tree
from cagepool.envs.vector_args import Autoreset
from cagepool.envs.workers.process import WorkerProcess
from cagepool.envs.workers.protocol import (
    ALL,
    NO_WORDS,
    CallResult,
    EnvsMade,
    FaultReport,
    PipeClosed,
    StepInfos,
    WorkerTask,
    encode_message,
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


class WorkerSettings(TypedDict, total=False):
    """Keywords of `make_vec` for the backend `workers`; `PoolConfig` documents each."""

    workers: int | None
    timeout: float | None
    on_fault: OnFault
    max_restarts: int
    true_state: TrueStateMode


@dataclass(frozen=True, kw_only=True)
class PoolConfig:
    """Distribution of environments over processes, and handling of faults."""

    workers: int | None = None
    """Processes, at most one per environment; None: one per usable core."""
    timeout: float | None = 60.0
    """Time limit in seconds for one step or reset of one environment; None: no limit."""
    on_fault: OnFault = "raise"
    """Whether an environment that raises, dies or hangs is an error or is replaced."""
    max_restarts: int = 100
    """Total number of replacements, after which the next fault is an error."""
    autoreset: Autoreset = "next_step"
    """Gymnasium's autoreset mode."""
    true_state: TrueStateMode = "never"
    """When `true_state()` is queried: `every` step, every n steps, at the `end`, or `never`."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_true_state_mode(self.true_state)
        if self.autoreset not in ("next_step", "same_step", "disabled"):
            raise ValueError(
                f"autoreset must be next_step, same_step or disabled, got {self.autoreset!r}"
            )
        if self.on_fault not in ("raise", "restart"):
            raise ValueError(f"on_fault must be 'raise' or 'restart', got {self.on_fault!r}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, got {self.timeout}")
        if self.max_restarts < 0:
            raise ValueError(f"max_restarts must be at least 0, got {self.max_restarts}")

    @property
    def liveness_check_s(self) -> float:
        """Seconds between two checks of workers that do not answer."""
        return min(0.5, (self.timeout or 2.0) / 4)


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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

    def __init__(self, env_fns: Sequence[EnvFn], config: PoolConfig) -> None:
        """Start the processes and wait until all environments are made.

        Raises:
            EnvironmentFault: an environment cannot be made.
            RuntimeError: the platform lacks a system call.
        """
        check_platform()
        self.config = config
        self.num_envs = len(env_fns)
        self.workers, self.infos, self.answered_count, self.pending_count = [], {}, 0, 0
        self.restarts = np.zeros(len(env_fns), np.int64)
        self.pending = np.zeros(len(env_fns), np.bool_)
        self._answered: list[Int32s] = []
        self._is_started = False
        self._faults = 0
        self._owner_pid = os.getpid()
        self.closed = False
        self._memory = create_memory()
        self._life_pipe = os.pipe()  # workers read it; it closes when this process ends
        self._epoll = select.epoll()
        self._worker_by_pipe: dict[int, WorkerProcess] = {}
        self._next_liveness_check_s = monotonic()
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
            self._write(worker, ALL, worker.task.stop - worker.task.start)

    def request_steps(self, ids: Int64s) -> None:
        """Request a step of these environments, with an answer for each as it gets ready."""
        self.pending[ids] = True
        self.pending_count += len(ids)
        for number, words, answers in self._group_by_worker(ids):
            worker = self.workers[number]
            worker.activity = "stepped"
            self._write(worker, words, answers)

    def request(
        self, worker: WorkerProcess, method: str, arguments: tuple[object, ...], answers: int
    ) -> None:
        """Request a call of a method of `Worker`, which answers for so many environments."""
        worker.activity = f"asked to {method}"
        worker.request = encode_message((method, arguments))
        self._write(worker, worker.request, answers)

    def poll(self, timeout_s: float | None = None) -> None:
        """Read the answers that have arrived; waits for the first at most for the timeout.

        The default timeout is the time until the next liveness check.

        Raises:
            EnvironmentFault: a fault that cannot be handled by a restart; all processes ended.
        """
        wait_s = self.config.liveness_check_s if timeout_s is None else timeout_s
        with stage("worker_wait"):
            if self._spin and wait_s:
                self._spin_wait.wait(wait_s)
                wait_s = 0.0
            events = self._epoll.poll(wait_s)
        for pipe, _ in events:
            self._read_answers(self._worker_by_pipe[pipe])
        if not events or monotonic() >= self._next_liveness_check_s:
            self._check_liveness()

    async def wait_readable(self) -> None:
        """Wait in asyncio until an answer arrives or the next liveness check is due."""
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

    def mark_received(self, ids: Int64s) -> None:
        """Clear the pending state of environments whose results were received."""
        self.pending[ids] = False
        self.pending_count -= len(ids)

    def close(self, *, kill_busy: bool = False) -> None:
        """End all processes; those that do not exit in time are killed.

        Args:
            kill_busy: Kill workers that have outstanding requests at once.
        """
        if self.closed or os.getpid() != self._owner_pid:  # a fork must not end these workers
            return
        self.closed = True
        deadline_s = monotonic() + _CLOSE_S
        for worker in self.workers:
            worker.close_pipes()
            if kill_busy and not worker.is_idle:
                worker.process.kill()
        for worker in self.workers:
            worker.end(deadline_s - monotonic())
        self._epoll.close()
        for descriptor in (self._memory, *self._life_pipe):
            os.close(descriptor)
        # A mapping keeps its own file descriptor open for as long as an array refers to it.
        vars(self).pop("arrays", None)
        vars(self).pop("_current_env", None)

    def _start(self, env_fns: Sequence[EnvFn]) -> None:
        cores = usable_cores()
        workers = min(self.num_envs, self.config.workers or cores)
        bounds = [self.num_envs * worker // workers for worker in range(workers + 1)]
        # A process that spins while it waits needs a core of its own.
        self._spin = workers <= cores
        self._spin_wait = _core.SpinWait(self._epoll.fileno(), spin=self._spin)
        self._bounds = np.array(bounds, np.int32)
        self._worker_of_env = np.repeat(np.arange(workers), np.diff(bounds))
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
            )
            self.workers.append(self._start_worker(task))
        while any(worker.env is None for worker in self.workers):
            self.poll()
        self.arrays = map_arrays(self._memory, workers, self.num_envs, self.env)
        self._is_started = True

    def _start_worker(self, task: WorkerTask) -> WorkerProcess:
        worker = WorkerProcess(task, self._memory, self._life_pipe[0])
        self._worker_by_pipe[worker.reader.pipe] = worker
        self._epoll.register(worker.reader.pipe, select.EPOLLIN)
        with suppress(PipeClosed, TimeoutError):  # the liveness check will find the fault
            worker.write(encode_message(task), self.config.timeout)
        return worker

    def _group_by_worker(self, ids: Int64s) -> Iterator[tuple[int, bytes, int]]:
        """Number of each worker, its words, and their count."""
        if len(ids) < len(self._bounds) - 1:  # faster than sorting
            groups: dict[int, list[int]] = {}
            for worker, env in zip(self._worker_of_env[ids].tolist(), ids.tolist(), strict=True):
                groups.setdefault(worker, []).append(env)
            for worker, envs in groups.items():
                yield worker, array("i", envs).tobytes(), len(envs)
            return
        words = np.sort(ids.astype(np.int32))
        cuts = words.searchsorted(self._bounds).tolist()
        for worker, (start, stop) in enumerate(pairwise(cuts)):
            if start < stop:
                yield worker, words[start:stop].tobytes(), stop - start

    def _write(self, worker: WorkerProcess, content: bytes, answers: int) -> None:
        """Write a request; a worker that is still starting gets it from `_finish_start`."""
        worker.expect(answers)
        if worker.env is not None:
            self._write_now(worker, content)

    def _write_now(self, worker: WorkerProcess, content: bytes) -> None:
        count_message(len(content))
        try:
            worker.write(content, self.config.timeout)
        except PipeClosed:
            self._replace_worker(worker, worker.exit_fault(self._env_of(worker)))
        except TimeoutError:
            self._replace_worker(worker, self._kill_hung(worker))

    def _read_answers(self, worker: WorkerProcess) -> None:
        data = worker.reader.read_bytes()
        count_message(len(data))
        try:
            words, messages = worker.reader.parse(data)
        except PipeClosed:
            self._replace_worker(worker, worker.exit_fault(self._env_of(worker)))
            return
        for message in messages:
            self._handle_message(worker, message)
        if len(words):
            self._answered.append(words)
            self.answered_count += len(words)
            worker.count_answers(len(words))

    def _handle_message(
        self, worker: WorkerProcess, message: EnvsMade | StepInfos | FaultReport | CallResult
    ) -> None:
        match message:
            case StepInfos(infos):
                self.infos.update((env, pickle.loads(pickled)) for env, pickled in infos)
            case EnvsMade(description):
                self._finish_start(worker, description)
            case FaultReport(env, traceback):
                worker.traceback = traceback
                self._count_fault(worker.exception_fault(env, traceback), slice(env, env + 1))
            case CallResult():
                worker.call_result = message
                worker.count_answers(1)

    def _finish_start(self, worker: WorkerProcess, description: EnvDescription) -> None:
        """Mark a worker as started, and write the request that it missed."""
        if not hasattr(self, "env"):
            self.env = description
        if not description.has_same_arrays(self.env):
            raise worker.mismatch_fault()
        worker.env = description
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
            elif worker.process.poll() is not None and not worker.reader.is_readable():
                self._replace_worker(worker, worker.exit_fault(self._env_of(worker)))
            elif now_s - worker.last_progress_s > self._time_limit_s(worker):
                self._replace_worker(worker, self._kill_hung(worker))

    def _time_limit_s(self, worker: WorkerProcess) -> float:
        """Seconds that a worker may take until its next progress."""
        limit_s = float("inf") if self.config.timeout is None else self.config.timeout
        is_importing = worker.env is None and self._env_of(worker) == NO_ENV
        return max(limit_s, _START_S) if is_importing else limit_s

    def _kill_hung(self, worker: WorkerProcess) -> EnvironmentFault:
        worker.process.kill()
        return worker.timeout_fault(self._env_of(worker), self.config.timeout or 0.0)

    def _env_of(self, worker: WorkerProcess) -> int:
        """The environment that a worker is in, or NO_ENV."""
        return int(self._current_env[worker.task.worker])

    def _replace_worker(self, worker: WorkerProcess, fault: EnvironmentFault) -> None:
        """Start a new worker in place of one that ended or hangs."""
        worker.process.kill()
        self._count_fault(fault, slice(worker.task.start, worker.task.stop))
        if fault.index is not None:  # its observation may be half written
            map_tree(lambda rows: rows[fault.index].fill(0), self.arrays.observations)
        self._current_env[worker.task.worker] = NO_ENV
        del self._worker_by_pipe[worker.reader.pipe]
        worker.end(0.0)
        successor = self._start_worker(replace(worker.task, restart_reason=str(fault)))
        successor.inherit_requests(worker)
        self.workers[worker.task.worker] = successor

    def _count_fault(self, fault: EnvironmentFault, envs: slice) -> None:
        """Count a fault that a restart handles; raise any other.

        Raises:
            EnvironmentFault: restarts are not allowed, or no more of them.
        """
        self._faults += 1
        self.restarts[envs] += 1
        if self._is_started and self.config.on_fault == "restart":
            if self._faults <= self.config.max_restarts:
                return
            fault.add_note(f"after {self.config.max_restarts} restarts, the most allowed")
        raise fault
