"""`Cage2`: CAGE Challenge 2 as a pure JAX environment with gymnax's interface."""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cagepool import _core
from cagepool.jax import bits, draws, rules
from cagepool.jax import scenario as sc
from cagepool.jax.bits import Word, word
from cagepool.jax.draws import RandomDraws
from cagepool.jax.game import (
    GIVEN,
    REDS,
    Fix,
    Game,
    Replaceable,
    State,
    alignment_reward,
    count_fix,
    initial_game,
    order_array,
    pack,
    select_game,
    unpack,
)
from cagepool.jax.rules import Rules
from cagepool.sim.compliance import COUNTERS
from cagepool.sim.names import HOSTS, RED_AGENTS, has_red_weights, red_class_names
from cagepool.sim.settings import SharedSettings


@dataclass(frozen=True)
class Discrete:
    """Integers from 0 to n - 1."""

    n: int
    shape: tuple[int, ...] = ()
    dtype: Any = jnp.int32

    def sample(self, key: Array) -> Array:
        """Sample uniformly."""
        return jax.random.randint(key, self.shape, 0, self.n, self.dtype)

    def contains(self, x: Array) -> Array:
        """Whether a value is in the space."""
        return (x >= 0) & (x < self.n)


@dataclass(frozen=True)
class Box:
    """Arrays with values from `low` to `high`."""

    low: float
    high: float
    shape: tuple[int, ...]
    dtype: Any = jnp.float32

    def sample(self, key: Array) -> Array:
        """Sample uniformly."""
        if jnp.issubdtype(self.dtype, jnp.integer):
            return jax.random.randint(
                key, self.shape, int(self.low), int(self.high) + 1, self.dtype
            )
        return jax.random.uniform(key, self.shape, self.dtype, self.low, self.high)

    def contains(self, x: Array) -> Array:
        """Whether an array is in the space."""
        return jnp.all((x >= self.low) & (x <= self.high))


# gymnax is not needed, but its programs may compare classes.
BoxSpace: type[Any] = Box
DiscreteSpace: type[Any] = Discrete
with suppress(ImportError):
    from gymnax.environments import spaces

    BoxSpace, DiscreteSpace = spaces.Box, spaces.Discrete


Info: TypeAlias = dict[str, Any]
ACTION_COUNT = _core.ACTION_COUNT
RED_ACTION_COUNT = _core.RED_ACTION_COUNT
OBSERVATION_SIZE = 4 * len(HOSTS)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params(Replaceable):
    """Values that may be traced: `jax.vmap` over them plays games that differ."""

    max_steps_in_episode: int | Array = SharedSettings.max_steps
    """Steps after which an episode is truncated, from 1 to 65535."""
    order: Array | None = None
    """Host types, most urgent first, (5,) indices of `HOST_TYPES`; see `order_array`."""
    alignment: float | Array = SharedSettings.alignment
    """Weight of the alignment reward in `info["alignment"]`."""

    def __post_init__(self) -> None:
        """Check what is not traced."""
        steps = self.max_steps_in_episode
        if isinstance(steps, int | np.integer) and not 1 <= steps <= _core.MAX_STEPS:
            raise ValueError(
                f"max_steps_in_episode must be from 1 to {_core.MAX_STEPS}, got {steps}"
            )
        shape = getattr(self.order, "shape", None)
        if shape is not None and shape[-1:] != (_core.TYPE_COUNT,):
            raise ValueError(f"order must have {_core.TYPE_COUNT} host types, got shape {shape}")


