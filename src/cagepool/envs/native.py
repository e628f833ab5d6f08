"""Many native games as one Gymnasium vector environment."""

from collections.abc import Iterable, Mapping, Sequence
from sys import getrefcount
from threading import Lock
from time import perf_counter
from typing import Any, Self, Unpack, cast

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from cagepool.cyborg.dict_state import true_state_dict
from cagepool.envs.async_api import Ready
from cagepool.envs.graph_observation import GraphObserver
from cagepool.envs.settings import ENV_SETTINGS, EnvSettings, NativeKeywords, read_settings
from cagepool.envs.single import (
    METADATA,
    BatchOwner,
    RenderedGame,
    action_space,
    game_masks,
    make_observer,
    observation_space,
)
from cagepool.envs.spaces import copy_tree, map_tree, take_rows
from cagepool.envs.step_hooks import StepHooks, describe_last_moves, episode_infos
from cagepool.envs.vector_args import (
    Autoreset,
    Seed,
    acquire_call_lock,
    as_int64s,
    as_seeds,
    autoreset_name,
    check_ids,
    check_min_ready,
    check_none_pending,
    check_reset_mask,
    draw_seed,
    read_only,
    seeds_by_env,
)
from cagepool.scenarios import Scenario
from cagepool.sim.batch import Batch, TrueState
from cagepool.sim.masks import ScenarioIds
from cagepool.types import Bools, Float64s, Infos, Int32s, Int64s, Observations

_SETTINGS = (*ENV_SETTINGS, "threads", "num_envs", "autoreset", "copy", "statistics")


