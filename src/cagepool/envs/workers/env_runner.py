"""`EnvRunner`: steps, resets and restarts the environments of one worker, in the worker."""

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.envs.env_fns import AnyEnv, EnvFn
from cagepool.envs.space_tree import row_reader, row_writer, slice_rows
from cagepool.envs.workers.protocol import StepInfos, WorkerTask, encode_message
from cagepool.envs.workers.shared_memory import NO_ENV, SharedArrays
from cagepool.envs.workers.true_state import TrueStateWriter
from cagepool.types import Infos

# States of an environment. In all but the first, its next step ignores the action.
_PLAYING = 0
_OVER = 1  # the episode ended: the next step resets the environment
_RESTARTED = 2  # the worker is new: the next step ends the lost episode


class EnvRunner:
    """Runs environments and writes their results to shared memory.

    `place` is the index of an environment within its worker.
    """

    report_fault: Callable[[int, str], None]
    """Reports the traceback of an environment; ends the process unless restarts are allowed."""

    def __init__(
        self, task: WorkerTask, env_fns: list[EnvFn], envs: list[AnyEnv], arrays: SharedArrays
    ) -> None:
        """Take over the environments."""
        self._task = task
        self._env_fns = env_fns
        self._envs = envs
        rows = slice(task.start, task.start + len(envs))
        self._observations = slice_rows(arrays.observations, rows)
        self._read_observation = row_reader(self._observations)
        self._write_observation = row_writer("an observation", self._observations)
        self._read_action = row_reader(slice_rows(arrays.actions, rows))
        self._rewards, self._terminations = arrays.rewards[rows], arrays.terminations[rows]
        self._truncations = arrays.truncations[rows]
        self._current_env = arrays.current_env[task.worker : task.worker + 1]
        self._states = bytearray([_RESTARTED if task.restart_reason else _PLAYING] * len(envs))
        self._step_methods: list[object] = []
        self._true_states = None
        if len(arrays.ages):
            states, ages = arrays.true_state[rows], arrays.ages[rows]
            self._true_states = TrueStateWriter(task.true_state, states, ages)
        self._bind_envs()

    def worker_loop(self) -> _core.WorkerLoop:
        """The native request loop, which keeps a reference to this runner."""
        observations = self._observations
        return _core.WorkerLoop(
            steps=self._step_methods,
            read_action=self._read_action,
            write_observation=self._write_observation,
            finish_step=self._finish_step,
            pack_infos=_encode_infos,
            numpy_false=np.False_,
            observations=observations if isinstance(observations, np.ndarray) else None,
            rewards=self._rewards,
            terminations=self._terminations,
            truncations=self._truncations,
            needs_reset=self._states,
            current_env=self._current_env,
            first_env=self._task.start,
            fast_path=self._true_states is None,
        )

    def reset(self, places: list[int], seeds: list[int | None], options: Infos | None) -> bytes:
        """Start episodes as the caller asked; returns the message that carries the infos."""
        infos = []
        for place, seed in zip(places, seeds, strict=True):
            self._current_env[0] = self._task.start + place
            try:
                info = self._reset_env(place, seed, options)
                pickled = pickle.dumps(info)
            except BaseException as error:  # noqa: BLE001 - an environment may raise anything
                restart_info = self._remake_env(place, error)
                info = {**self._reset_env(place, seed, options), **restart_info}
                pickled = pickle.dumps(info)
            if info:
                infos.append((self._task.start + place, pickled))
        self._current_env[0] = NO_ENV
        return _encode_infos(infos)

    def _finish_step(self, place: int, result: Any) -> bytes | None:
        """Finish a step that the native loop does not handle; returns its pickled infos, if any.

        Args:
            place: Of the environment.
            result: What `step` returned or raised; None if it was not called because the
                environment is not playing.
        """
        if not isinstance(result, BaseException):
            try:
                is_playing = self._states[place] == _PLAYING
                info = self._store_step(place, result) if is_playing else self._resume(place)
                return pickle.dumps(info) if info else None
            except BaseException as error:  # noqa: BLE001 - an environment may raise anything
                result = error
        return pickle.dumps(self._restart_env(place, result))

    def _store_step(self, place: int, result: Any) -> Infos:
        """Write the results of a step to shared memory; returns its infos."""
        observation, reward, terminated, truncated, info = result
        self._write_observation(place, observation)
        self._rewards[place] = float(reward)
        if self._true_states is not None:
            self._true_states.after_step(place, ended=terminated or truncated)
        if terminated or truncated:
            self._terminations[place], self._truncations[place] = terminated, truncated
            info = self._end_episode(place, observation, info)
        step_infos: Infos = info
        return step_infos

    def _bind_envs(self) -> None:
        """Look up the methods that are called in every step."""
        self._step_methods[:] = [env.step for env in self._envs]
        if self._true_states is not None:
            self._true_states.set_envs(self._envs)

    def _reset_env(self, place: int, seed: int | None, options: Infos | None) -> Infos:
        observation, info = self._envs[place].reset(seed=seed, options=options)
        self._write_observation(place, observation)
        if self._true_states is not None:
            self._true_states.write(place)
        if self._states[place] == _RESTARTED:
            info = {**info, **_restart_info(self._task.restart_reason)}
        self._states[place] = _PLAYING
        return info

    def _autoreset(self, place: int) -> Infos:
        observation, info = self._envs[place].reset()
        self._write_observation(place, observation)
        if self._true_states is not None:
            self._true_states.after_autoreset(place)
        self._states[place] = _PLAYING
        return info

    def _end_episode(self, place: int, observation: Any, info: Infos) -> Infos:
        """Handle the end of an episode by the autoreset mode; returns the infos of the step."""
        if self._task.autoreset == "same_step":
            final = {"final_obs": observation, "final_info": info}
            return {**final, **self._autoreset(place)}
        self._states[place] = _OVER if self._task.autoreset == "next_step" else _PLAYING
        return info

    def _resume(self, place: int) -> Infos:
        """Step an environment that is over or was restarted, without its action."""
        was_restarted = self._states[place] == _RESTARTED
        self._rewards[place] = 0.0
        if not was_restarted:
            return self._autoreset(place)
        self._terminations[place], self._truncations[place] = False, True
        if self._true_states is not None:
            self._true_states.after_restart(place)
        last_observation = self._read_observation(place)
        infos = self._end_episode(place, last_observation, {})
        return {**infos, **_restart_info(self._task.restart_reason)}

    def _restart_env(self, place: int, error: BaseException) -> Infos:
        """Replace an environment that raised in a step, which truncates its episode."""
        restart_info = self._remake_env(place, error)
        self._states[place] = _RESTARTED
        return {**self._resume(place), **restart_info}

    def _remake_env(self, place: int, error: BaseException) -> Infos:
        text = "".join(traceback.format_exception(error))
        self.report_fault(self._task.start + place, text)
        self._envs[place] = self._env_fns[place]()
        self._bind_envs()
        return _restart_info(text)


def _restart_info(fault: str) -> Infos:
    return {"restarted": True, "fault": fault}


def _encode_infos(infos: list[tuple[int, bytes]]) -> bytes:
    return encode_message(StepInfos(infos)) if infos else b""