@dataclass(frozen=True, kw_only=True)
class Cage2(SharedSettings):
    """CAGE Challenge 2, equal to the core in every draw.

    `jax.random.PRNGKey(s)` plays the games of seed s of the core: `reset` is its first episode, and
    each reset inside of `step` its next one. The keys given to `step` are not used.

    Settings are those of the core's games; with red `given`, an action is a pair: blue's and red's.
    `max_steps`, `order` and `alignment` are the defaults of `Params`.

    An instance is hashable and holds no arrays; all methods are pure and can be transformed.
    """

    observation_dtype: Literal["float32", "uint8"] = "float32"
    """Type of the 52 values."""
    session_capacity: int = 100
    """Longest episode with a given red, whose sessions are logged one by one; a longer one is
    truncated."""

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        for name in ("definition", "scenario", "scenario_per", "layout"):
            if getattr(self, name) != getattr(SharedSettings, name):
                raise ValueError(f"{name} must be the default in JAX, got {getattr(self, name)!r}")
        if has_red_weights(self.red):
            raise ValueError(f"red must have no weights in JAX, got {self.red!r}")
        if self.observation_dtype not in ("float32", "uint8"):
            raise ValueError(
                f"observation_dtype must be float32 or uint8, got {self.observation_dtype!r}"
            )
        names = red_class_names(self.red)
        if not {*names} <= {*REDS}:
            raise ValueError(f"red must be of {', '.join(REDS)} in JAX, got {self.red!r}")
        if "given" in names and len(names) > 1:
            raise ValueError(f"a given red cannot be mixed with others, got {self.red!r}")
        if not 1 <= self.session_capacity < 2**16:
            raise ValueError(
                f"session_capacity must be from 1 to 65535, got {self.session_capacity}"
            )

    @property
    def rules(self) -> Rules:
        """What is fixed when the program is traced."""
        agents = sorted({int(RED_AGENTS[name]) for name in red_class_names(self.red)})
        return Rules(tuple(agents), self.edition == "leaderboard", self.green)

    @property
    def default_params(self) -> Params:
        """Length, order and alignment of the constructor."""
        order = None if self.order is None else order_array(self.order)
        return Params(max_steps_in_episode=self.max_steps, order=order, alignment=self.alignment)

    @property
    def name(self) -> str:
        """Name of the environment."""
        return "CAGE2"

    @property
    def num_actions(self) -> int:
        """Number of blue's actions."""
        return ACTION_COUNT

    @property
    def legacy(self) -> "LegacyCage2":
        """The same environment with the five values that `step` of gymnax below 1.0 returned."""
        return LegacyCage2(**vars(self))

    @partial(jax.jit, static_argnames=("self",))
    def reset(self, key: Array, params: Params | None = None) -> tuple[Array, State]:
        """Start the first episode of a seed."""
        return self.reset_env(key, params or self.default_params)

    @partial(jax.jit, static_argnames=("self",))
    def step(
        self, key: Array, state: State, action: Any, params: Params | None = None
    ) -> tuple[Array, State, Array, Array, Array, Info]:
        """Play one step, and start the next episode if this one is over.

        Returns:
            Observation, state, reward, terminated, truncated, info. At the end of an episode the
            observation is the first one of the next episode; `info["final_observation"]` is the
            last one of this.
        """
        params = params or self.default_params
        del key
        game, reward, info = self._play(state, action, params)
        truncated = bits.materialize(word(game.step == game.horizon)) != 0
        observation = self._observation(game)
        info["final_observation"] = observation
        next_game = self._start(game.stream, game.episode, params)
        game = select_game(truncated, next_game, game)
        observation = jnp.where(truncated, jnp.zeros_like(observation), observation)
        return observation, pack(game), reward, jnp.zeros_like(truncated), truncated, info

    def reset_env(self, key: Array, params: Params) -> tuple[Array, State]:
        """Start the first episode of a seed."""
        data = _key_words(key)
        stream = draws.seed_stream((data[1], data[0]))
        game = self._start(stream, data[0] & np.uint32(0), params)
        return self._observation(game), pack(game)

    def step_env(
        self, key: Array, state: State, action: Any, params: Params
    ) -> tuple[Array, State, Array, Array, Info]:
        """Play one step without a reset.

        Returns:
            Observation, state, reward, terminated (never), info.
        """
        del key
        game, reward, info = self._play(state, action, params)
        return self._observation(game), pack(game), reward, jnp.zeros((), jnp.bool_), info

    def reseed(self, state: State, key: Array) -> State:
        """Replace the future random numbers of a game; planners must not see the real ones."""
        data = _key_words(key)
        stream = draws.seed_stream((data[1], data[0]))
        zero = jnp.zeros((), jnp.uint32)
        counter = draws.first_counter(draws.episode_key(stream, zero))
        return state.replace(stream=stream, episode=zero + np.uint32(1), counter=counter)

    def get_obs(
        self, state: State, params: Params | None = None, key: Array | None = None
    ) -> Array:
        """Last observation of blue."""
        del params, key
        return self._observation(unpack(state))

    def is_truncated(self, state: State, params: Params) -> Array:
        """Whether the episode has reached its time limit."""
        del params
        game = unpack(state)
        return game.step >= game.horizon

    def action_mask(self, state: State) -> Array:
        """Actions that can succeed, (145,): decoys that fit their host and whose port is free."""
        decoys = _host_vector(state.decoys)
        hosts = jnp.arange(len(HOSTS), dtype=jnp.uint32)
        fits = [rules.can_place(decoys, hosts, np.uint32(decoy)) for decoy in range(8)]
        always = jnp.ones(2 + 2 * len(HOSTS), jnp.bool_)
        return jnp.concatenate([always, *fits, always[: len(HOSTS)]])

    def true_state(self, state: State) -> dict[str, Array]:
        """What is really on the hosts, in the fields of `cagepool.sim.dtypes.TRUE_STATE`."""
        game = unpack(state)
        stored = _host_vector(game.decoys)
        decoys = _host_vector(game.repeated_decoys) << 8
        for decoy, bit in enumerate(sc.DECOY_BIT):
            decoys = decoys | (word((stored & np.uint32(bit)) != 0) << decoy)
        privileged = _mask_vector(game.privileged)
        return {
            "decoys": decoys,
            "access": jnp.where(privileged != 0, np.uint32(2), _mask_vector(game.with_red)),
            "privileged": _host_vector(game.privileged_counts),
            "user_seen": _host_vector(game.seen_counts),
            "user_unseen": _host_vector(game.unseen_counts),
            "malware": _mask_vector(game.malware),
            "compromised": _mask_vector(game.table_low) + 2 * _mask_vector(game.table_high),
            "ot_running": _mask_vector((np.uint32(1) - game.outage) << sc.OP_SERVER0),
            "ot_pid_known": _mask_vector(game.ot_pid_known << sc.OP_SERVER0),
            "mail_immune": _mask_vector(game.mail_immune << sc.USER3),
            "ot_service_known": game.ot_service_known,
            "red": game.red,
            "edition": game.leaderboard,
            "scenario": jnp.zeros_like(game.red),
        }

    def action_space(self, params: Params | None = None) -> Any:
        """Blue's actions."""
        del params
        return DiscreteSpace(ACTION_COUNT)

    def red_action_space(self, params: Params | None = None) -> Any:
        """Actions of a given red."""
        del params
        return DiscreteSpace(RED_ACTION_COUNT)

    def observation_space(self, params: Params | None = None) -> Any:
        """52 values of 0 and 1."""
        del params
        return BoxSpace(0, 1, (OBSERVATION_SIZE,), jnp.dtype(self.observation_dtype))

    def _start(self, stream: Any, episode: Word, params: Params) -> Game:
        """Start an episode."""
        agents = self.rules.reds
        most = self.session_capacity if agents == (GIVEN,) else _core.MAX_STEPS
        horizon = word(jnp.clip(jnp.asarray(params.max_steps_in_episode), 1, most))
        game = initial_game(stream, episode, horizon, np.uint32(agents[0]))
        zero = game.step
        game = game._replace(
            reds=zero + np.uint32(sum(1 << agent for agent in agents)),
            leaderboard=zero + np.uint32(self.rules.leaderboard),
            green=zero + np.uint32(self.green),
        )
        if len(agents) > 1:
            number = draws.red_number(game.counter, len(agents))
            red = game.red
            for i, agent in enumerate(agents):
                red = jnp.where(number == i, np.uint32(agent), red)
            game = game._replace(red=red)
        if self.order is not None:
            game = game._replace(
                counters=jnp.zeros(len(COUNTERS), jnp.int32) + zero.astype(jnp.int32)
            )
        if agents == (GIVEN,):
            game = game._replace(
                session_log=jnp.zeros(self.session_capacity, jnp.uint8) + zero.astype(jnp.uint8)
            )
        return game

    def _play(self, state: State, action: Any, params: Params) -> tuple[Game, Array, Info]:
        before = unpack(state)
        self._check_state(state, params)
        blue, given = self._clamp_action(action)
        game, result = rules.play_step(self.rules, before, blue, RandomDraws(before.counter), given)
        game = game._replace(counter=bits.add_wide(before.counter, draws.STEP_INCREMENT))
        info = {
            "moves": rules.moves(blue, result),
            "discount": jnp.ones((), jnp.float32),
            "episode_return": rules.reward(game.penalty),
            "episode_length": game.step.astype(jnp.int32),
        }
        if self.order is not None:
            order = params.order
            assert order is not None  # see `_check_state`
            group, host = rules.decode_action(blue)
            fix = Fix((group == 1) | (group == 10), host)
            observed = self.knowledge == "observed"
            counters = count_fix(before, fix, order, observed=observed)
            game = game._replace(counters=counters)
            assert before.counters is not None
            weight = jnp.asarray(params.alignment, jnp.float32)
            info["alignment"] = alignment_reward(before.counters, counters, weight)
            info["counters"] = counters
        return game, rules.reward(result.penalty), info

    def _check_state(self, state: State, params: Params) -> None:
        """Raise ValueError if the state or the parameters are those of another environment."""
        if self.order is not None and params.order is None:
            raise ValueError("params.order must be given if Cage2 has an order, got None")
        if (state.counters is None) != (self.order is None):
            raise ValueError("a state must track compliance if and only if Cage2 has an order")
        if (state.session_log is None) != (self.rules.reds != (GIVEN,)):
            raise ValueError("a state must log sessions if and only if red is given")

    def _clamp_action(self, action: Any) -> tuple[Word, Word | None]:
        """Blue's action and that of a given red, as words within their ranges.

        Raises:
            TypeError: the actions are not one integer each.
        """
        is_given = self.rules.reds == (GIVEN,)
        actions = [jnp.asarray(part) for part in (action if _is_sequence(action) else (action,))]
        wanted = "two integers, blue's and red's" if is_given else "one integer"
        are_integers = all(jnp.issubdtype(part.dtype, jnp.integer) for part in actions)
        if len(actions) != 1 + is_given or not are_integers or any(part.ndim for part in actions):
            got = ", ".join(f"{part.dtype}{list(part.shape)}" for part in actions)
            raise TypeError(f"an action must be {wanted}, got {got}; use jax.vmap for many games")
        blue, *given = actions
        red = word(jnp.clip(given[0], 0, RED_ACTION_COUNT - 1)) if given else None
        return word(jnp.clip(blue, 0, ACTION_COUNT - 1)), red

    def _observation(self, game: Game) -> Array:
        masks = (game.activity_low, game.activity_high, game.table_low, game.table_high)
        low = bits.materialize(masks[0] | (masks[1] << 13))
        high = bits.materialize(masks[2] | (masks[3] << 13))
        host = np.repeat(np.arange(len(HOSTS), dtype=np.uint32), 4)
        part = np.tile(np.arange(4), len(HOSTS))
        shift = host + np.where(part % 2 == 1, np.uint32(13), np.uint32(0))
        values = (jnp.where(part < 2, low, high) >> shift) & np.uint32(1)
        return values.astype(self.observation_dtype)


