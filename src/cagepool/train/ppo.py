"""The training loop: collect, then learn, again and again."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from cagepool.envs.learning import learning_vec
from cagepool.evaluate.policy import blue_inputs
from cagepool.runs import Arrays
from cagepool.sim import orders
from cagepool.sim.judge import Judge
from cagepool.train.collect import Collector, Finished, Inputs, PlainInputs
from cagepool.train.config import TrainConfig
from cagepool.train.networks import Networks, Player
from cagepool.train.rollout import Rollout, Shape
from cagepool.train.state import State, collector_state, restore_collector
from cagepool.train.update import Learned, Learner


class Collected(NamedTuple):
    """A rollout, and how it came about."""

    rollout: Rollout
    finished: Finished
    seconds: float


class Update(NamedTuple):
    """What happened in one update."""

    number: int
    episodes: int
    steps: int
    finished: Finished
    learned: Learned
    learning_rate: float
    staleness: int  # updates between the policy that collected and the one that learned from it
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
        use_threads(config.threads)  # first: it decides how sums are rounded
        self.config = config
        self.number = 0
        self.episodes = 0  # those that were learned from
        streams = np.random.SeedSequence(config.seed).spawn(5)
        self._choice_rng, shuffle_rng = (np.random.default_rng(s) for s in streams[:2])
        env_seed, net_seed = (int(s.generate_state(1)[0]) for s in streams[2:4])
        games = min(config.n_envs, config.total_episodes)
        self._envs = learning_vec(games, config.env, config.backend, _game(config))
        self._executor = ThreadPoolExecutor(1)
        inputs = _inputs(config, self._envs)
        self.collector = Collector(self._envs, inputs, config.total_episodes, config.reward_scale)
        if config.order is not None and not config.is_native:
            self.collector.judge = _judge(config, games)
        if config.universal:
            self.collector.draw_orders(np.random.default_rng(streams[4]))
        sizes = (inputs.size, inputs.choices, config.hidden, config.activation)
        self.learner = Learner(Networks(*sizes, net_seed), config, shuffle_rng)
        self._played = Networks(*sizes, net_seed) if config.overlap else self.learner.networks
        self._player = Player(self._played, games)
        masked = config.is_cage and config.action_masking
        shape = Shape(config.update_steps, games, inputs.size, inputs.choices, masked)
        self._rollouts = [Rollout(shape) for _ in range(1 + config.overlap)]
        self._ahead: Future[Collected] | None = None
        self._before: tuple[Arrays, State] | None = None  # where the collector stood
        self.collector.start(env_seed, self._rollouts[0])

    def updates(self) -> Iterator[Update]:
        """Train until all episodes have been played; between two updates all is at rest."""
        while not (self.collector.is_over and self._ahead is None):
            start = time.perf_counter()
            overlapped = self._ahead is not None
            collected = self._ahead.result() if self._ahead else self._collect()
            self._ahead = None
            waited = time.perf_counter()
            episodes, steps = self.collector.done, self.collector.played_steps
            if self.config.overlap and not self.collector.is_over:
                self._collect_ahead()
            progress = self.episodes / self.config.total_episodes
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
                collect_seconds=collected.seconds,
                wait_seconds=waited - start,
                update_seconds=time.perf_counter() - waited,
            )

    def collect_only(self) -> None:
        """Collect a rollout and learn nothing from it, for measuring."""
        self._collect()

    def state(self) -> tuple[Arrays, State]:
        """All that `restore` needs to go on from here."""
        is_ahead = self._ahead is not None
        at_rest = self._before if is_ahead else None
        arrays, state = at_rest or collector_state(self.collector, self._choice_rng)
        arrays = {**arrays, **self.learner.arrays()}
        if is_ahead:
            arrays |= {f"player.{name}": w for name, w in self._played.arrays().items()}
        state = {
            **state,
            "update": self.number,
            "ahead": is_ahead,
            "shuffle_rng": self.learner.rng.bit_generator.state,
        }
        return arrays, state

    def restore(self, arrays: Arrays, state: State) -> None:
        """Go on from what `state` gave; a rollout that was under way is collected once more."""
        self.number = state["update"]
        self.episodes = state["episodes"]
        self.learner.rng.bit_generator.state = state["shuffle_rng"]
        self.learner.take(arrays)
        restore_collector(self.collector, self._choice_rng, self._rollouts[0], arrays, state)
        if state["ahead"]:
            self._played.take(
                {n.removeprefix("player."): w for n, w in arrays.items() if n.startswith("player.")}
            )
            self._submit()

    def close(self) -> None:
        """Stop what is under way and close the environments."""
        self._executor.shutdown()
        self._envs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _collect_ahead(self) -> None:
        """Let the policy as it is now play on in the background."""
        self._played.take(self.learner.networks.arrays())
        self._submit()

    def _submit(self) -> None:
        self._before = collector_state(self.collector, self._choice_rng)
        self._ahead = self._executor.submit(self._collect)

    def _collect(self) -> Collected:
        start = time.perf_counter()
        # Two rollouts take turns, if there are two: one is filled while the other is learned from.
        last = self._rollouts[0]
        self._rollouts.reverse()
        rollout = self._rollouts[0]
        rollout.begin(last)
        finished = self.collector.collect(self._player, rollout, self._choice_rng)
        return Collected(rollout, finished, time.perf_counter() - start)


def use_threads(threads: int) -> None:
    """Let PyTorch compute with this many threads."""
    torch.set_num_threads(threads)


def _game(config: TrainConfig) -> dict[str, Any]:
    """Settings of CAGE-2."""
    game = {
        "red": config.red_agent,
        "max_steps": config.max_steps,
        "edition": config.edition,
        "green": config.green,
    }
    if config.order is None and not config.universal:
        return game
    if not config.is_native:
        return game | {"true_state": "every"}
    return game | {
        "order": config.order or orders.ALL_ORDERS[0],
        "alignment": config.alignment_lambda,
        "knowledge": config.knowledge,
        "definition": config.definition,
    }


def _judge(config: TrainConfig, games: int) -> Judge:
    assert config.order is not None
    return Judge(
        games,
        config.order,
        knowledge=config.knowledge,
        definition=config.definition,
        alignment=config.alignment_lambda,
    )


def _inputs(config: TrainConfig, envs: Any) -> Inputs:
    if config.is_cage:
        return blue_inputs(config.as_dict(), envs.num_envs)
    size = int(np.prod(envs.single_observation_space.shape))
    return PlainInputs(size, int(envs.single_action_space.n))
