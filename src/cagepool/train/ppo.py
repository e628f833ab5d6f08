"""The training loop: collect, then learn, again and again."""

import time
from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from cagepool._optional import require
from cagepool._stages import stage
from cagepool.train.checkpointing import State
from cagepool.train.collectors import Crew, LocalCrew
from cagepool.train.config import TrainConfig
from cagepool.train.learner import Learned, Learner, use_threads
from cagepool.train.networks import Networks
from cagepool.train.rollout import Finished
from cagepool.train.rollout_worker import Collected, Streams
from cagepool.types import Arrays


class Update(NamedTuple):
    """What happened in one update."""

    number: int
    episodes: int
    steps: int
    finished: Finished
    learned: Learned
    learning_rate: float
    staleness: int  # updates between the policy that collected and the one that learned from it
    replaced: int  # actors that died while they collected, and were replaced
    collect_seconds: float
    wait_seconds: float  # the part of it that was not hidden behind learning
    update_seconds: float


class Trainer:
    """A training run; iterate over `updates`.

    With `overlap`, the next rollout is collected while this one is learned from, by the policy of
    before: always exactly one update stale, so that no number depends on timing.
    """

    def __init__(self, config: TrainConfig) -> None:
        """Make environments and networks; use it in a `with`, or close it."""
        use_threads(1)  # first: it decides how sums are rounded
        self.config = config
        self.number = 0
        self.episodes = 0  # those that were learned from
        self.crew = _crew(config)
        luck = Streams.of(config.run.seed)
        networks = Networks(
            self.crew.shape.inputs,
            self.crew.shape.choices,
            config.ppo.hidden,
            config.ppo.activation,
            int(luck.weights.generate_state(1)[0]),
        )
        self.learner = Learner(networks, config.ppo, np.random.default_rng(luck.shuffles))

    def updates(self) -> Iterator[Update]:
        """Train until all episodes have been played; between two updates all is at rest."""
        crew = self.crew
        while crew.is_ahead or not crew.is_over:
            start = time.perf_counter()
            overlapped = crew.is_ahead
            collected = self._collected()
            waited = time.perf_counter()
            episodes, steps = crew.episodes, crew.steps
            if self.config.ppo.overlap and not crew.is_over:
                crew.begin(self.learner.networks)
            progress = self.episodes / self.config.run.total_episodes
            with stage("update"):
                learned = self.learner.update(collected.rollout, progress)
            self.number += 1
            self.episodes = episodes
            yield Update(
                number=self.number,
                episodes=episodes,
                steps=steps,
                finished=collected.finished,
                learned=learned,
                learning_rate=self.learner.learning_rate,
                staleness=int(overlapped),
                replaced=collected.replaced,
                collect_seconds=collected.seconds,
                wait_seconds=waited - start,
                update_seconds=time.perf_counter() - waited,
            )

    def collect_only(self) -> None:
        """Collect a rollout and learn nothing from it, for measuring."""
        self._collected()

    def state(self) -> tuple[Arrays, State]:
        """All that `restore` needs to go on from here."""
        arrays, state = self.crew.state()
        state = {
            **state,
            "update": self.number,
            "shuffle_rng": self.learner.rng.bit_generator.state,
        }
        return {**arrays, **self.learner.arrays()}, state

    def restore(self, arrays: Arrays, state: State) -> None:
        """Go on from what `state` gave; a rollout that was under way is collected once more."""
        self.number = state["update"]
        self.episodes = state["episodes"]
        self.learner.rng.bit_generator.state = state["shuffle_rng"]
        self.learner.take(arrays)
        self.crew.restore(arrays, state)

    def close(self) -> None:
        """Stop what is under way and close the environments."""
        self.crew.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _collected(self) -> Collected:
        if not self.crew.is_ahead:
            self.crew.begin(self.learner.networks)
        return self.crew.take()


def _crew(config: TrainConfig) -> Crew:
    if config.env.backend != "ray":
        return LocalCrew(config)
    with require("backend ray", "ray", "ray"):
        from cagepool.train.ray import RayCrew  # noqa: PLC0415 - takes seconds to load

        return RayCrew(config)
