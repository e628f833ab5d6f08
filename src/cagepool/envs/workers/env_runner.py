"""`EnvRunner`: steps, resets and restarts the environments of one worker, in the worker."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from cagepool import _core
from cagepool.envs.spaces import WriteRow, check_in_space, row_reader, row_writer, slice_rows
from cagepool.envs.vector_args import AnyEnv, EnvFn
from cagepool.envs.workers.env_results import pickle_info, unpack_reset, unpack_step
from cagepool.envs.workers.faults import ExceptionReport, describe_exception
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

    `local_index` is the index of an environment within its worker.
    """

    report_fault: Callable[[int, ExceptionReport], None]
    """Reports an exception of an environment; ends the process unless restarts are allowed."""
    is_remaking = False  # whether an environment is being made again

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
        self._write_observation = self._observation_writer()
        self._read_action = row_reader(slice_rows(arrays.actions, rows))
        self._rewards, self._terminations = arrays.rewards[rows], arrays.terminations[rows]
        self._truncations = arrays.truncations[rows]
        self._current_env = arrays.current_env[task.worker : task.worker + 1]
        self._completions = arrays.completions()
        self._states = bytearray([_RESTARTED if task.restart_reason else _PLAYING] * len(envs))
        self._step_methods: list[object] = []
        self._true_states = None
        if len(arrays.ages):
            states, ages = arrays.true_state[rows], arrays.ages[rows]
            self._true_states = TrueStateWriter(task.true_state, states, ages)
        self._bind_envs()

    def worker_loop(self) -> _core.WorkerLoop:
        """The native request loop, which keeps a reference to this runner."""
        # A single array is written by the loop itself, which checks only dtype and shape.
        is_array = isinstance(self._observations, np.ndarray) and not self._task.check
        return _core.WorkerLoop(
            steps=self._step_methods,
            read_action=self._read_action,
            write_observation=self._write_observation,
            finish_step=self._finish_step,
            pack_infos=_encode_infos,
            numpy_false=np.False_,
            observations=self._observations if is_array else None,
            rewards=self._rewards,
            terminations=self._terminations,
            truncations=self._truncations,
            needs_reset=self._states,
            current_env=self._current_env,
            completions=self._completions,
            first_env=self._task.start,
            fast_path=self._true_states is None,
        )

    def reset(
        self, local_indices: list[int], seeds: list[int | None], options: Infos | None
    ) -> bytes:
        """Start episodes on request; returns the encoded message with the infos."""
        infos = []
        for local_index, seed in zip(local_indices, seeds, strict=True):
            self._current_env[0] = self._task.start + local_index
            try:
                pickled = pickle_info(self._reset_env(local_index, seed, options))
            except BaseException as error:  # noqa: BLE001 - an environment may raise anything
                restart_info = self._remake_env(local_index, error)
                info = self._reset_env(local_index, seed, options)
                pickled = pickle_info({**info, **restart_info})
            if pickled is not None:
                infos.append((self._task.start + local_index, pickled))
        self._current_env[0] = NO_ENV
        return _encode_infos(infos)

    def _finish_step(self, local_index: int, result: Any) -> bytes | None:
        """Finish a step that the native loop does not handle; returns its pickled infos, if any.

        Args:
            local_index: Of the environment.
            result: Return value of `step`, or the exception that it raised; None if `step` was not
                called because the environment is not playing.
        """
        if not isinstance(result, BaseException):
            try:
                is_playing = self._states[local_index] == _PLAYING
                info = (
                    self._store_step(local_index, result)
                    if is_playing
                    else self._resume(local_index)
                )
                return pickle_info(info)
            except BaseException as error:  # noqa: BLE001 - an environment may raise anything
                result = error
        return pickle.dumps(self._restart_env(local_index, result))

    def _store_step(self, local_index: int, result: Any) -> Infos:
        """Write the results of a step to shared memory; returns its infos."""
        observation, reward, terminated, truncated, info = unpack_step(result)
        self._write_observation(local_index, observation)
        self._rewards[local_index] = float(reward)
        if self._true_states is not None:
            self._true_states.after_step(local_index, ended=terminated or truncated)
        if terminated or truncated:
            self._terminations[local_index], self._truncations[local_index] = terminated, truncated
            info = self._end_episode(local_index, observation, info)
        return info

    def _observation_writer(self) -> WriteRow:
        write = row_writer("an observation", self._observations)
        if not self._task.check:
            return write
        space = self._envs[0].observation_space

        def check_and_write(local_index: int, observation: Any) -> None:
            check_in_space("the observation", space, observation)
            write(local_index, observation)

        return check_and_write

    def _bind_envs(self) -> None:
        """Look up the methods that are called in every step."""
        self._step_methods[:] = [env.step for env in self._envs]
        if self._true_states is not None:
            self._true_states.set_envs(self._envs)

    def _reset_env(self, local_index: int, seed: int | None, options: Infos | None) -> Infos:
        observation, info = unpack_reset(self._envs[local_index].reset(seed=seed, options=options))
        self._write_observation(local_index, observation)
        if self._true_states is not None:
            self._true_states.write(local_index)
        if self._states[local_index] == _RESTARTED:
            info = {**info, **_restart_info(self._task.restart_reason)}
        self._states[local_index] = _PLAYING
        return info

    def _autoreset(self, local_index: int) -> Infos:
        observation, info = unpack_reset(self._envs[local_index].reset())
        self._write_observation(local_index, observation)
        if self._true_states is not None:
            self._true_states.after_autoreset(local_index)
        self._states[local_index] = _PLAYING
        return info

    def _end_episode(self, local_index: int, observation: Any, info: Infos) -> Infos:
        """Handle the end of an episode by the autoreset mode; returns the infos of the step."""
        if self._task.autoreset == "same_step":
            final = {"final_obs": observation, "final_info": info}
            return {**final, **self._autoreset(local_index)}
        self._states[local_index] = _OVER if self._task.autoreset == "next_step" else _PLAYING
        return info

    def _resume(self, local_index: int) -> Infos:
        """Step an environment that is over or was restarted, without its action."""
        was_restarted = self._states[local_index] == _RESTARTED
        self._rewards[local_index] = 0.0
        if not was_restarted:
            return self._autoreset(local_index)
        self._terminations[local_index], self._truncations[local_index] = False, True
        if self._true_states is not None:
            self._true_states.after_restart(local_index)
        last_observation = self._read_observation(local_index)
        infos = self._end_episode(local_index, last_observation, {})
        return {**infos, **_restart_info(self._task.restart_reason)}

    def _restart_env(self, local_index: int, error: BaseException) -> Infos:
        """Replace an environment that raised in a step, which truncates its episode."""
        restart_info = self._remake_env(local_index, error)
        self._states[local_index] = _RESTARTED
        return {**self._resume(local_index), **restart_info}

    def _remake_env(self, local_index: int, error: BaseException) -> Infos:
        report = describe_exception(error)
        self.report_fault(self._task.start + local_index, report)
        self.is_remaking = True
        self._envs[local_index] = self._env_fns[local_index]()
        self._bind_envs()
        self.is_remaking = False
        return _restart_info(report.traceback)


def _restart_info(fault: str) -> Infos:
    return {"restarted": True, "fault": fault}


def _encode_infos(infos: list[tuple[int, bytes]]) -> bytes:
    return encode_message(StepInfos(infos)) if infos else b""
