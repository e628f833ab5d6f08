"""The caller's end of the connection to one worker process."""

import json
import os
import signal
import subprocess
import sys
from time import monotonic

from cagepool.envs.workers import protocol
from cagepool.envs.workers.messages import Answer, Task
from cagepool.envs.workers.shared_memory import Form

# The worker looks for modules where the caller does; its own main module is never the caller's.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from cagepool.envs.workers.worker import main
main(*map(int, sys.argv[2:]))
"""


class Line:
    """A worker process, what it was asked and what it has said."""

    def __init__(self, task: Task, memory: int, life: int) -> None:
        """Start the process."""
        self.task = task
        self.form: Form | None = None  # of its environments, once they are made
        self.waiting = 0  # answers that are to come
        self.request: bytes | None = None  # the one that is to be answered, if not freely
        self.doing = "made"  # what an environment in it is being
        self.answer: Answer | None = None  # to the last call
        self.trace = ""  # of the last exception in it
        self.since_s = monotonic()  # when it last gave a sign of life
        self._answers = 0  # so far
        self._sign: tuple[int, int] | None = None
        self._open(memory, life)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is expected of it."""
        return self.form is not None and self.waiting == 0

    def expect(self, answers: int) -> None:
        """Wait for more answers from now on."""
        if self.waiting == 0:
            self.since_s = monotonic()
        self.waiting += answers

    def answered(self, answers: int) -> None:
        """So many answers have come."""
        self.waiting -= answers
        self._answers += answers
        if self.waiting == 0:
            self.request = None

    def gives_sign(self, mark: int) -> bool:
        """Whether it has done anything since the last time."""
        before, self._sign = self._sign, (self._answers, mark)
        return before != self._sign

    def take_over(self, predecessor: "Line") -> None:
        """Owe what a worker owed that has ended."""
        self.waiting, self.request = predecessor.waiting, predecessor.request

    def write(self, content: bytes, limit_s: float | None) -> None:
        """Write a request.

        Raises:
            HungUp: the process has ended.
            TimeoutError: it does not read.
        """
        protocol.write_within(self.requests, content, limit_s)

    def _open(self, memory: int, life: int) -> None:
        theirs_to_read, self.requests = os.pipe()
        ours_to_read, theirs_to_write = os.pipe()
        self.inbox = protocol.Inbox(ours_to_read)
        passed = (theirs_to_read, theirs_to_write, memory, life)
        try:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-X", "faulthandler", "-c", _PROGRAM),
                    *(json.dumps(sys.path), *map(str, passed)),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=passed,
                process_group=0,  # so that Ctrl-C reaches the caller alone
            )
        except BaseException:
            self.stop()
            raise
        finally:
            os.close(theirs_to_read)
            os.close(theirs_to_write)
        os.set_blocking(self.requests, False)

    def stop(self) -> None:
        """Let the worker find its pipes closed, which ends it."""
        if self.requests >= 0:
            os.close(self.requests)
            os.close(self.inbox.pipe)
            self.requests = self.inbox.pipe = -1

    def end(self, limit_s: float) -> None:
        """Make sure that the process has ended, by force if it takes too long by itself."""
        self.stop()
        self._wait(limit_s)

    def last_words(self) -> str:
        """How the process, which hung up, has ended."""
        self._wait(1.0)
        code = self.process.returncode
        how = f"exited with code {code}" if code >= 0 else f"was ended by {_signal_name(-code)}"
        return f"worker {self.task.worker} {how}"

    def _wait(self, limit_s: float) -> None:
        try:
            self.process.wait(max(0.0, limit_s))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
