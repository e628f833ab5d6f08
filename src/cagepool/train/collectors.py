"""Who collects for a trainer."""

from concurrent.futures import Future
from typing import Protocol

from cagepool._stages import stage
from cagepool.train.checkpointing import State
from cagepool.train.config import TrainConfig
from cagepool.train.learner import other_threads
from cagepool.train.networks import Networks
from cagepool.train.rollout_buffer import Shape
from cagepool.train.rollout_worker import Collected, Station, shares
from cagepool.types import Arrays

PLAYER = "player."  # before the names of the weights with which a rollout is being collected


class Crew(Protocol):
    """Collects rollouts, each with the policy that there was when it was begun."""

    shape: Shape

    @property
    def episodes(self) -> int:
        """Those that are over; asked while nothing is under way."""

    @property
    def steps(self) -> int:
        """Their steps."""

    @property
    def is_over(self) -> bool:
        """Whether all episodes have been played."""

    @property
    def is_ahead(self) -> bool:
        """Whether a rollout is under way."""

    def begin(self, networks: Networks, /) -> None:
        """Begin a rollout with the policy as it is now."""

    def take(self) -> Collected:
        """The rollout that was begun; it is good until the next one but one is begun."""

    def state(self) -> tuple[Arrays, State]:
        """All that `restore` needs, a rollout that is under way included."""

    def restore(self, arrays: Arrays, state: State, /) -> None:
        """Go on from what `state` gave; a rollout that was under way is collected once more."""

    def close(self) -> None:
        """Stop what is under way."""


class LocalCrew:
    """Collects in this process, ahead in a thread of its own."""

    def __init__(self, config: TrainConfig) -> None:
        """Make the environments."""
        (everything,) = shares(config, 1)
        # One rollout is filled while another one is learned from.
        self.station = Station(config, everything, rollouts=1 + config.ppo.overlap)
        self.shape = self.station.shape
        self._executor = other_threads(1) if config.ppo.overlap else None
        self._ahead: Future[Collected] | None = None
        self._before: tuple[Arrays, State] = ({}, {})  # where the games stood when it was begun

    @property
    def episodes(self) -> int:
        """Those that are over."""
        return self.station.collector.done

    @property
    def steps(self) -> int:
        """Their steps."""
        return self.station.collector.played_steps

    @property
    def is_over(self) -> bool:
        """Whether all episodes have been played."""
        return self.station.collector.is_over

    @property
    def is_ahead(self) -> bool:
        """Whether a rollout is under way."""
        return self._ahead is not None

    def begin(self, networks: Networks) -> None:
        """Let a copy of the policy play in the background, or as soon as the rollout is taken."""
        self._begin(networks.arrays())

    def take(self) -> Collected:
        """Wait for the rollout, or collect it."""
        if self._ahead is None:
            return self.station.collect()
        with stage("thread_wait"):
            collected = self._ahead.result()
        self._ahead = None
        return collected

    def state(self) -> tuple[Arrays, State]:
        """Where the games stand, or stood when the rollout was begun that is under way."""
        if not self.is_ahead:
            arrays, state = self.station.state()
            return arrays, {**state, "ahead": False}
        arrays, state = self._before
        return arrays | as_played(self.station.networks.arrays()), {**state, "ahead": True}

    def restore(self, arrays: Arrays, state: State) -> None:
        """Go on from there."""
        self.station.restore(arrays, state)
        if state["ahead"]:
            self._begin(played_of(arrays))

    def close(self) -> None:
        """Wait for what is under way and close the environments."""
        if self._executor is not None:
            self._executor.shutdown()
        self.station.close()

    def _begin(self, weights: Arrays) -> None:
        self.station.networks.take(weights)
        if self._executor is not None:
            self._before = self.station.state()
            self._ahead = self._executor.submit(self.station.collect)


def as_played(weights: Arrays) -> Arrays:
    """Weights by the names that they have in a checkpoint beside those that are learned."""
    return {f"{PLAYER}{name}": array for name, array in weights.items()}


def played_of(arrays: Arrays) -> Arrays:
    """The weights that were named so."""
    return {n.removeprefix(PLAYER): array for n, array in arrays.items() if n.startswith(PLAYER)}