class NativeVectorEnv(BatchOwner, VectorEnv[Observations, ArrayLike, NDArray[np.generic]]):
    """N games of CAGE-2 stepped together in this process.

    Beside Gymnasium's interface it has the true state and the compliance with a workflow order,
    and saves, restores and copies games. `cagepool.make_vec` is the usual way to make one.
    """

    true_state: TrueState  # read-only views, always current
    final_true_state: TrueState  # of episodes that ended in the last step; only with same_step
    counters: Int32s  # (games, 5), see sim.COUNTERS; read-only, always current
    alignment: Float64s  # (games,), alignment reward of the last step; read-only, always current

    _settings = (*ENV_SETTINGS, "threads", "autoreset")

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset: Autoreset | AutoresetMode = "next_step",
        copy: bool = True,
        statistics: bool = False,
        **settings: Unpack[NativeKeywords],
    ) -> None:
        """Make the games; they must be reset before the first step. See `cagepool.make_vec`.

        Raises:
            TypeError: a setting is unknown.
            ValueError: a setting has an unknown value.
        """
        keywords = read_settings(settings, _SETTINGS)
        config = EnvSettings(autoreset=autoreset_name(autoreset), **keywords)
        self.render_mode = config.render_mode
        batch = Batch(num_envs, config)
        self._batch = batch
        self._hooks = StepHooks.make(batch, config)
        self._observer = make_observer(batch, config)
        self._copies = copy
        self._double_buffer = DoubleBuffer(batch) if copy and self._observer is None else None
        self._statistics = EpisodeStatistics(num_envs) if statistics else None
        self._call_lock = Lock()
        self._seeded = np.zeros(num_envs, np.bool_)
        self._sent: list[Int64s] = []  # ids of the games that were sent and not yet received
        self._pending = np.zeros(num_envs, np.bool_)  # the same as a mask
        self._terminations = read_only(np.zeros(num_envs, np.bool_))
        self._all_games = read_only(np.ones(num_envs, np.bool_))
        self.true_state = TrueState(batch)
        self.final_true_state = TrueState(batch.final_true_state)
        self.counters = read_only(batch.counters)
        self.alignment = read_only(batch.alignment)
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode[config.autoreset.upper()]
        self.metadata = {
            **METADATA,
            "autoreset_mode": self.autoreset_mode,
            "backend": "native",
        }
        self._set_spaces(batch)

    def reset(
        self, *, seed: Seed = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Start new episodes; steps that were sent and not received are dropped.

        Args:
            seed: Starts new random streams: game i gets `seed + i`, or entry i of a list. Without
                a seed a game continues its current stream; the first stream is seeded at random.
            options: `reset_mask`, a Boolean array: only these games are reset.
        """
        seeds = seeds_by_env(seed, self.num_envs)
        mask = check_reset_mask((options or {}).get("reset_mask"), self.num_envs)
        batch = self._acquire_batch()
        try:
            if isinstance(seed, int):
                super().reset(seed=seed)
            self._swap_observations(batch)
            self._start_episodes(batch, mask, seeds)
            self._clear_pending()
            infos = {} if self._hooks is None else self._hooks.reset_infos(batch, mask)
            return self._observe(batch), infos
        finally:
            self._call_lock.release()

    def step(
        self, actions: ArrayLike, red_actions: ArrayLike | None = None
    ) -> tuple[Observations, Float64s, Bools, Bools, Infos]:
        """Play one action of blue per game, and one of red if red is `given`.

        Raises:
            IndexError: an action is out of range; nothing was played.
            ValueError: the reward function failed; the step was played.
        """
        batch = self._acquire_batch()
        try:
            if self._sent:
                check_none_pending(self._pending)
            rewards, hooks = batch.rewards, self._hooks
            if hooks is not None:
                hooks.before_step(batch)
            try:
                ended = self._step_batch(batch, actions, red_actions)
            except TypeError:  # not a contiguous int64 array
                blue = as_int64s("actions", actions)
                red = None if red_actions is None else as_int64s("red_actions", red_actions)
                ended = self._step_batch(batch, blue, red)
            if hooks is not None:
                hooks.after_step(batch)
                rewards = hooks.rewards(batch)
            infos = self._episode_infos(batch, batch.truncations) if ended else {}
            if hooks is not None:
                infos = hooks.add_infos(batch, infos, self._all_games)
            truncations, terminations = batch.truncations, self._terminations
            if self._copies:
                rewards, truncations = rewards.copy(), truncations.copy()
                terminations = terminations.copy()
            return self._observe(batch), rewards, terminations, truncations, infos
        finally:
            self._call_lock.release()

    def send(self, actions: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Play one action of blue in each of the games `ids`, all by default.

        `recv` returns the results.

        Raises:
            IndexError: an action or an id is out of range; nothing was played.
            ValueError: a game was sent before and not received; nothing was played.
        """
        games = check_ids(ids, self._pending)
        blue = as_int64s("actions", actions)
        batch = self._acquire_batch()
        try:
            self._swap_observations(batch)
            hooks = self._hooks
            if hooks is not None:
                hooks.before_step(batch)
            batch.step(blue, None, games)
            if hooks is not None:
                hooks.after_step(batch, games)
            self._pending[games] = True
            self._sent.append(games)
        finally:
            self._call_lock.release()

    def recv(self, min_ready: int = 1) -> Ready:
        """Return the results of all games that were sent, at least `min_ready`."""
        check_min_ready(min_ready, int(np.count_nonzero(self._pending)))
        batch = self._acquire_batch()
        try:
            ids = np.concatenate(self._sent)
            ended = batch.truncations & self._pending
            infos = self._episode_infos(batch, ended) if ended.any() else {}
            rewards, hooks = batch.rewards, self._hooks
            if hooks is not None:
                rewards, infos = hooks.rewards(batch), hooks.add_infos(batch, infos, self._pending)
            infos = take_rows(infos, ids) if infos else {}
            self._clear_pending()
            return Ready(
                ids,
                take_rows(self._current_observations(batch), ids),
                rewards.take(ids),
                self._terminations.take(ids),
                batch.truncations.take(ids),
                infos,
            )
        finally:
            self._call_lock.release()

    async def arecv(self, min_ready: int = 1) -> Ready:
        """Form of `recv` for asyncio; native games are ready at once."""
        return self.recv(min_ready)

    def render(self) -> tuple[RenderedGame, ...]:
        """Render every game; see `render_games`."""
        return self.render_games(range(self.num_envs))

    def close_extras(self, **kwargs: object) -> None:  # noqa: ARG002 - Gymnasium's signature
        """Release the games and their threads."""
        self._batch = None

    def __repr__(self) -> str:
        name = (
            type(self).__name__ if self.spec is None else f"{type(self).__name__}<{self.spec.id}>"
        )
        return f"{name}({self._describe_games(num_envs=self.num_envs)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def observations(self) -> Observations:
        """Read-only view of the current observations, which `restore` and `copy` change too."""
        observations: Observations = map_tree(read_only, self._current_observations(self.batch))
        return observations

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Scenarios of the games; game i plays `scenarios[scenario_ids[i]]`."""
        return self.batch.scenarios

    @property
    def scenario_ids(self) -> ScenarioIds:
        """Index of each game's scenario, (games,); read-only, always current."""
        return read_only(self.batch.scenario_ids)

    def describe(self, game: int) -> str:
        """The moves of a game's last step, such as `blue: Restore User1, success; red: Sleep`."""
        return describe_last_moves(self.batch, game)

    def true_state_dict(self, game: int) -> dict[str, Any]:
        """The true state of one game in the form of CybORG's `get_agent_state('True')`."""
        return true_state_dict(self.batch, game)

    def action_masks(
        self, *, monitor: bool = True, defender: bool = True, user0: bool = True
    ) -> Bools:
        """Actions that can have an effect, (games, actions): see `sim.action_masks`."""
        return game_masks(self.batch, monitor=monitor, defender=defender, user0=user0)

    def save(self, ids: ArrayLike) -> list[bytes]:
        """Snapshots of these games, including their random streams."""
        return self.batch.save(as_int64s("ids", ids))

    def restore(self, ids: ArrayLike, blobs: Sequence[bytes]) -> None:
        """Replace these games by snapshots.

        Raises:
            ValueError: a snapshot is damaged, has another version or needs a longer horizon;
                nothing was changed.
        """
        games = as_int64s("ids", ids)
        batch = self._acquire_batch()
        try:
            self._swap_observations(batch)
            batch.restore(games, blobs)
            self._seeded[games] = True
            if self._hooks is not None:
                self._hooks.restore(games)
        finally:
            self._call_lock.release()

    def copy(self, sources: ArrayLike, targets: ArrayLike) -> None:
        """Replace games by copies of others.

        A copy draws the same random numbers as its source until it is reseeded.
        """
        self.restore(as_int64s("targets", targets), self.save(as_int64s("sources", sources)))

    def reseed(self, ids: ArrayLike, seeds: Iterable[int]) -> None:
        """Continue games with new random streams."""
        self.batch.reseed(as_int64s("ids", ids), as_seeds(seeds))

    def _clear_pending(self) -> None:
        self._sent.clear()
        self._pending[:] = False

    def _set_spaces(self, batch: Batch) -> None:
        flat = observation_space(batch.config.observation_dtype, batch.layout)
        self.single_observation_space = (
            flat if self._observer is None else cast("Any", self._observer.space)
        )
        self.single_action_space = action_space(batch.layout)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _acquire_batch(self) -> Batch:
        """The batch, for one thread at a time; the caller must release `_call_lock`."""
        batch = self.batch
        acquire_call_lock(self._call_lock)
        return batch

    def _observe(self, batch: Batch) -> Observations:
        """Observations for the caller."""
        observations: Observations = self._current_observations(batch)
        if self._copies and self._observer is not None:  # flat ones are in a double buffer
            observations = copy_tree(observations)
        return observations

    def _current_observations(self, batch: Batch) -> Any:
        return batch.observations if self._observer is None else self._observer.observe(batch)

    def _swap_observations(self, batch: Batch) -> None:
        """Switch to the spare array, so that the caller's observations are not overwritten."""
        if self._double_buffer is not None:
            self._double_buffer.swap(batch)

    def _start_episodes(self, batch: Batch, mask: Bools, seeds: dict[int, int]) -> None:
        """Start new episodes where the mask is true, with new random streams where seeds are."""
        for game in np.flatnonzero(mask & ~self._seeded).tolist():
            if game not in seeds:
                seeds[game] = draw_seed(self.np_random)
        reseeded = [game for game in seeds if mask[game]]
        batch.reset(as_seeds([seeds[game] for game in reseeded]), np.array(reseeded, np.int64))
        self._seeded[reseeded] = True
        continued = mask.copy()
        continued[reseeded] = False
        batch.reset(ids=np.flatnonzero(continued))
        if self._statistics is not None:
            self._statistics.start(mask)
        if self._hooks is not None:
            self._hooks.start(mask)

    def _step_batch(self, batch: Batch, actions: Any, red_actions: Any) -> int:
        if self._double_buffer is None:
            return batch.step(actions, red_actions)
        return self._double_buffer.step(batch, actions, red_actions)

    def _episode_infos(self, batch: Batch, ended: Bools) -> Infos:
        infos = episode_infos(batch, self._hooks, ended)
        if batch.config.autoreset == "same_step":
            infos = {
                "final_obs": _final_observations(batch, ended, self._observer),
                "_final_obs": ended.copy(),
                "final_info": infos,
                "_final_info": ended.copy(),
            }
        if self._statistics is not None:
            hook = None if self._hooks is None else self._hooks.reward_hook
            returns = batch.episode_returns if hook is None else hook.episode_returns
            infos |= self._statistics.infos(batch, ended, returns)
        return infos


class DoubleBuffer:
    """Two observation arrays that a batch writes alternately, so that the caller needs no copy.

    An array that the caller still references is left to the caller and replaced by a new one.
    """

    def __init__(self, batch: Batch) -> None:
        """Allocate the second array; the batch owns the first."""
        self._spare = np.empty_like(batch.observations)
        self._unshared_refcount = getrefcount(self._spare)

    def step(self, batch: Batch, actions: Int64s, red_actions: Int64s | None) -> int:
        """Step the batch into the spare array; returns the number of episodes that ended."""
        self._redirect_to_spare(batch)
        try:
            ended = batch.step(actions, red_actions)
        except BaseException:
            batch.core.redirect_observations(batch.observations)
            raise
        batch.observations, self._spare = self._spare, batch.observations
        return ended

    def swap(self, batch: Batch) -> None:
        """Copy the observations to the spare array and continue there.

        Rows can then be overwritten without a change to the array that the caller has.
        """
        self._redirect_to_spare(batch)
        np.copyto(self._spare, batch.observations)
        batch.observations, self._spare = self._spare, batch.observations

    def _redirect_to_spare(self, batch: Batch) -> None:
        if getrefcount(self._spare) > self._unshared_refcount:
            self._spare = np.empty_like(self._spare)
        batch.core.redirect_observations(self._spare)


class EpisodeStatistics:
    """Return, length and seconds of episodes, as Gymnasium's RecordEpisodeStatistics has them."""

    def __init__(self, games: int) -> None:
        """Start the clocks of all games."""
        self._started_s = np.full(games, perf_counter())

    def start(self, games: Bools) -> None:
        """Restart the clocks of these games."""
        self._started_s[games] = perf_counter()

    def infos(self, batch: Batch, ended: Bools, returns: Float64s) -> Infos:
        """Infos of the episodes that ended in a step; restarts the clocks of their games."""
        episode = {
            "r": np.where(ended, returns, 0.0),
            "l": np.where(ended, batch.episode_lengths, np.int64(0)),
            "t": np.where(ended, np.round(perf_counter() - self._started_s, 6), 0.0),
        }
        self.start(ended)
        return {"episode": episode, "_episode": ended.copy()}


def _final_observations(
    batch: Batch, ended: Bools, observer: GraphObserver | None
) -> NDArray[np.object_]:
    observations = np.full(batch.games, None, object)
    games = np.flatnonzero(ended)
    rows = (
        batch.final_observations[games] if observer is None else observer.final_graphs(batch, games)
    )
    observations[ended] = np.fromiter(rows, object, len(rows))
    return observations
