"""Main program of a worker process."""

import os
import pickle
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from cagepool._core import WorkerLoop
from cagepool.envs.env_fns import AnyEnv, EnvFn
from cagepool.envs.space_tree import check_space_supported
from cagepool.envs.workers.env_runner import EnvRunner
from cagepool.envs.workers.protocol import (
    CallResult,
    EnvsMade,
    FaultReport,
    PipeClosed,
    PipeReader,
    WorkerTask,
    encode_message,
    write_all,
)
from cagepool.envs.workers.shared_memory import (
    NO_ENV,
    EnvDescription,
    map_arrays,
    map_current_env,
)
from cagepool.envs.workers.true_state import true_state_format
from cagepool.types import Infos, Int64s


class _FaultReported(BaseException):
    """The parent knows of the fault; the process must end."""


def main(requests: int, answers: int, memory: int, life_pipe: int) -> None:
    """Serve the parent process until it closes the pipes.

    Args:
        requests: File descriptor of the pipe from the parent.
        answers: File descriptor of the pipe to the parent.
        memory: File descriptor of the shared memory.
        life_pipe: File descriptor of a pipe that closes when the parent ends.
    """
    for descriptor in (requests, answers, memory, life_pipe):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - takes no keywords
    threading.Thread(target=_exit_with_parent, args=(life_pipe,), daemon=True).start()
    worker = Worker(PipeReader(requests), answers, memory)
    with suppress(PipeClosed, _FaultReported):
        try:
            worker.run()
        except (PipeClosed, _FaultReported):
            raise
        except BaseException:  # noqa: BLE001 - an environment cannot be made or remade
            worker.report_fatal(traceback.format_exc())
        finally:
            worker.close()


def _exit_with_parent(life_pipe: int) -> None:
    """Wait for the end of the parent, and exit even if an environment never returns."""
    os.read(life_pipe, 1)
    os._exit(1)


class Worker:
    """Makes environments and handles the requests of the parent process."""

    _task: WorkerTask
    _runner: EnvRunner
    _current_env: Int64s

    def __init__(self, requests: PipeReader, answers: int, memory: int) -> None:
        """Take the pipes and the shared memory."""
        self._requests = requests
        self._answers = answers
        self._memory = memory
        self._envs: list[AnyEnv] = []

    def run(self) -> None:
        """Make the environments and handle requests until the parent closes the pipe."""
        self._task = task = self._requests.read_message()
        self._current_env = map_current_env(self._memory, task.workers)[task.worker :]
        env_fns = pickle.loads(task.env_fns)
        description = self._make_envs(env_fns)
        self._send(EnvsMade(description))
        arrays = map_arrays(self._memory, task.workers, task.num_envs, description)
        self._runner = EnvRunner(task, env_fns, self._envs, arrays)
        self._runner.report_fault = self._report_fault
        loop = self._runner.worker_loop()  # a local variable, since it refers to this object
        while True:
            words, messages = self._requests.parse(self._read_request(loop))
            for method, arguments in messages:
                getattr(self, method)(*arguments)
            if len(words) and not loop.answer(self._answers, words.tobytes()):
                raise PipeClosed

    def reset(
        self, local_indices: list[int], seeds: list[int | None], options: Infos | None
    ) -> None:
        """Start episodes and answer with the indices of their environments."""
        infos = self._runner.reset(local_indices, seeds, options)
        indices = np.array(local_indices, np.int32) + np.int32(self._task.start)
        write_all(self._answers, infos + indices.tobytes())

    def call(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Call a method of each environment, or get an attribute."""

        def call_or_get(env: AnyEnv, _: int) -> Any:
            value = env.get_wrapper_attr(name)
            return value(*arguments, **keywords) if callable(value) else value

        self._call_each(call_or_get)

    def assign(self, name: str, values: list[Any]) -> None:
        """Set an attribute of each environment."""
        self._call_each(lambda env, local_index: env.set_wrapper_attr(name, values[local_index]))

    def close(self) -> None:
        """Close all environments, even if one raises."""
        for env in self._envs:
            try:
                env.close()
            except Exception:  # noqa: BLE001 - the others must be closed too
                traceback.print_exc()

    def report_fatal(self, text: str) -> None:
        """Report a traceback after which this process cannot continue."""
        self._send(FaultReport(int(self._current_env[0]), text))

    def _make_envs(self, env_fns: list[EnvFn]) -> EnvDescription:
        for local_index, env_fn in enumerate(env_fns):
            self._current_env[0] = self._task.start + local_index
            env = env_fn()
            self._envs.append(env)
            spaces = (env.observation_space, env.action_space)
            first = self._envs[0]
            if spaces != (first.observation_space, first.action_space):
                raise ValueError(
                    "all environments must have the same spaces, got "
                    f"{spaces} after {(first.observation_space, first.action_space)}"
                )
        self._current_env[0] = self._task.start
        for space in (first.observation_space, first.action_space):
            check_space_supported(space)
        state_format = true_state_format(first, self._task.true_state)
        metadata = dict(first.metadata)
        self._current_env[0] = NO_ENV
        return EnvDescription(*spaces, metadata, first.render_mode, state_format)

    def _read_request(self, loop: WorkerLoop) -> bytes:
        """Step environments until a request is a message; returns the bytes of the message."""
        if self._requests.has_partial_message:
            return self._requests.read_bytes()
        return loop.serve(self._requests.pipe, self._answers, spin=self._task.spin)

    def _report_fault(self, env: int, text: str) -> None:
        """Report an environment that raised; returns only if it may be replaced."""
        self._send(FaultReport(env, text))
        if not self._task.restart:
            raise _FaultReported

    def _call_each(self, function: Callable[[AnyEnv, int], Any]) -> None:
        local_index, values = 0, []
        try:
            for local_index, env in enumerate(self._envs):
                self._current_env[0] = self._task.start + local_index
                values.append(function(env, local_index))
            answer = encode_message(CallResult(values))
        except Exception:  # noqa: BLE001 - an environment may raise anything
            result = CallResult([], self._task.start + local_index, traceback.format_exc())
            answer = encode_message(result)
        self._current_env[0] = NO_ENV
        write_all(self._answers, answer)

    def _send(self, content: object) -> None:
        write_all(self._answers, encode_message(content))
