"""Environments of any kind in worker processes, as one Gymnasium vector environment."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import Any, Self, Unpack
from weakref import finalize

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from cagepool.envs import seeding
from cagepool.envs.arrays import read_only
from cagepool.envs.async_api import Ready, check_min_ready, check_none_is_out, checked_ids
from cagepool.envs.env_fns import Maker
from cagepool.envs.info_batching import gathered
from cagepool.envs.settings import Autoreset, mode_name, reset_mask
from cagepool.envs.space_tree import Tree, assign, copied, rows
from cagepool.envs.thread_guard import alone
from cagepool.envs.workers import faults
from cagepool.envs.workers.awaiting import readable
from cagepool.envs.workers.config import PoolConfig, WorkerSettings
from cagepool.envs.workers.messages import Task
from cagepool.envs.workers.pool import Pool
from cagepool.types import Bools, Float64s, Infos, Int64s

_EVERYWHERE = slice(None)


class WorkerVectorEnv(VectorEnv[Tree, Any, NDArray[Any]]):
    """Environments in worker processes, several in each, stepped together or as they are ready.

    `cagepool.make_vec` is the usual way to make one.
    """

    restarts: Int64s  # how often each environment was replaced; read-only, always current

    closed = True  # until the workers run: Gymnasium 1.2 closes even what failed to start

    def __init__(
        self,
        makers: Sequence[Maker],
        *,
        autoreset: Autoreset | AutoresetMode = "next_step",
        copy: bool = True,
        **settings: Unpack[WorkerSettings],
    ) -> None:
        """Start the workers and make the environments, as `cagepool.make_vec` says."""
        if not makers:
            raise ValueError("there must be at least 1 environment, got 0")
        config = PoolConfig(autoreset=mode_name(autoreset), **settings)
        self.running = Lock()
        self._pool = Pool(makers, config)
        self.closed = False
        self._end = finalize(self, self._pool.close, at_once=True)
        self._copy = copy
        self._over: Bools = np.ones(len(makers), np.bool_)  # must be reset by the caller
        self.restarts = read_only(self._pool.restarts)
        form = self._pool.form
        self.num_envs = len(makers)
        self.render_mode = form.render_mode
        self.autoreset_mode = AutoresetMode[config.autoreset.upper()]
        self.metadata = {**form.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = form.observation_space
        self.single_action_space = form.action_space
        self.observation_space = batch_space(form.observation_space, self.num_envs)
        self.action_space = batch_space(form.action_space, self.num_envs)

    @alone
    def reset(
        self, *, seed: seeding.Seed = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Tree, Infos]:
        """Start new episodes; steps that are on their way are waited for and forgotten.

        Args:
            seed: Environment i gets `seed + i`, or entry i of a list.
            options: Passed on to the environments, but for `reset_mask`, an array of Booleans:
                only these environments are reset.
        """
        pool = self._open_pool()
        others = dict(options or {})
        mask = reset_mask(others.pop("reset_mask", None), self.num_envs)
        given = seeding.by_game(seed, self.num_envs)
        with pool:
            self._forget(pool)
            for line in pool.lines:
                start = line.task.start
                places = np.flatnonzero(mask[start : line.task.stop]).tolist()
                if places:
                    seeds = [given.get(start + place) for place in places]
                    arguments = (places, seeds, None if options is None else others)
                    pool.ask(line, "reset", arguments, len(places))
            infos = self._wait_for(pool, int(np.count_nonzero(mask)))
        self._over[mask] = False
        return self._observations(pool), infos

    @alone
    def step(self, actions: Any) -> tuple[Tree, Float64s, Bools, Bools, Infos]:
        """Step every environment, and wait for all.

        Raises:
            EnvironmentFault: one has failed; all workers have been ended.
        """
        pool = self._open_pool()
        check_none_is_out(pool.out)
        self._check_none_is_over(_EVERYWHERE)
        assign(pool.block.actions, _EVERYWHERE, actions)
        with pool:
            pool.ask_all()
            infos = self._wait_for(pool, self.num_envs)
        block = pool.block
        results = (block.rewards, block.terminations, block.truncations)
        if self._copy:
            results = (results[0].copy(), results[1].copy(), results[2].copy())
        self._note_ends(_EVERYWHERE, results[1], results[2])
        return self._observations(pool), *results, infos

    @alone
    def send(self, actions: Any, ids: ArrayLike | None = None) -> None:
        """Let environments be stepped, without waiting for them.

        Args:
            actions: One for each of them.
            ids: Which; all by default. None that was sent and has not been received yet.
        """
        pool = self._open_pool()
        checked = checked_ids(ids, pool.out)
        self._check_none_is_over(checked)
        assign(pool.block.actions, checked, actions)
        with pool:
            pool.ask_for(checked)

    @alone
    def recv(self, min_ready: int = 1) -> Ready:
        """Results of all environments that are ready, at least so many; theirs alone are given.

        Raises:
            EnvironmentFault: one has failed; all workers have been ended.
        """
        pool = self._open_pool()
        check_min_ready(min_ready, pool.away)
        with pool:
            pool.turn(0.0)
            while pool.ready < min_ready:
                pool.turn()
            return self._ready(pool)

    async def arecv(self, min_ready: int = 1) -> Ready:
        """As `recv`, for use in asyncio: others run in the meantime."""
        while (ready := self._recv_now(min_ready)) is None:
            await readable(self._pool)
        return ready

    def call(self, name: str, *arguments: Any, **keywords: Any) -> tuple[Any, ...]:
        """What this method or attribute of each environment gives.

        Raises:
            EnvironmentFault: one raised; the workers go on.
        """
        return self._ask_each("call", lambda _: (name, arguments, keywords))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """This attribute of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: from a list or tuple, or the same for all."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"there must be {self.num_envs} values, got {len(values)}")
        self._ask_each("assign", lambda task: (name, values[task.start : task.stop]))

    def render(self) -> tuple[Any, ...]:
        """What each environment renders."""
        return self.call("render")

    @property
    def true_state(self) -> NDArray[Any]:
        """The true state of every environment as last asked for, `true_state_age` steps ago.

        Read-only; the row of an environment is overwritten in its next step. The fields of
        records are attributes.

        Raises:
            RuntimeError: no true state was asked for.
        """
        self._check_true_state()
        states = read_only(self._pool.block.true_state)
        return states.view(np.recarray) if states.dtype.names else states

    @property
    def true_state_age(self) -> Int64s:
        """Steps since the true state of each environment was asked for; 0: it is current."""
        self._check_true_state()
        return read_only(self._pool.block.ages)

    @property
    def worker_pids(self) -> list[int]:
        """The process of each worker, in the order of their environments."""
        return [line.process.pid for line in self._pool.lines]

    def close_extras(self, **kwargs: object) -> None:  # noqa: ARG002 - Gymnasium's signature
        """End the workers, after a moment for their environments to close."""
        self._close()

    @alone
    def _close(self) -> None:
        self._pool.close()
        self._end.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _open_pool(self) -> Pool:
        if self._pool.closed:
            raise ClosedEnvironmentError("an environment must not be used after it was closed")
        return self._pool

    def _check_none_is_over(self, ids: Any) -> None:
        if np.count_nonzero(self._over) and self._over[ids].any():
            index = np.arange(self.num_envs)[ids][self._over[ids]][0]
            raise ResetNeeded(f"environment {index} must be reset before its next step")

    def _check_true_state(self) -> None:
        if self._pool.form.true_state is None:
            raise RuntimeError("true_state needs an environment made with true_state='every'")

    def _note_ends(self, ids: Any, terminations: Bools, truncations: Bools) -> None:
        if self._pool.config.autoreset == "disabled":
            self._over[ids] = terminations | truncations

    def _observations(self, pool: Pool) -> Tree:
        return copied(pool.block.observations) if self._copy else pool.block.observations

    def _wait_for(self, pool: Pool, answers: int) -> Infos:
        while pool.ready < answers:
            pool.turn()
        pool.taken()
        if not pool.infos:
            return {}
        infos, pool.infos = sorted(pool.infos.items()), {}
        return gathered(infos, self.num_envs)

    def _forget(self, pool: Pool) -> None:
        """Wait for what is on its way, and drop it."""
        if pool.away:
            self._wait_for(pool, pool.away)
            pool.out[:] = False
            pool.away = 0

    @alone
    def _recv_now(self, min_ready: int) -> Ready | None:
        """Results if there are so many, without waiting."""
        pool = self._open_pool()
        check_min_ready(min_ready, pool.away)
        with pool:
            pool.turn(0.0)
            return self._ready(pool) if pool.ready >= min_ready else None

    def _ready(self, pool: Pool) -> Ready:
        ids = pool.taken().astype(np.int64)
        pool.out[ids] = False
        pool.away -= len(ids)
        block = pool.block
        rewards = block.rewards.take(ids)
        terminations, truncations = block.terminations.take(ids), block.truncations.take(ids)
        infos: Infos = {}
        if pool.infos:
            given = [(row, pool.infos.pop(index, {})) for row, index in enumerate(ids.tolist())]
            infos = gathered(given, len(ids))
        self._note_ends(ids, terminations, truncations)
        observations = rows(block.observations, ids)
        return Ready(ids, observations, rewards, terminations, truncations, infos)

    @alone
    def _ask_each(
        self, request: str, arguments: Callable[[Task], tuple[Any, ...]]
    ) -> tuple[Any, ...]:
        pool = self._open_pool()
        check_none_is_out(pool.out)
        with pool:
            for line in pool.lines:
                pool.ask(line, request, arguments(line.task), 1)
            while not all(line.is_idle for line in pool.lines):
                pool.turn()
        return tuple(value for line in pool.lines for value in faults.values_of(line))
