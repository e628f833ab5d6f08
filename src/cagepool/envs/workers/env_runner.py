"""Steps the environments of one worker into the block, and replaces those that raise."""

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.envs.env_fns import AnyEnv, Maker
from cagepool.envs.space_tree import part, reader, writer
from cagepool.envs.workers import protocol
from cagepool.envs.workers.messages import Given, Task
from cagepool.envs.workers.shared_memory import Block, Marks
from cagepool.envs.workers.true_state import Truth
from cagepool.types import Infos

_PLAYING, _OVER, _LOST = 0, 1, 2


class Stepper:
    """Environments by place: their index less that of the worker's first."""

    report: Callable[[int, str], None]  # is told of tracebacks; ends the process or returns

    def __init__(self, task: Task, makers: list[Maker], envs: list[AnyEnv], block: Block) -> None:
        """Take over the environments."""
        self._task = task
        self._makers = makers
        self._envs = envs
        mine = slice(task.start, task.start + len(envs))
        seen, actions = part(block.observations, mine), part(block.actions, mine)
        self._last_observation = reader(seen)
        self._write = writer("an observation", seen)
        self._rewards, self._terminations = block.rewards[mine], block.terminations[mine]
        self._truncations = block.truncations[mine]
        self._mark = block.marks.array[task.worker : task.worker + 1]
        self._states = bytearray([_LOST if task.lost else _PLAYING] * len(envs))
        self._steps: list[object] = []
        self._truth = None
        if len(block.ages):
            self._truth = Truth(task.true_state, block.true_state[mine], block.ages[mine])
        self._look_up()
        self._takes = reader(actions)
        self._seen = seen

    def loop(self) -> _core.WorkerLoop:
        """The loop over the environments, for one owner: it holds on to this stepper."""
        return _core.WorkerLoop(
            steps=self._steps,
            read_action=self._takes,
            write_observation=self._write,
            finish_step=self._finish,
            pack_infos=_carried,
            numpy_false=np.False_,
            observations=self._seen if isinstance(self._seen, np.ndarray) else None,
            rewards=self._rewards,
            terminations=self._terminations,
            truncations=self._truncations,
            needs_reset=self._states,
            current_env=self._mark,
            first_env=self._task.start,
            fast_path=self._truth is None,
        )

    def reset(self, places: list[int], seeds: list[int | None], options: Infos | None) -> bytes:
        """Start episodes as the caller asks; returns infos as they go through the pipe."""
        given = []
        for place, seed in zip(places, seeds, strict=True):
            self._mark[0] = self._task.start + place
            try:
                info = self._start(place, seed, options)
                pickled = pickle.dumps(info)
            except BaseException as error:  # noqa: BLE001 - an environment may raise anything
                lost = self._remake(place, error)
                info = {**self._start(place, seed, options), **lost}
                pickled = pickle.dumps(info)
            if info:
                given.append((self._task.start + place, pickled))
        self._mark[0] = Marks.NOWHERE
        return _carried(given)

    def _finish(self, place: int, outcome: Any) -> bytes | None:
        """Deal with a step that is not as most are; returns its infos, pickled, if it has any.

        Args:
            place: Where it was.
            outcome: What the environment gave or raised; nothing if it is to be renewed instead.
        """
        if not isinstance(outcome, BaseException):
            try:
                renewed = self._states[place] != _PLAYING
                info = self._renew(place) if renewed else self._take_in(place, outcome)
                return pickle.dumps(info) if info else None
            except BaseException as error:  # noqa: BLE001 - an environment may raise anything
                outcome = error
        return pickle.dumps(self._replace(place, outcome))

    def _take_in(self, place: int, outcome: Any) -> Infos:
        """Put down what an environment gave; returns the infos of the step."""
        seen, reward, terminated, truncated, info = outcome
        self._write(place, seen)
        self._rewards[place] = float(reward)
        if self._truth is not None:
            self._truth.stepped(place, ended=terminated or truncated)
        if terminated or truncated:
            self._terminations[place], self._truncations[place] = terminated, truncated
            info = self._end(place, seen, info)
        step_infos: Infos = info
        return step_infos

    def _look_up(self) -> None:
        """Find once what is called in every step."""
        self._steps[:] = [env.step for env in self._envs]
        if self._truth is not None:
            self._truth.follow(self._envs)

    def _start(self, place: int, seed: int | None, options: Infos | None) -> Infos:
        seen, info = self._envs[place].reset(seed=seed, options=options)
        self._write(place, seen)
        if self._truth is not None:
            self._truth.started(place)
        if self._states[place] == _LOST:
            info = {**info, **_restarted(self._task.lost)}
        self._states[place] = _PLAYING
        return info

    def _start_next(self, place: int) -> Infos:
        """Start the next episode after the end of one."""
        seen, info = self._envs[place].reset()
        self._write(place, seen)
        if self._truth is not None:
            self._truth.renewed(place)
        self._states[place] = _PLAYING
        return info

    def _end(self, place: int, seen: Any, info: Infos) -> Infos:
        """An episode is over; returns the infos of the step."""
        if self._task.autoreset == "same_step":
            final = {"final_obs": seen, "final_info": info}
            return {**final, **self._start_next(place)}
        self._states[place] = _OVER if self._task.autoreset == "next_step" else _PLAYING
        return info

    def _renew(self, place: int) -> Infos:
        """The step of an environment that is over or lost: its action is ignored."""
        lost = self._states[place] == _LOST
        self._rewards[place] = 0.0
        if not lost:
            return self._start_next(place)
        self._terminations[place], self._truncations[place] = False, True
        if self._truth is not None:
            self._truth.lost(place)
        seen = self._last_observation(place)
        return {**self._end(place, seen, {}), **_restarted(self._task.lost)}

    def _replace(self, place: int, error: BaseException) -> Infos:
        """Make an environment anew that has just raised in a step; returns the infos of it."""
        restarted = self._remake(place, error)
        self._states[place] = _LOST
        return {**self._renew(place), **restarted}

    def _remake(self, place: int, error: BaseException) -> Infos:
        trace = "".join(traceback.format_exception(error))
        self.report(self._task.start + place, trace)
        self._envs[place] = self._makers[place]()
        self._look_up()
        return _restarted(trace)


def _restarted(fault: str) -> Infos:
    return {"restarted": True, "fault": fault}


def _carried(given: list[tuple[int, bytes]]) -> bytes:
    return protocol.message(Given(given)) if given else b""