@dataclass(frozen=True, kw_only=True)
class LegacyCage2(Cage2):
    """`Cage2` whose `step` returns observation, state, reward, done and info."""

    @partial(jax.jit, static_argnames=("self",))
    def step(  # five values instead of six
        self, key: Array, state: State, action: Any, params: Params | None = None
    ) -> tuple[Array, State, Array, Array, Info]:
        """Play one step; `done` is the truncation."""
        observation, state, reward, _, truncated, info = super().step(key, state, action, params)
        return observation, state, reward, truncated, info


def _is_sequence(action: Any) -> bool:
    """Whether an action has a first axis: a pair, or an array of the pair."""
    return isinstance(action, tuple | list) or getattr(action, "ndim", 0) > 0


def _key_words(key: Array) -> Array:
    """The two words of a key."""
    data = key if key.dtype == jnp.uint32 else jax.random.key_data(key)
    if data.shape[-1] != 2:
        raise ValueError(
            f"a key must have two words, as those of jax.random.PRNGKey, got {data.shape[-1]} words"
        )
    if data.ndim != 1:
        raise ValueError(f"a key must be one key, got shape {data.shape}; use jax.vmap for many")
    return data


def _host_vector(words: Any) -> Array:
    """Bytes of all hosts, (13,)."""
    return jnp.stack([(words[h // 4] >> (8 * (h % 4))) & np.uint32(255) for h in range(len(HOSTS))])


def _mask_vector(mask: Word) -> Array:
    """0 or 1 for each host, (13,)."""
    return (mask >> np.arange(len(HOSTS), dtype=np.uint32)) & np.uint32(1)
