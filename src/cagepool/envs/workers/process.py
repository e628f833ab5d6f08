"""`WorkerProcess`: the parent's handle of one worker process, its pipes, and its faults."""

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, NamedTuple, cast

from cagepool.envs.workers.descriptors import NO_DESCRIPTOR, above_standard, open_pipe
from cagepool.envs.workers.faults import ExceptionReport, describe_exception
from cagepool.envs.workers.protocol import (
    CallResult,
    PipeReader,
    WorkerTask,
    encode_message,
    unpickle,
    write_within,
)
from cagepool.envs.workers.shared_memory import NO_ENV, EnvDescription
from cagepool.errors import EnvironmentFault

# A worker has the parent's module search path, and never imports the parent's main module. The path
# and the task come in a file, since the size of arguments is limited, and a pipe blocks when full.
_PROGRAM = """
import pickle, sys
start = open(int(sys.argv[1]), "rb")
sys.path[:] = pickle.load(start)
from cagepool.envs.workers.worker import main
main(start, *map(int, sys.argv[2:]))
"""
_EXIT_S = 1.0  # for a process that closed its pipes to exit
_STOP = encode_message(("stop", ()))


class PoolDescriptors(NamedTuple):
    """File descriptors that all workers of a pool inherit."""

    memory: int  # the shared memory
    life_pipe: int  # reading end of a pipe that closes when the parent ends
    parent_pidfd: int  # of the parent; NO_DESCRIPTOR where there is none


