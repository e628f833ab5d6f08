"""Actors of a cluster that collect for a trainer."""

from contextlib import ExitStack
from typing import Any, TypeAlias

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from cagepool.train.checkpointing import State
from cagepool.train.collectors import as_played, played_of
from cagepool.train.config import TrainConfig
from cagepool.train.learner import use_threads
from cagepool.train.networks import Networks
from cagepool.train.ray.connection import connected
from cagepool.train.rollout import Finished
from cagepool.train.rollout_buffer import Final, Rollout, Shape
from cagepool.train.rollout_worker import Collected, Share, Station, shares
from cagepool.types import Arrays

START_SECONDS = 180.0  # within which a node must take an actor
TRIES = 10  # actors that may die over one rollout
LITTLE = 0.01  # of a processor is reserved: what is left of a cluster must have room for all actors

Kept: TypeAlias = tuple[Arrays, State]


class _Actor:
    """A station in a process of the cluster."""

    def __init__(self, config: TrainConfig, share: Share) -> None:
        self._config = config
        self._share = share

    def open(self) -> tuple[Shape, Kept]:
        use_threads(1)  # as without a cluster: sums are rounded alike
        self._station = Station(self._config, self._share)
        return self._station.shape, self._station.state()

    def restore(self, kept: Kept) -> None:
        self._station.restore(*kept)

    def collect(self, weights: Arrays) -> tuple[Collected, Kept]:
        self._station.networks.take(weights)
        return self._station.collect(), self._station.state()


class _Place:
    """A share of the games, and the actor that plays it at present."""

    def __init__(self, config: TrainConfig, share: Share) -> None:
        self.share = share
        self._config = config
        self._actor: Any = None  # what Ray gives has no types
        self._weights: Any = None
        self._ahead: Any = None
        self._start()

    def opened(self) -> Shape:
        """Wait until the actor is ready; returns the shape of its rollouts.

        Raises:
            ValueError: it can't be started, or not made.
        """
        try:
            shape, self.kept = _got(self._opened, START_SECONDS)
        except (RayError, ConnectionError) as error:
            why = str(error).splitlines()[-1]
            raise ValueError(
                f"the nodes of the cluster must have room and this cagepool: {why}"
            ) from error
        return shape  # type: ignore[no-any-return]

    @property
    def is_over(self) -> bool:
        return bool(self.kept[1]["episodes"] == self.share.episodes)

    def begin(self, weights: Any) -> None:
        self._weights = weights
        # Two results: to keep the state must not keep the whole rollout in the object store.
        self._ahead = self._actor.collect.options(num_returns=2).remote(weights)

    def take(self) -> Collected:
        """The part that was begun; one that was lost is collected anew, from where it began."""
        replaced = 0
        for _ in range(TRIES):
            try:
                if self._ahead is None:
                    self._replace()
                collected, self.kept = _got(self._ahead)
                return collected._replace(replaced=replaced)  # type: ignore[no-any-return]
            except RayError as error:
                lost = error
                replaced += self._ahead is not None  # not one that never came to work
                self._ahead = None
        raise ConnectionError(f"{TRIES} actors have died one after the other: {lost}") from lost

    def restore(self, kept: Kept) -> None:
        _got(self._actor.restore.remote(kept))
        self.kept = kept

    def close(self) -> None:
        ray.kill(self._actor)

    def _start(self) -> None:
        options = ray.remote(_Actor).options(num_cpus=LITTLE, scheduling_strategy="SPREAD")
        self._actor = options.remote(self._config, self.share)
        self._opened = self._actor.open.remote()

    def _replace(self) -> None:
        self.close()
        self._start()
        _got(self._opened, START_SECONDS)
        self.restore(self.kept)
        self.begin(self._weights)


