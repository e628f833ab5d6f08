"""Many native games as one Gymnasium vector environment."""

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Self, Unpack

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cagepool.cyborg.dict_state import true_state_dict
from cagepool.envs import endings, seeding, spaces
from cagepool.envs.arrays import integers, read_only
from cagepool.envs.async_api import Ready, check_min_ready, check_none_is_out, checked_ids
from cagepool.envs.holder import BatchHolder
from cagepool.envs.pages import Pages
from cagepool.envs.settings import (
    METADATA,
    Autoreset,
    RenderMode,
    VectorSettings,
    check_render_mode,
    reset_mask,
    vector_config,
)
from cagepool.envs.space_tree import rows
from cagepool.sim.action_masks import action_masks
from cagepool.sim.batch import Batch
from cagepool.sim.true_state import TrueState
from cagepool.types import Bools, Float64s, Infos, Int32s, Int64s, Observations


class NativeVectorEnv(BatchHolder, VectorEnv[Observations, ArrayLike, NDArray[np.generic]]):
    """N games of CAGE-2 stepped together in this process.

    Beside Gymnasium's interface it shows the true state and the compliance with a workflow order,
    and saves, restores and copies games. `cagepool.make_vec` is the usual way to make one.
    """

    true_state: TrueState  # read-only views, always current
    counters: Int32s  # (games, 5), see sim.COUNTERS; read-only, always current
    alignment: Float64s  # (games,), alignment reward of the last step; read-only, always current

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset: Autoreset | AutoresetMode = "next_step",
        copy: bool = True,
        statistics: bool = False,
        render_mode: RenderMode | None = None,
        **settings: Unpack[VectorSettings],
    ) -> None:
        """Make the games, as `cagepool.make_vec` says; they must be reset before the first step."""
        check_render_mode(render_mode)
        config = vector_config(autoreset, settings)
        batch = Batch(num_envs, config)
        self._held = batch
        self._pages = Pages(batch) if copy else None
        self._statistics = endings.Statistics(num_envs) if statistics else None
        self._running = Lock()
        self._seeded = np.zeros(num_envs, np.bool_)
        self._sent: list[Int64s] = []  # games that were sent and not yet received, in this order
        self._out = np.zeros(num_envs, np.bool_)  # the same by game
        self._terminations = read_only(np.zeros(num_envs, np.bool_))
        self.true_state = TrueState(batch)
        self.counters = read_only(batch.counters)
        self.alignment = read_only(batch.alignment)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode[config.autoreset.upper()]
        self.metadata = {**METADATA, "autoreset_mode": self.autoreset_mode}
        self._set_spaces(config.observation_dtype)

    def reset(
        self, *, seed: seeding.Seed = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observations, Infos]:
        """Start new episodes: the first of new random streams, or the next of the old ones.

        Args:
            seed: Game i gets `seed + i`, or entry i of a list; without one it goes on in its
                stream, which begins at random.
            options: `reset_mask`, an array of Booleans: only these games are reset.
        """
        given = seeding.by_game(seed, self.num_envs)
        mask = reset_mask((options or {}).get("reset_mask"), self.num_envs)
        batch = self._enter()
        try:
            if isinstance(seed, int):
                super().reset(seed=seed)
            self._turn(batch)
            self._begin(batch, mask, given)
            self._forget()
            return batch.observations, {}
        finally:
            self._running.release()

    def step(
        self, actions: ArrayLike, red_actions: ArrayLike | None = None
    ) -> tuple[Observations, Float64s, Bools, Bools, Infos]:
        """Play one action of blue's in every game, and one of red's if red is `given`.

        Raises:
            IndexError: an action is out of range; nothing was played.
        """
        batch = self._enter()
        try:
            if self._sent:
                check_none_is_out(self._out)
            try:
                ended = self._play(batch, actions, red_actions)
            except TypeError:  # not yet int64 in one piece
                blue = integers("actions", actions)
                red = None if red_actions is None else integers("red_actions", red_actions)
                ended = self._play(batch, blue, red)
            infos = self._infos(batch, batch.truncations) if ended else {}
            rewards, truncations = batch.rewards, batch.truncations
            terminations = self._terminations
            if self._pages is not None:
                rewards, truncations = rewards.copy(), truncations.copy()
                terminations = terminations.copy()
            return batch.observations, rewards, terminations, truncations, infos
        finally:
            self._running.release()

    def send(self, actions: ArrayLike, ids: ArrayLike | None = None) -> None:
        """Play one action of blue's in some games, in all by default; see `recv`.

        Raises:
            IndexError: an action or a game is out of range; nothing was played.
            ValueError: a game was sent before and has not been received; nothing was played.
        """
        games = checked_ids(ids, self._out)
        blue = integers("actions", actions)
        batch = self._enter()
        try:
            self._turn(batch)
            batch.step(blue, None, games)
            self._out[games] = True
            self._sent.append(games)
        finally:
            self._running.release()

    def recv(self, min_ready: int = 1) -> Ready:
        """Results of the games that were sent, all of which are ready at once.

        Args:
            min_ready: How many must have been sent.
        """
        check_min_ready(min_ready, int(np.count_nonzero(self._out)))
        batch = self._enter()
        try:
            ids = np.concatenate(self._sent)
            ended = batch.truncations & self._out
            infos = rows(self._infos(batch, ended), ids) if ended.any() else {}
            self._forget()
            return Ready(
                ids,
                batch.observations.take(ids, 0),
                batch.rewards.take(ids),
                self._terminations.take(ids),
                batch.truncations.take(ids),
                infos,
            )
        finally:
            self._running.release()

    async def arecv(self, min_ready: int = 1) -> Ready:
        """As `recv`, for use in asyncio."""
        return self.recv(min_ready)

    def render(self) -> tuple[str, ...]:
        """A picture of every game.

        Raises:
            RuntimeError: no render mode was asked for.
        """
        return self._pictures()

    def close_extras(self, **kwargs: object) -> None:  # noqa: ARG002 - Gymnasium's signature
        """Let go of the games and their threads."""
        self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def observations(self) -> Observations:
        """The observations as they now stand, read-only; wanted after `restore` and `copy`."""
        return read_only(self.batch.observations)

    def true_state_dict(self, game: int) -> dict[str, Any]:
        """The true state of a game in CybORG's form."""
        return true_state_dict(self.batch, game)

    def action_masks(
        self, *, monitor: bool = True, defender: bool = True, user0: bool = True
    ) -> Bools:
        """Actions that make sense, (games, 145): see `sim.action_masks`."""
        decoys = self.batch.true_state["decoys"]
        return action_masks(decoys, monitor=monitor, defender=defender, user0=user0)

    def save(self, ids: ArrayLike) -> list[bytes]:
        """These games as bytes: all that is needed to go on from here, random stream included."""
        return self.batch.save(integers("ids", ids))

    def restore(self, ids: ArrayLike, blobs: Sequence[bytes]) -> None:
        """Put saved games in the place of these.

        Raises:
            ValueError: a snapshot is damaged, foreign or does not fit; nothing was changed.
        """
        games = integers("ids", ids)
        batch = self._enter()
        try:
            self._turn(batch)
            batch.restore(games, blobs)
            self._seeded[games] = True
        finally:
            self._running.release()

    def copy(self, sources: ArrayLike, targets: ArrayLike) -> None:
        """Put copies of games in the place of others; `reseed` them if their luck should differ."""
        self.restore(integers("targets", targets), self.save(integers("sources", sources)))

    def reseed(self, ids: ArrayLike, seeds: Iterable[int]) -> None:
        """Let games draw from new random streams from here on."""
        self.batch.reseed(integers("ids", ids), seeding.as_array(seeds))

    def _forget(self) -> None:
        """Let what was sent be received or dropped."""
        self._sent.clear()
        self._out[:] = False

    def _set_spaces(self, dtype: DTypeLike) -> None:
        self.single_observation_space = spaces.observation_space(dtype)
        self.single_action_space = spaces.action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _enter(self) -> Batch:
        """The batch, for one caller at a time, who must release `_running`."""
        batch = self.batch
        if not self._running.acquire(blocking=False):
            raise RuntimeError(
                "an environment must be used by one thread at a time; another call is under way"
            )
        return batch

    def _turn(self, batch: Batch) -> None:
        """Leave to the caller the observations that it has."""
        if self._pages is not None:
            self._pages.turn(batch)

    def _begin(self, batch: Batch, mask: Bools, given: dict[int, int]) -> None:
        """Start new episodes where the mask is true, with the seeds that are given."""
        for game in np.flatnonzero(mask & ~self._seeded).tolist():
            if game not in given:
                given[game] = seeding.fresh(self.np_random)
        new = [game for game in given if mask[game]]
        batch.reset(seeding.as_array([given[game] for game in new]), np.array(new, np.int64))
        self._seeded[new] = True
        going_on = mask.copy()
        going_on[new] = False
        batch.reset(ids=np.flatnonzero(going_on))
        if self._statistics is not None:
            self._statistics.begin(mask)

    def _play(self, batch: Batch, actions: Any, red_actions: Any) -> int:
        if self._pages is None:
            return batch.step(actions, red_actions)
        return self._pages.step(batch, actions, red_actions)

    def _infos(self, batch: Batch, ended: Bools) -> Infos:
        """The infos of a step that ended these episodes."""
        infos = endings.infos_of(batch, ended)
        if self._statistics is not None:
            infos |= self._statistics.infos_of(batch, ended)
        return infos
