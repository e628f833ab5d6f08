"""Main program of a worker process."""

import os
import pickle
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from cagepool._core import WorkerLoop, exit_with_parent
from cagepool.envs.spaces import check_space_supported
from cagepool.envs.vector_args import AnyEnv, EnvFn
from cagepool.envs.workers.env_runner import EnvRunner
from cagepool.envs.workers.faults import ExceptionReport, describe_exception
from cagepool.envs.workers.protocol import (
    CallResult,
    EnvsMade,
    FaultReport,
    ImportsDone,
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


class WorkerDescriptors(NamedTuple):
    """File descriptors that a worker inherits; the last three are `process.PoolDescriptors`."""

    requests: int  # the pipe from the parent
    answers: int  # the pipe to the parent
    memory: int
    life_pipe: int
    parent_pidfd: int


def main(start: BinaryIO, *inherited: int) -> None:
    """Serve the parent process until it closes the pipes.

    Args:
        start: File that holds the pickled `WorkerTask`.
        inherited: The `WorkerDescriptors`.
    """
    descriptors = WorkerDescriptors(*inherited)
    for descriptor in descriptors:
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - takes no keywords
    exit_with_parent(descriptors.life_pipe, descriptors.parent_pidfd)
    with start:
        task = pickle.load(start)
    worker = Worker(task, descriptors)
    with suppress(PipeClosed, _FaultReported):
        try:
            worker.run()
        except (PipeClosed, _FaultReported):
            raise
        except BaseException as error:  # noqa: BLE001 - an environment cannot be made or remade
            worker.report_fatal(error)
        finally:
            worker.close()


class Worker:
    """Makes environments and handles the requests of the parent process."""

    _runner: EnvRunner | None = None  # once the environments are made

    def __init__(self, task: WorkerTask, descriptors: WorkerDescriptors) -> None:
        """Take the pipes and the shared memory."""
        self._task = task
        self._requests = PipeReader(descriptors.requests)
        self._answers = descriptors.answers
        self._memory = descriptors.memory
        self._current_env: Int64s = map_current_env(self._memory, task.workers)[task.worker :]
        self._envs: list[AnyEnv] = []

    def run(self) -> None:
        """Make the environments and handle requests until the parent closes the pipe."""
        task = self._task
        env_fns = pickle.loads(task.env_fns)
        self._send(ImportsDone())
        description = self._make_envs(env_fns)
        self._send(EnvsMade(pickle.dumps(description)))
        arrays = map_arrays(self._memory, task.workers, task.num_envs, description)
        self._runner = runner = EnvRunner(task, env_fns, self._envs, arrays)
        runner.report_fault = self._report_fault
        loop = runner.worker_loop()  # a local variable, since it refers to this object
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
        assert self._runner is not None
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

    def stop(self) -> None:
        """End as if the pipe had been closed."""
        raise PipeClosed

    def close(self) -> None:
        """Close all environments, even if one raises."""
        for env in self._envs:
            try:
                env.close()
            except Exception:  # noqa: BLE001 - the others must be closed too
                traceback.print_exc()

    def report_fatal(self, error: BaseException) -> None:
        """Report an exception after which this process cannot continue."""
        activity = "made again" if self._runner is not None and self._runner.is_remaking else ""
        env, report = int(self._current_env[0]), describe_exception(error)
        self._send(FaultReport(env, report, activity, ends_worker=True))

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

    def _report_fault(self, env: int, error: ExceptionReport) -> None:
        """Report an environment that raised; returns only if it may be replaced."""
        self._send(FaultReport(env, error))
        if not self._task.restart:
            raise _FaultReported

    def _call_each(self, function: Callable[[AnyEnv, int], Any]) -> None:
        local_index, values = 0, []
        try:
            for local_index, env in enumerate(self._envs):
                self._current_env[0] = self._task.start + local_index
                values.append(pickle.dumps(function(env, local_index)))
            result = CallResult(values)
        except BaseException as error:  # noqa: BLE001 - an environment may raise anything
            result = CallResult([], self._task.start + local_index, describe_exception(error))
        self._current_env[0] = NO_ENV
        self._send(result)

    def _send(self, content: object) -> None:
        write_all(self._answers, encode_message(content))
