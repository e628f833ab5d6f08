"""A worker process."""

import os
import pickle
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from cagepool._core import WorkerLoop
from cagepool.envs.env_fns import AnyEnv, Maker
from cagepool.envs.space_tree import check_supported
from cagepool.envs.workers import protocol
from cagepool.envs.workers.env_runner import Stepper
from cagepool.envs.workers.messages import Answer, Fault, Made, Task
from cagepool.envs.workers.shared_memory import Form, Marks, mapped_block, mapped_marks
from cagepool.envs.workers.true_state import form_of
from cagepool.types import Infos, Int64s


class _Reported(BaseException):
    """The caller knows all; the process is to end."""


def main(requests: int, answers: int, memory: int, life: int) -> None:
    """Serve the process at the other ends of these descriptors until it closes them."""
    for descriptor in (requests, answers, memory, life):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - takes no keywords
    threading.Thread(target=_end_with_caller, args=(life,), daemon=True).start()
    worker = Worker(protocol.Inbox(requests), answers, memory)
    with suppress(protocol.HungUp, _Reported):
        try:
            worker.run()
        except (protocol.HungUp, _Reported):
            raise
        except BaseException:  # noqa: BLE001 - an environment cannot be made, or not be made anew
            worker.report_last(traceback.format_exc())
        finally:
            worker.close()


def _end_with_caller(life: int) -> None:
    """Wait for the end of the caller, and end even if an environment never returns."""
    os.read(life, 1)
    os._exit(1)


class Worker:
    """Makes environments and does with them what is asked."""

    _task: Task
    _stepper: Stepper
    _mark: Int64s

    def __init__(self, inbox: protocol.Inbox, answers: int, memory: int) -> None:
        """Take the ends of the pipes and the memory."""
        self._inbox = inbox
        self._answers = answers
        self._memory = memory
        self._envs: list[AnyEnv] = []

    def run(self) -> None:
        """Make environments, and do what is asked until nobody is there to ask."""
        self._task = task = self._inbox.wait_for_message()
        self._mark = mapped_marks(self._memory, task.workers).array[task.worker :]
        makers = pickle.loads(task.makers)
        form = self._make(makers)
        self._send(Made(form))
        block = mapped_block(self._memory, task.workers, task.num_envs, form)
        self._stepper = Stepper(task, makers, self._envs, block)
        self._stepper.report = self._report
        loop = self._stepper.loop()  # not kept in this object, which it refers to
        while True:
            words, messages = self._inbox.taken_in(self._asked(loop))
            for request, arguments in messages:
                getattr(self, request)(*arguments)
            if len(words) and not loop.answer(self._answers, words.tobytes()):
                raise protocol.HungUp

    def reset(self, places: list[int], seeds: list[int | None], options: Infos | None) -> None:
        """Start episodes."""
        infos = self._stepper.reset(places, seeds, options)
        answered = np.array(places, np.int32) + np.int32(self._task.start)
        protocol.write(self._answers, infos + answered.tobytes())

    def call(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Call a method of each environment, or get an attribute."""

        def called(env: AnyEnv, _: int) -> Any:
            value = env.get_wrapper_attr(name)
            return value(*arguments, **keywords) if callable(value) else value

        self._for_each(called)

    def assign(self, name: str, values: list[Any]) -> None:
        """Set an attribute of each environment."""
        self._for_each(lambda env, place: env.set_wrapper_attr(name, values[place]))

    def close(self) -> None:
        """Close the environments, come what may."""
        for env in self._envs:
            try:
                env.close()
            except Exception:  # noqa: BLE001 - the others are to be closed too
                traceback.print_exc()

    def report_last(self, trace: str) -> None:
        """Tell of an exception after which this process cannot go on."""
        self._send(Fault(int(self._mark[0]), trace))

    def _make(self, makers: list[Maker]) -> Form:
        for place, maker in enumerate(makers):
            self._mark[0] = self._task.start + place
            env = maker()
            self._envs.append(env)
            spaces = (env.observation_space, env.action_space)
            first = self._envs[0]
            if spaces != (first.observation_space, first.action_space):
                raise ValueError(
                    "all environments must have the same spaces, got "
                    f"{spaces} after {(first.observation_space, first.action_space)}"
                )
        self._mark[0] = self._task.start
        for space in (first.observation_space, first.action_space):
            check_supported(space)
        truth = form_of(first, self._task.true_state)
        metadata = dict(first.metadata)
        self._mark[0] = Marks.NOWHERE
        return Form(*spaces, metadata, first.render_mode, truth)

    def _asked(self, loop: WorkerLoop) -> bytes:
        """What has been asked that is more than to step environments."""
        if not self._inbox.is_whole:
            return self._inbox.more()
        return loop.serve(self._inbox.pipe, self._answers, spin=self._task.looks)

    def _report(self, index: int, trace: str) -> None:
        """Tell of an environment that has raised; only if it may be replaced, come back."""
        self._send(Fault(index, trace))
        if not self._task.restart:
            raise _Reported

    def _for_each(self, act: Callable[[AnyEnv, int], Any]) -> None:
        place, values = 0, []
        try:
            for place, env in enumerate(self._envs):
                self._mark[0] = self._task.start + place
                values.append(act(env, place))
            answer = protocol.message(Answer(values))
        except Exception:  # noqa: BLE001 - an environment may raise anything
            answer = protocol.message(Answer([], self._task.start + place, traceback.format_exc()))
        self._mark[0] = Marks.NOWHERE
        protocol.write(self._answers, answer)

    def _send(self, content: object) -> None:
        protocol.write(self._answers, protocol.message(content))