class RayCrew:
    """Collects in actors, each of which plays its share of the games and of the episodes.

    No number depends on timing: which games an actor plays, with which luck, how many episodes
    and with which policy is settled beforehand.
    """

    def __init__(self, config: TrainConfig) -> None:
        """Start the actors, in the cluster that is connected or in one of their own."""
        parts = shares(config, config.env.ray_actors)
        self._stack = ExitStack()
        with ExitStack() as started:
            started.enter_context(connected(None, config.env.ray_actors))
            self._places = [_Place(config, share) for share in parts]
            started.callback(self._dismiss)
            shapes = [place.opened() for place in self._places]
            self._stack = started.pop_all()
        games = sum(shape.games for shape in shapes)
        one = shapes[0]
        self.shape = Shape(one.steps, games, one.inputs, one.choices, one.masked)
        self._rollout = Rollout(self.shape)
        self._weights: Any = None  # with which a rollout is being collected

    @property
    def episodes(self) -> int:
        """Those that are over."""
        return self._sum("episodes")

    @property
    def steps(self) -> int:
        """Their steps."""
        return self._sum("steps")

    @property
    def is_over(self) -> bool:
        """Whether all episodes have been played."""
        return all(place.is_over for place in self._places)

    @property
    def is_ahead(self) -> bool:
        """Whether a rollout is under way."""
        return self._weights is not None

    def begin(self, networks: Networks) -> None:
        """Send the policy to all actors, and let them play."""
        self._begin(networks.arrays())

    def take(self) -> Collected:
        """Wait for all actors."""
        rollout, first = self._rollout, 0
        parts = [None if place.is_over else place.take() for place in self._places]
        self._weights = None
        rollout.steps = max(part.rollout.steps for part in parts if part is not None)
        rollout.finals.clear()
        for place, part in zip(self._places, parts, strict=True):
            _put(rollout, first, place.share.games, part)
            first += place.share.games
        return _joined(rollout, [part for part in parts if part is not None])

    def state(self) -> Kept:
        """Where all actors stood when they last began a rollout, or stand."""
        arrays = {
            f"actor{number}.{name}": array
            for number, place in enumerate(self._places)
            for name, array in place.kept[0].items()
        }
        if self.is_ahead:
            arrays |= as_played(ray.get(self._weights))
        state = {
            "episodes": self.episodes,
            "steps": self.steps,
            "actors": [place.kept[1] for place in self._places],
            "ahead": self.is_ahead,
        }
        return arrays, state

    def restore(self, arrays: Arrays, state: State) -> None:
        """Go on from there."""
        for number, (place, of_actor) in enumerate(zip(self._places, state["actors"], strict=True)):
            prefix = f"actor{number}."
            own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            place.restore((own, of_actor))
        if state["ahead"]:
            self._begin(played_of(arrays))

    def close(self) -> None:
        """Stop the actors, and the cluster if it is their own."""
        self._stack.close()

    def _begin(self, weights: Arrays) -> None:
        self._weights = ray.put(weights)
        for place in self._places:
            if not place.is_over:
                place.begin(self._weights)

    def _dismiss(self) -> None:
        for place in self._places:
            place.close()

    def _sum(self, name: str) -> int:
        return sum(place.kept[1][name] for place in self._places)


def _got(reference: Any, limit: float | None = None) -> Any:
    """What an actor gives; an error that it raised is raised here as it was there.

    Raises:
        RayError: the actor, or what it gave, is lost.
        ConnectionError: no node took the actor in time.
    """
    try:
        return ray.get(reference, timeout=limit)
    except RayTaskError as error:
        raise error.cause from error
    except GetTimeoutError as error:
        raise ConnectionError(f"no node of the cluster took an actor in {limit:g} s") from error


def _put(rollout: Rollout, first: int, games: int, part: Collected | None) -> None:
    """Write what an actor collected into the columns of its games; the rest does not count."""
    columns = slice(first, first + games)
    played = 0 if part is None else part.rollout.steps
    rollout.rewards[played:, columns] = 0
    rollout.ends[played:, columns] = True
    rollout.counted[played:, columns] = False
    if part is None:
        return
    for name in ("choices", "log_probabilities", "rewards", "ends", "counted"):
        getattr(rollout, name)[:played, columns] = getattr(part.rollout, name)[:played]
    rollout.inputs[: played + 1, columns] = part.rollout.inputs[: played + 1]
    if rollout.masks is not None and part.rollout.masks is not None:
        rollout.masks[: played + 1, columns] = part.rollout.masks[: played + 1]
    rollout.finals += [
        Final(final.step, final.games + first, final.inputs.copy()) for final in part.rollout.finals
    ]


def _joined(rollout: Rollout, parts: list[Collected]) -> Collected:
    finished = Finished(
        returns=[one for part in parts for one in part.finished.returns],
        lengths=[one for part in parts for one in part.finished.lengths],
        counters=np.concatenate([part.finished.counters for part in parts]),
    )
    seconds = max(part.seconds for part in parts)  # of the slowest
    return Collected(rollout, finished, seconds, sum(part.replaced for part in parts))
