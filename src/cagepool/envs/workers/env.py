"""`WorkerVectorEnv`: environments in worker processes as one Gymnasium vector environment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, Unpack
from weakref import finalize

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from cagepool.envs.async_api import Ready
from cagepool.envs.spaces import Tree, assign_actions, copy_tree, take_rows
from cagepool.envs.vector_args import (
    Autoreset,
    EnvFn,
    Seed,
    autoreset_name,
    check_ids,
    check_min_ready,
    check_none_pending,
    check_reset_mask,
    one_thread_at_a_time,
    read_only,
    seeds_by_env,
)
from cagepool.envs.workers.pool import PoolConfig, WorkerPool, WorkerSettings
from cagepool.envs.workers.protocol import WorkerTask
from cagepool.types import Bools, Float64s, Infos, Int64s

_ALL_ROWS = slice(None)


class WorkerVectorEnv(VectorEnv[Tree, Any, NDArray[Any]]):
    """Environments in worker processes, several per process, stepped together or asynchronously.

    `cagepool.make_vec` is the usual way to make one.
    """

    restarts: Int64s  # replacements per environment; read-only, always current

    closed = True  # until the workers run: Gymnasium 1.2 calls close even if __init__ raised

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        *,
        autoreset: Autoreset | AutoresetMode = "next_step",
        copy: bool = True,
        **settings: Unpack[WorkerSettings],
    ) -> None:
        """Start the workers and make the environments. See `cagepool.make_vec`."""
        if not env_fns:
            raise ValueError("there must be at least 1 environment, got 0")
        config = PoolConfig(autoreset=autoreset_name(autoreset), **settings)
        self._pool = WorkerPool(env_fns, config)
        self.call_lock = self._pool.call_lock
        self.closed = False
        self._finalizer = finalize(self, self._pool.close, kill_busy=True)
        self._copy = copy
        self._needs_reset: Bools = np.ones(len(env_fns), np.bool_)
        self.restarts = read_only(self._pool.restarts)
        env = self._pool.env
        self.num_envs = len(env_fns)
        self.render_mode = env.render_mode
        self.autoreset_mode = AutoresetMode[config.autoreset.upper()]
        self.metadata = {
            **env.metadata,
            "autoreset_mode": self.autoreset_mode,
            "backend": "workers",
        }
        self.single_observation_space = env.observation_space
        self.single_action_space = env.action_space
        self.observation_space = batch_space(env.observation_space, self.num_envs)
        self.action_space = batch_space(env.action_space, self.num_envs)

    @one_thread_at_a_time
    def reset(
        self, *, seed: Seed = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Tree, Infos]:
        """Start new episodes; waits for pending steps and drops their results.

        Args:
            seed: Environment i gets `seed + i`, or entry i of a list.
            options: Passed on to the environments, except `reset_mask`, a Boolean array: only
                these environments are reset.
        """
        pool = self._open_pool()
        env_options = dict(options or {})
        mask = check_reset_mask(env_options.pop("reset_mask", None), self.num_envs)
        seeds = seeds_by_env(seed, self.num_envs)
        with pool:
            self._drop_pending(pool)
            for worker in pool.workers:
                start = worker.task.start
                local_indices = np.flatnonzero(mask[start : worker.task.stop]).tolist()
                if local_indices:
                    reset_seeds = [seeds.get(start + local_index) for local_index in local_indices]
                    arguments = (
                        local_indices,
                        reset_seeds,
                        None if options is None else env_options,
                    )
                    pool.request(worker, "reset", arguments, len(local_indices))
            infos = self._wait_for_answers(pool, int(np.count_nonzero(mask)))
        self._needs_reset[mask] = False
        return self._observations(pool), infos

    @one_thread_at_a_time
    def step(self, actions: Any) -> tuple[Tree, Float64s, Bools, Bools, Infos]:
        """Step every environment and wait for all.

        Raises:
            EnvironmentFault: an environment failed; all workers have ended.
        """
        pool = self._open_pool()
        check_none_pending(pool.pending)
        self._check_needs_no_reset(_ALL_ROWS)
        assign_actions(pool.arrays.actions, _ALL_ROWS, actions)
        with pool:
            pool.request_step_all()
            infos = self._wait_for_answers(pool, self.num_envs)
        arrays = pool.arrays
        results = (arrays.rewards, arrays.terminations, arrays.truncations)
        if self._copy:
            results = (results[0].copy(), results[1].copy(), results[2].copy())
        self._mark_ended(_ALL_ROWS, results[1], results[2])
        return self._observations(pool), *results, infos

    @one_thread_at_a_time
    def send(self, actions: Any, ids: ArrayLike | None = None) -> None:
        """Start a step of some environments without waiting for it.

        Args:
            actions: One per environment in `ids`.
            ids: Environments to step, all by default; none may be pending, that is sent and not
                yet received.
        """
        pool = self._open_pool()
        checked = check_ids(ids, pool.pending)
        self._check_needs_no_reset(checked)
        assign_actions(pool.arrays.actions, checked, actions)
        with pool:
            pool.request_steps(checked)

    @one_thread_at_a_time
    def recv(self, min_ready: int = 1) -> Ready:
        """Wait for at least `min_ready` environments; returns the results of all that are ready.

        Raises:
            EnvironmentFault: an environment failed; all workers have ended.
        """
        pool = self._open_pool()
        check_min_ready(min_ready, pool.pending_count)
        with pool:
            pool.poll(0.0)
            while pool.answered_count < min_ready:
                pool.poll(answers=min_ready - pool.answered_count)
            return self._take_ready(pool)

    async def arecv(self, min_ready: int = 1) -> Ready:
        """Form of `recv` for asyncio: other tasks run during the wait."""
        while (ready := self._try_recv(min_ready)) is None:
            await self._pool.wait_readable(min_ready - self._pool.answered_count)
        return ready

    def call(self, name: str, *arguments: Any, **keywords: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or get an attribute.

        Raises:
            EnvironmentFault: an environment raised; the workers continue.
        """
        return self._request_each("call", lambda _: (name, arguments, keywords))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Get an attribute of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: from a list or tuple, or to one value."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"there must be {self.num_envs} values, got {len(values)}")
        self._request_each("assign", lambda task: (name, values[task.start : task.stop]))

    def render(self) -> tuple[Any, ...]:
        """Render each environment."""
        return self.call("render")

    @property
    def true_state(self) -> NDArray[Any]:
        """The true state of every environment as last queried, `true_state_age` steps ago.

        Read-only; the next step of an environment overwrites its row. Fields of structured arrays
        are attributes.

        Raises:
            RuntimeError: true states are never queried.
        """
        states = read_only(self._true_state_pool().arrays.true_state)
        return states.view(np.recarray) if states.dtype.names else states

    @property
    def true_state_age(self) -> Int64s:
        """Steps since the true state of each environment was queried; 0: it is current."""
        return read_only(self._true_state_pool().arrays.ages)

    @property
    def worker_pids(self) -> list[int]:
        """Process id of each worker, in the order of their environments."""
        return [worker.process.pid for worker in self._pool.workers]

    def close_extras(self, **kwargs: object) -> None:  # noqa: ARG002 - Gymnasium's signature
        """Close the environments and end the workers."""
        self._close()

    @one_thread_at_a_time
    def _close(self) -> None:
        self._pool.close()
        self._finalizer.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_pool(self) -> WorkerPool:
        if self._pool.is_forked:
            raise RuntimeError(
                "an environment must be used by the process that made it, "
                "not by a process forked from it"
            )
        if self._pool.closed:
            raise ClosedEnvironmentError("an environment must not be used after it was closed")
        return self._pool

    def _check_needs_no_reset(self, ids: Any) -> None:
        if np.count_nonzero(self._needs_reset) and self._needs_reset[ids].any():
            env = np.arange(self.num_envs)[ids][self._needs_reset[ids]][0]
            raise ResetNeeded(f"environment {env} must be reset before its next step")

    def _true_state_pool(self) -> WorkerPool:
        pool = self._open_pool()
        if pool.env.true_state is None:
            raise RuntimeError("true_state needs an environment made with true_state='every'")
        return pool

    def _mark_ended(self, ids: Any, terminations: Bools, truncations: Bools) -> None:
        if self._pool.config.autoreset == "disabled":
            self._needs_reset[ids] = terminations | truncations

    def _observations(self, pool: WorkerPool) -> Tree:
        return copy_tree(pool.arrays.observations) if self._copy else pool.arrays.observations

    def _wait_for_answers(self, pool: WorkerPool, answers: int) -> Infos:
        while pool.answered_count < answers:
            pool.poll(answers=answers - pool.answered_count)
        pool.drop_answered()
        if not pool.infos:
            return {}
        infos, pool.infos = sorted(pool.infos.items()), {}
        return self._batch_infos(pool, [(env, env, info) for env, info in infos], self.num_envs)

    def _batch_infos(
        self, pool: WorkerPool, infos: Iterable[tuple[int, int, Infos]], num_rows: int
    ) -> Infos:
        """Merge infos, given with their row and environment, into Gymnasium's arrays and masks.

        Raises:
            EnvironmentFault: an info does not fit to those of other environments.
        """
        batcher = _InfoBatcher(num_rows)
        result: Infos = {}
        for row, env, info in infos:
            try:
                result = batcher.add(result, info, row)
            except Exception as error:
                raise pool.merge_fault(env, error) from error
        return result

    def _drop_pending(self, pool: WorkerPool) -> None:
        """Wait for pending steps and drop their results."""
        if pool.pending_count:
            self._wait_for_answers(pool, pool.pending_count)
            pool.mark_received(np.flatnonzero(pool.pending))

    @one_thread_at_a_time
    def _try_recv(self, min_ready: int) -> Ready | None:
        """Results if at least `min_ready` environments are ready, without waiting."""
        pool = self._open_pool()
        check_min_ready(min_ready, pool.pending_count)
        with pool:
            pool.poll(0.0)
            return self._take_ready(pool) if pool.answered_count >= min_ready else None

    def _take_ready(self, pool: WorkerPool) -> Ready:
        ids = pool.take_answered().astype(np.int64)
        pool.mark_received(ids)
        arrays = pool.arrays
        rewards = arrays.rewards.take(ids)
        terminations, truncations = arrays.terminations.take(ids), arrays.truncations.take(ids)
        infos: Infos = {}
        if pool.infos:
            by_row = [(row, env, pool.infos.pop(env, {})) for row, env in enumerate(ids.tolist())]
            infos = self._batch_infos(pool, by_row, len(ids))
        self._mark_ended(ids, terminations, truncations)
        observations = take_rows(arrays.observations, ids)
        return Ready(ids, observations, rewards, terminations, truncations, infos)

    @one_thread_at_a_time
    def _request_each(
        self, method: str, arguments: Callable[[WorkerTask], tuple[Any, ...]]
    ) -> tuple[Any, ...]:
        """Call a method of every worker; returns one value per environment."""
        pool = self._open_pool()
        check_none_pending(pool.pending)
        with pool:
            for worker in pool.workers:
                pool.request(worker, method, arguments(worker.task), 1)
            while not all(worker.is_idle for worker in pool.workers):
                pool.poll()
        return tuple(value for worker in pool.workers for value in worker.call_values())


class _InfoBatcher(VectorEnv[Any, Any, Any]):
    """Gives access to Gymnasium's own batching of infos, for any number of rows."""

    closed = True  # there is nothing to close

    def __init__(self, num_rows: int) -> None:
        self.num_envs = num_rows

    def add(self, infos: Infos, info: Infos, row: int) -> Infos:
        return self._add_info(infos, info, row)
