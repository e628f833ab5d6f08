"""`WorkerProcess`: the parent's handle of one worker process, its pipes, and its faults."""

import json
import os
import signal
import subprocess
import sys
from time import monotonic
from typing import Any

from cagepool.envs.workers.protocol import CallResult, PipeReader, WorkerTask, write_within
from cagepool.envs.workers.shared_memory import NO_ENV, EnvDescription
from cagepool.errors import EnvironmentFault

# A worker has the parent's module search path, and never imports the parent's main module.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from cagepool.envs.workers.worker import main
main(*map(int, sys.argv[2:]))
"""
_EXIT_S = 1.0  # for a process that closed its pipes to exit


class WorkerProcess:
    """A worker process, its outstanding requests and its last answers."""

    process: subprocess.Popen[bytes]
    requests: int  # file descriptor of the pipe to the worker
    reader: PipeReader  # of the pipe from the worker

    def __init__(self, task: WorkerTask, memory: int, life_pipe: int) -> None:
        """Start the process.

        Args:
            task: Its environments.
            memory: File descriptor of the shared memory.
            life_pipe: Reading end of a pipe that closes when the parent ends.
        """
        self.task = task
        self.env: EnvDescription | None = None  # once the environments are made
        self.outstanding = 0  # answers that have not arrived
        self.request: bytes | None = None  # the outstanding request, unless it came from `send`
        self.activity = "made"  # current operation on its environments, for error messages
        self.call_result: CallResult | None = None  # of the last call
        self.traceback = ""  # of the last exception in an environment
        self.last_progress_s = monotonic()
        self._answers = 0  # that have arrived
        self._progress: tuple[int, int] | None = None
        self._start(memory, life_pipe)

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

    def write(self, content: bytes, timeout_s: float | None) -> None:
        """Write a request.

        Raises:
            PipeClosed: the process has ended.
            TimeoutError: the process does not read.
        """
        write_within(self.requests, content, timeout_s)

    def close_pipes(self) -> None:
        """Close the pipes, upon which the worker exits."""
        if self.requests >= 0:
            os.close(self.requests)
            os.close(self.reader.pipe)
            self.requests = self.reader.pipe = -1

    def end(self, timeout_s: float) -> None:
        """Close the pipes, wait for the process to exit, and kill it after the timeout."""
        self.close_pipes()
        self._wait_or_kill(timeout_s)

    def exception_fault(self, env: int, traceback: str) -> EnvironmentFault:
        """Fault of an environment that raised an exception."""
        last_line = traceback.strip().rpartition("\n")[2]
        sentence = f"environment {env} raised while being {self.activity}: {last_line}"
        return self._fault(env, sentence, traceback)

    def exit_fault(self, env: int) -> EnvironmentFault:
        """Fault of a process that exited or was killed; waits for the exit code."""
        self._wait_or_kill(_EXIT_S)
        code = self.process.returncode
        how = f"exited with code {code}" if code >= 0 else f"was ended by {_signal_name(-code)}"
        when = f" while environment {env} was being {self.activity}" if env != NO_ENV else ""
        envs = f"environments {self.task.start} to {self.task.stop - 1}"
        sentence = f"worker {self.task.worker} {how}{when}; it had {envs}"
        return self._fault(env, sentence, self.traceback)

    def timeout_fault(self, env: int, timeout_s: float) -> EnvironmentFault:
        """Fault of a process that made no progress in time."""
        who = f"environment {env}" if env != NO_ENV else f"worker {self.task.worker}"
        sentence = f"{who} did not answer within {timeout_s} s while being {self.activity}"
        return self._fault(env, sentence)

    def mismatch_fault(self) -> EnvironmentFault:
        """Fault of a worker whose environments have other spaces than those of the others."""
        first = self.task.start
        sentence = "all environments must have the same spaces and the same form of true state"
        return self._fault(first, f"{sentence}; environment {first} differs")

    def call_values(self) -> list[Any]:
        """Values that the last call returned, one per environment.

        Raises:
            EnvironmentFault: an environment raised.
        """
        result = self.call_result
        assert result is not None
        if result.traceback:
            raise self.exception_fault(result.env, result.traceback)
        return result.values

    def _start(self, memory: int, life_pipe: int) -> None:
        worker_requests, self.requests = os.pipe()
        parent_answers, worker_answers = os.pipe()
        self.reader = PipeReader(parent_answers)
        inherited = (worker_requests, worker_answers, memory, life_pipe)
        try:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-X", "faulthandler", "-c", _PROGRAM),
                    *(json.dumps(sys.path), *map(str, inherited)),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=inherited,
                process_group=0,  # so that Ctrl-C reaches only the parent
            )
        except BaseException:
            self.close_pipes()
            raise
        finally:
            os.close(worker_requests)
            os.close(worker_answers)
        os.set_blocking(self.requests, False)

    def _wait_or_kill(self, timeout_s: float) -> None:
        try:
            self.process.wait(max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _fault(self, env: int, sentence: str, traceback: str = "") -> EnvironmentFault:
        index = None if env == NO_ENV else env
        return EnvironmentFault(sentence, index=index, worker=self.task.worker, trace=traceback)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
