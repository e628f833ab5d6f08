"""Games, and a policy that plays them: all that is needed to collect a part of a run."""

import time
from typing import Any, NamedTuple

import numpy as np

from cagepool._stages import stage
from cagepool.envs.make import make_training_vec
from cagepool.evaluate.policy import PolicySettings, feature_encoder
from cagepool.sim import orders
from cagepool.sim.compliance import ComplianceTracker
from cagepool.train.checkpointing import State, collector_state, restore_collector
from cagepool.train.config import TrainConfig
from cagepool.train.networks import Networks
from cagepool.train.passes import Forward
from cagepool.train.rollout import Collector, Finished, Inputs, PlainInputs
from cagepool.train.rollout_buffer import Rollout, Shape
from cagepool.types import Arrays


class Collected(NamedTuple):
    """A rollout, and how it came about."""

    rollout: Rollout
    finished: Finished
    seconds: float
    replaced: int = 0  # actors that died meanwhile and were replaced


class Streams(NamedTuple):
    """Where all luck of a run comes from."""

    choices: np.random.SeedSequence
    shuffles: np.random.SeedSequence
    games: np.random.SeedSequence
    weights: np.random.SeedSequence
    orders: np.random.SeedSequence

    @classmethod
    def of(cls, seed: int) -> "Streams":
        """The streams of a run with this seed."""
        return cls(*np.random.SeedSequence(seed).spawn(len(cls._fields)))


class Share(NamedTuple):
    """A part of a run's games, with luck of its own."""

    games: int
    episodes: int
    seed: int  # of its first game; those of the others follow
    choices: np.random.SeedSequence
    orders: np.random.SeedSequence


def shares(config: TrainConfig, parts: int) -> list[Share]:
    """The games and episodes of a run in parts, as even as can be; one part is all of it."""
    total = config.run.total_episodes
    games = min(config.env.n_envs, total)
    if not 1 <= parts <= games:
        raise ValueError(f"there must be a game for every actor, got {parts} for {games} games")
    luck = Streams.of(config.run.seed)
    seed = int(luck.games.generate_state(1)[0])
    choices, drawn = (
        [stream] if parts == 1 else stream.spawn(parts) for stream in (luck.choices, luck.orders)
    )
    bounds = [games * part // parts for part in range(parts + 1)]
    return [
        Share(end - first, total * end // games - total * first // games, seed + first, *streams)
        for first, end, *streams in zip(bounds, bounds[1:], choices, drawn, strict=False)
    ]


class Station:
    """Plays a share of a run's games with a policy that it is given from time to time."""

    def __init__(self, config: TrainConfig, share: Share, rollouts: int = 1) -> None:
        """Make the environments; so many rollouts take turns."""
        games = share.games
        self._rng = np.random.default_rng(share.choices)
        self._envs = make_training_vec(
            games, config.env.id, config.env.vector_backend, _game(config)
        )
        inputs = _inputs(config, self._envs)
        self.collector = Collector(self._envs, inputs, share.episodes, config.ppo.reward_scale)
        if config.order.order is not None and not config.env.is_native:
            self.collector.tracker = _compliance_tracker(config, games)
        if config.order.universal:
            self.collector.draw_orders(np.random.default_rng(share.orders))
        masked = config.env.is_cage and config.features.action_masking
        self.shape = Shape(config.ppo.update_steps, games, inputs.size, inputs.n_choices, masked)
        self.networks = Networks(
            inputs.size, inputs.n_choices, config.ppo.hidden, config.ppo.activation, 0
        )
        self._actor = Forward(self.networks.actor)
        self.rollouts = [Rollout(self.shape) for _ in range(rollouts)]
        self.collector.start(share.seed, self.rollouts[0])

    def collect(self) -> Collected:
        """Play until the next rollout is full or all episodes are over."""
        start = time.perf_counter()
        last = self.rollouts[0]
        self.rollouts.reverse()
        rollout = self.rollouts[0]
        with stage("rollout"):
            rollout.begin(last)
            finished = self.collector.collect(self._actor, rollout, self._rng)
        return Collected(rollout, finished, time.perf_counter() - start)

    def state(self) -> tuple[Arrays, State]:
        """Where the games stand."""
        return collector_state(self.collector, self._rng)

    def restore(self, arrays: Arrays, state: State) -> None:
        """Go on from what `state` gave."""
        restore_collector(self.collector, self._rng, self.rollouts[0], arrays, state)

    def close(self) -> None:
        """Close the environments."""
        self._envs.close()


def _game(config: TrainConfig) -> dict[str, Any]:
    """Settings of CAGE-2."""
    game = {
        "red": config.env.red_agent,
        "max_steps": config.env.max_steps,
        "edition": config.env.edition,
        "green": config.env.green,
    }
    if config.order.order is None and not config.order.universal:
        return game
    if not config.env.is_native:
        return game | {"true_state": "every"}
    return game | {
        "order": config.order.order or orders.ALL_ORDERS[0],
        "alignment": config.order.alignment_lambda,
        "knowledge": config.order.knowledge,
        "definition": config.order.definition,
    }


def _compliance_tracker(config: TrainConfig, games: int) -> ComplianceTracker:
    assert config.order.order is not None
    return ComplianceTracker(
        games,
        config.order.order,
        knowledge=config.order.knowledge,
        definition=config.order.definition,
        alignment=config.order.alignment_lambda,
    )


def _inputs(config: TrainConfig, envs: Any) -> Inputs:
    if config.env.is_cage:
        return feature_encoder(PolicySettings.from_dict(config.as_dict()), envs.num_envs)
    size = int(np.prod(envs.single_observation_space.shape))
    return PlainInputs(size, int(envs.single_action_space.n))