class WorkerProcess:
    """A worker process, its outstanding requests and its last answers."""

    process: subprocess.Popen[bytes]
    requests: int  # file descriptor of the pipe to the worker
    reader: PipeReader  # of the pipe from the worker, which does not block

    def __init__(self, task: WorkerTask, inherited: PoolDescriptors) -> None:
        """Start the process."""
        self.task = task
        self.is_importing = True  # until the functions that make environments are loaded
        self.env: EnvDescription | None = None  # once the environments are made
        self.outstanding = 0  # answers that have not arrived
        self.request: bytes | None = None  # the outstanding request, unless it came from `send`
        self.activity = ""  # what the last request does to environments, for error messages
        self.call_result: CallResult | None = None  # of the last call
        self.traceback = ""  # of the last exception in an environment
        self.last_fault: EnvironmentFault | None = None  # that the worker reported before it exits
        self.last_progress_s = monotonic()
        self._answers = 0  # that have arrived
        self._progress: tuple[int, int] | None = None
        self._is_reaped = False
        self._start(inherited)

    @property
    def is_idle(self) -> bool:
        """Whether no answer is outstanding."""
        return self.env is not None and self.outstanding == 0

    def expect(self, answers: int) -> None:
        """Add outstanding answers."""
        if self.outstanding == 0:
            self.last_progress_s = monotonic()
        self.outstanding += answers

    def count_answers(self, answers: int) -> None:
        """Subtract answers that have arrived."""
        self.outstanding -= answers
        self._answers += answers
        if self.outstanding == 0:
            self.request = None

    def has_progressed(self, current_env: int) -> bool:
        """Whether the worker answered or changed its environment since the last call."""
        before, self._progress = self._progress, (self._answers, current_env)
        return before != self._progress

    def inherit_requests(self, predecessor: "WorkerProcess") -> None:
        """Take over the outstanding answers of a worker that ended."""
        self.outstanding, self.request = predecessor.outstanding, predecessor.request
        self.activity = predecessor.activity

    def write(self, content: bytes, timeout_s: float) -> None:
        """Write a request."""
        write_within(self.requests, content, timeout_s)

    def request_stop(self) -> None:
        """Ask the worker to exit: a fork of the parent may keep the pipes open."""
        with suppress(OSError):
            os.write(self.requests, _STOP)

    def close_pipes(self) -> None:
        """Close the pipes, upon which the worker exits."""
        if self.requests >= 0:
            os.close(self.requests)
            os.close(self.reader.pipe)
            self.requests = self.reader.pipe = NO_DESCRIPTOR

    def has_exited(self) -> bool:
        """Whether the process has exited. It stays a zombie, so its id still belongs to it."""
        if self._is_reaped:
            return True
        try:
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.process.pid, options) is not None
        except ChildProcessError:  # SIGCHLD is ignored, or the process was waited for elsewhere
            return True

    def kill(self) -> None:
        """Kill the process and all processes that it started and that are in its group."""
        if self._is_reaped:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if not self.has_exited():  # an environment may have changed the process group
            os.kill(self.process.pid, signal.SIGKILL)

    def end(self, timeout_s: float) -> None:
        """Close the pipes, wait for the process to exit, and kill it after the timeout."""
        self.close_pipes()
        self._reap(timeout_s)

    def abandon(self) -> None:
        """Close the pipes of a worker that a fork of the parent inherited."""
        self.close_pipes()
        self._is_reaped = True
        self.process.returncode = 0  # the process is not the fork's to wait for

    def exception_fault(
        self, env: int, report: ExceptionReport, activity: str = ""
    ) -> EnvironmentFault:
        """Fault of an environment that raised an exception."""
        who = f"environment {env}" if env != NO_ENV else f"worker {self.task.worker}"
        when = f"while being {activity or self._activity}"
        if env == NO_ENV:
            when = "before its first environment was made"
        return self._fault(env, f"{who} raised {when}: {report.summary}", report.traceback)

    def unpickling_fault(
        self, env: int, what: str, error: pickle.UnpicklingError
    ) -> EnvironmentFault:
        """Fault of an environment that returned what the parent cannot unpickle."""
        return self._fault(
            env, f"environment {env} returned {what} that can't be unpickled: {error}"
        )

    def merge_fault(self, env: int, error: Exception) -> EnvironmentFault:
        """Fault of an environment whose info can't be merged with those of others."""
        report = describe_exception(error)
        sentence = f"the info of environment {env} can't be merged with those of other environments"
        return self._fault(env, f"{sentence}: {report.summary}", report.traceback)

    def exit_fault(self, env: int) -> EnvironmentFault:
        """Fault of a process that exited or was killed; waits for the exit code."""
        how = self._reap(_EXIT_S)
        if self.last_fault is not None:
            return self.last_fault
        when = f" while environment {env} was being {self._activity}" if env != NO_ENV else ""
        envs = f"environments {self.task.start} to {self.task.stop - 1}"
        sentence = f"worker {self.task.worker} {how}{when}; it had {envs}"
        return self._fault(env, sentence, self.traceback)

    def timeout_fault(self, env: int, limit_s: float) -> EnvironmentFault:
        """Fault of a process that made no progress in time."""
        if self.env is None and env == NO_ENV:
            sentence = f"worker {self.task.worker} did not start within {limit_s:g} s"
            return self._fault(env, sentence)
        who = f"environment {env}" if env != NO_ENV else f"worker {self.task.worker}"
        sentence = f"{who} did not answer within {limit_s:g} s while being {self._activity}"
        return self._fault(env, sentence)

    def mismatch_fault(self) -> EnvironmentFault:
        """Fault of a worker whose environments have other spaces than those of the others."""
        first = self.task.start
        sentence = "all environments must have the same spaces and the same form of true state"
        return self._fault(first, f"{sentence}; environment {first} differs")

    def call_values(self) -> list[Any]:
        """Values that the last call returned, one per environment."""
        result = self.call_result
        assert result is not None
        if result.error is not None:
            raise self.exception_fault(result.env, result.error)
        values = []
        for env, pickled in enumerate(result.values, self.task.start):
            try:
                values.append(unpickle(pickled))
            except pickle.UnpicklingError as error:
                raise self.unpickling_fault(env, "a value", error) from error
        return values

    @property
    def _activity(self) -> str:
        """What the worker does to an environment now."""
        if self.env is None:
            return "made again" if self.task.restart_reason else "made"
        return self.activity

    def _start(self, inherited: PoolDescriptors) -> None:
        worker_requests, self.requests = open_pipe()
        parent_answers, worker_answers = open_pipe()
        self.reader = PipeReader(parent_answers)
        start = _start_file(self.task)
        descriptors = (start, worker_requests, worker_answers, *inherited)
        try:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-X", "faulthandler", "-c", _PROGRAM),
                    *map(str, descriptors),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=[descriptor for descriptor in descriptors if descriptor >= 0],
                process_group=0,  # so that Ctrl-C reaches only the parent
            )
        except BaseException:
            self.close_pipes()
            raise
        finally:
            for descriptor in (start, worker_requests, worker_answers):
                os.close(descriptor)
        os.set_blocking(self.requests, False)
        os.set_blocking(parent_answers, False)

    def _reap(self, timeout_s: float) -> str:
        """Wait for the process to exit, and kill it after the timeout; returns how it ended.

        The processes that it left in its group are killed while its id is still its own.
        """
        has_exited = self._exits_within(timeout_s)
        self.kill()
        self._exits_within(float("inf"))
        how = self._exit_cause() if has_exited else "closed its pipes without exiting"
        self._is_reaped = True
        self.process.wait()
        return how

    def _exits_within(self, timeout_s: float) -> bool:
        deadline_s, pause_s = monotonic() + timeout_s, 0.0005
        while not self.has_exited():
            if monotonic() > deadline_s:
                return False
            sleep(pause_s)
            pause_s = min(2 * pause_s, 0.02)
        return True

    def _exit_cause(self) -> str:
        """How a process ended that has exited."""
        try:
            state = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            state = None
        if state is None:
            return (
                "ended with an unknown status (SIGCHLD is ignored, or this program waited for it)"
            )
        if state.si_code == os.CLD_EXITED:
            return f"exited with code {state.si_status}"
        return f"was ended by {_signal_name(state.si_status)}"

    def _fault(self, env: int, sentence: str, traceback: str = "") -> EnvironmentFault:
        index = None if env == NO_ENV else env
        return EnvironmentFault(sentence, index=index, worker=self.task.worker, trace=traceback)


def _start_file(task: WorkerTask) -> int:
    """Write what a worker needs to start to an anonymous file; returns its descriptor."""
    descriptor = above_standard(os.memfd_create("cagepool-start"))
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        entries = cast("list[object]", sys.path)  # Python ignores those that are not strings
        pickle.dump([entry for entry in entries if isinstance(entry, str)], file)
        pickle.dump(task, file)
        file.flush()
        file.seek(0)
    return descriptor


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
