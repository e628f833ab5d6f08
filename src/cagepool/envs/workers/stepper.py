"""Steps the environments of one worker into the block, and replaces those that raise."""

import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from cagepool.envs.arrays import Infos
from cagepool.envs.makers import AnyEnv, Maker
from cagepool.envs.trees import bulk_reader, part, reader, writer
from cagepool.envs.workers import wire
from cagepool.envs.workers.block import Block, Marks
from cagepool.envs.workers.messages import Given, Task
from cagepool.envs.workers.truth import Truth

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
        self._last_observation = reader(part(block.observations, mine))
        self._write = writer("an observation", part(block.observations, mine))
        self._taken = bulk_reader(part(block.actions, mine))
        # Of all ways to write single numbers into an array, a memoryview is the fastest.
        self._rewards: memoryview[Any] = block.rewards[mine].data
        self._terminations = block.terminations[mine].data
        self._truncations = block.truncations[mine].data
        self._mark = block.marks.array[task.worker :].data
        self._states = [_LOST if task.lost else _PLAYING] * len(envs)
        self._ended = set(range(len(envs)))  # places whose flags may be up
        self._truth = None
        if len(block.ages):
            self._truth = Truth(task.true_state, block.true_state[mine], block.ages[mine])
        self._look_up()

    def step(self, places: Sequence[int]) -> bytes:
        """Step environments; returns their infos as they go through the pipe."""
        steps, states, write = self._steps, self._states, self._write
        rewards, mark, truth = self._rewards, self._mark, self._truth
        first = self._task.start
        given = []
        if self._ended:
            self._lower_flags(places)
        for place, action in zip(places, self._taken(places), strict=True):
            mark[0] = first + place
            try:
                if states[place]:
                    info = self._renew(place)
                else:
                    seen, reward, terminated, truncated, info = steps[place](action)
                    write(place, seen)
                    rewards[place] = reward
                    if truth is not None:
                        truth.stepped(place, ended=terminated or truncated)
                    if terminated or truncated:
                        self._raise_flags(place, terminated=terminated, truncated=truncated)
                        info = self._end(place, seen, info)
                if info:
                    given.append((first + place, pickle.dumps(info)))
            except BaseException:  # noqa: BLE001 - an environment may raise anything
                given.append((first + place, pickle.dumps(self._replace(place))))
        mark[0] = Marks.NOWHERE
        return _carried(given)

    def reset(self, places: list[int], seeds: list[int | None], options: Infos | None) -> bytes:
        """Start episodes as the caller asks; returns infos as they go through the pipe."""
        given = []
        for place, seed in zip(places, seeds, strict=True):
            self._mark[0] = self._task.start + place
            try:
                info = self._start(place, seed, options)
                pickled = pickle.dumps(info)
            except BaseException:  # noqa: BLE001 - an environment may raise anything
                lost = self._remake(place)
                info = {**self._start(place, seed, options), **lost}
                pickled = pickle.dumps(info)
            if info:
                given.append((self._task.start + place, pickled))
        self._mark[0] = Marks.NOWHERE
        return _carried(given)

    def _look_up(self) -> None:
        """Find once what is called in every step."""
        self._steps = [env.step for env in self._envs]
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
        self._raise_flags(place, terminated=False, truncated=True)
        if self._truth is not None:
            self._truth.lost(place)
        seen = self._last_observation(place)
        return {**self._end(place, seen, {}), **_restarted(self._task.lost)}

    def _raise_flags(self, place: int, *, terminated: Any, truncated: Any) -> None:
        """Tell of an end; most steps are none, and need not write that they are not."""
        self._terminations[place] = terminated
        self._truncations[place] = truncated
        self._ended.add(place)

    def _lower_flags(self, places: Sequence[int]) -> None:
        for place in self._ended.intersection(places):
            self._terminations[place] = self._truncations[place] = False
            self._ended.remove(place)

    def _replace(self, place: int) -> Infos:
        """Make an environment anew that has just raised in a step; returns the infos of it."""
        restarted = self._remake(place)
        self._states[place] = _LOST
        return {**self._renew(place), **restarted}

    def _remake(self, place: int) -> Infos:
        trace = traceback.format_exc()
        self.report(self._task.start + place, trace)
        self._envs[place] = self._makers[place]()
        self._look_up()
        return _restarted(trace)


def _restarted(fault: str) -> Infos:
    return {"restarted": True, "fault": fault}


def _carried(given: list[tuple[int, bytes]]) -> bytes:
    return wire.message(Given(given)) if given else b""
