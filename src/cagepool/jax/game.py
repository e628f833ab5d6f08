"""State of a game: `State`, packed in words for programs, and `Game`, unpacked for the rules."""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cagepool.jax import draws
from cagepool.jax import scenario as sc
from cagepool.jax.bits import Flag, HostBytes, Wide, Word, has
from cagepool.jax.scenario import USER_NET, mask_of
from cagepool.sim.compliance import COUNTERS, parse_order
from cagepool.sim.names import HOST_TYPES, HOSTS, RED_AGENTS

# Codes of `Game.success` and of outcomes: the core's value plus 1.
UNKNOWN, FALSE, TRUE = np.uint32(0), np.uint32(1), np.uint32(2)
NO_PICK = np.uint32(7)
REDS = ("B_lineAgent", "RedMeanderAgent", "SleepAgent", "given")
"""Red agents that JAX plays."""
B_LINE, MEANDER, SLEEP, GIVEN = (int(RED_AGENTS[name]) for name in REDS)

# Bits of `State.flags`: name, width.
_FLAGS = (
    ("known_nets", 3),
    ("outage", 1),
    ("ot_pid_known", 1),
    ("ot_service_known", 1),
    ("last_scan_empty", 1),
    ("success", 2),
    ("red", (len(RED_AGENTS) - 1).bit_length()),
    ("mail_immune", 2),
    ("position", 4),
    ("user_pick", 3),
    ("reached_12", 1),
    ("swept", 3),
    ("reds", len(RED_AGENTS)),  # agents that may play, as bits
    ("leaderboard", 1),
    ("green", 1),
)
# Pairs of 16-bit values that share a word of `State`: low half, high half.
_PAIRS = {
    "time": ("step", "horizon"),
    "access": ("privileged", "user_seen"),
    "hidden": ("user_unseen", "malware"),
    "known": ("known_ip", "known_host"),
    "attempts": ("scanned", "exploited"),
    "progress": ("escalated", "mapped"),
    "last": ("last_exploit", "last_host"),
    "table": ("table_low", "table_high"),
    "activity": ("activity_low", "activity_high"),
}


class Replaceable:
    """Adds `replace`, as the parameters and states of gymnax have it."""

    def replace(self, **changes: Any) -> Self:
        """Copy with changed fields."""
        return replace(self, **changes)  # type: ignore[type-var]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State(Replaceable):
    """One game, as words of 32 bits; a batch has one more axis (`jax.vmap`).

    Use `Cage2.true_state` to read it.
    """

    stream: Wide  # of the seed
    episode: Word  # number of the next episode
    counter: Wide  # of the random numbers of the next step
    time: Word
    penalty: Word  # of the episode so far, in tenths
    sessions: Word  # session ids given out in this episode, session 0 included
    access: Word
    hidden: Word
    known: Word
    attempts: Word
    progress: Word
    last: Word
    table: Word
    activity: Word
    flags: Word
    red_ports: HostBytes
    decoys: HostBytes  # bits as in `scenario.DECOY_BIT`
    repeated_decoys: HostBytes  # Vsftpd beyond the first
    privileged_counts: HostBytes
    seen_counts: HostBytes
    unseen_counts: HostBytes
    counters: Array | None  # (5,) int32, of compliance; None: not tracked
    session_log: Array | None  # (capacity,) uint8, in the core's format; only with a given red


class Game(NamedTuple):
    """One game, unpacked; sets of hosts are masks of 13 bits."""

    stream: Wide
    episode: Word
    counter: Wide
    step: Word
    horizon: Word
    penalty: Word
    sessions: Word
    privileged: Word
    user_seen: Word
    user_unseen: Word
    malware: Word
    known_ip: Word
    known_host: Word
    scanned: Word
    exploited: Word
    escalated: Word
    mapped: Word
    last_exploit: Word
    last_host: Word
    table_low: Word  # bit 0 of blue's belief about each host
    table_high: Word  # bit 1
    activity_low: Word  # of the last observation
    activity_high: Word
    known_nets: Word
    outage: Word
    ot_pid_known: Word
    ot_service_known: Word
    last_scan_empty: Word
    success: Word
    red: Word
    mail_immune: Word
    position: Word
    user_pick: Word
    reached_12: Word
    swept: Word
    reds: Word
    leaderboard: Word
    green: Word
    red_ports: HostBytes
    decoys: HostBytes
    repeated_decoys: HostBytes
    privileged_counts: HostBytes
    seen_counts: HostBytes
    unseen_counts: HostBytes
    counters: Array | None
    session_log: Array | None

    @property
    def with_red(self) -> Word:
        """Hosts on which red has a session."""
        return self.privileged | self.user_seen | self.user_unseen


def pack(game: Game) -> State:
    """Pack a game in words."""
    values = game._asdict()
    words = {name: values[low] | (values[high] << 16) for name, (low, high) in _PAIRS.items()}
    flags, shift = jnp.zeros_like(game.step), 0
    for name, width in _FLAGS:
        flags = flags | (values[name] << shift)
        shift += width
    kept = {field.name: values[field.name] for field in fields(State) if field.name in values}
    return State(**kept, **words, flags=flags)


def unpack(state: State) -> Game:
    """Unpack the words of a game."""
    values = {f.name: getattr(state, f.name) for f in fields(State) if f.name in Game._fields}
    for name, (low, high) in _PAIRS.items():
        packed = getattr(state, name)
        values[low], values[high] = packed & np.uint32(0xFFFF), packed >> 16
    shift = 0
    for name, width in _FLAGS:
        values[name] = (state.flags >> shift) & np.uint32((1 << width) - 1)
        shift += width
    return Game(**values)


def initial_game(stream: Wide, episode: Word, horizon: Word, red: np.uint32) -> Game:
    """First state of an episode (docs/rules.md, 3.3), without compliance and session log.

    All words depend on `episode`, so that `jax.shard_map` sees a state that varies over devices.
    """
    zero = episode & np.uint32(0)
    none: HostBytes = (zero, zero, zero, zero)
    foothold = zero | mask_of("User0")
    values: dict[str, Any] = dict.fromkeys(Game._fields, zero)
    values |= dict.fromkeys(("red_ports", "decoys", "repeated_decoys"), none)
    values |= dict.fromkeys(("privileged_counts", "seen_counts", "unseen_counts"), none)
    values |= {"counters": None, "session_log": None}
    one = zero + np.uint32(1)
    return Game(**values)._replace(
        stream=stream,
        episode=episode + one,
        counter=draws.first_counter(draws.episode_key(stream, episode)),
        horizon=zero + horizon,
        sessions=one,
        privileged=foothold,
        known_ip=foothold,
        known_host=foothold,
        known_nets=one << USER_NET,
        ot_pid_known=one,
        success=zero + UNKNOWN,
        red=zero + red,
        user_pick=zero + NO_PICK,
        privileged_counts=(zero, zero, one, zero),  # User0
    )


def select_game(condition: Flag, if_true: Game, if_false: Game) -> Game:
    """Choose between two games, word by word."""
    game: Game = jax.tree.map(lambda a, b: jnp.where(condition, a, b), if_true, if_false)
    return game


_COUNTED_HOSTS = sc.mask_of(*HOSTS) & ~sc.mask_of("User0")


class Fix(NamedTuple):
    """A Remove or Restore that blue is about to play."""

    is_fix: Flag
    host: Word


def order_array(order: str) -> Array:
    """Indices of the host types in the priority of a workflow order, (5,)."""
    return jnp.array([HOST_TYPES.index(kind) for kind in parse_order(order)], jnp.int32)


def count_fix(game: Game, fix: Fix, order: Array, *, observed: bool) -> Array:
    """Counters after blue's action, by the state before that action; see `batch.COUNTERS`.

    Args:
        game: State before the action.
        fix: Blue's action.
        order: Host types, most urgent first, (5,).
        observed: Whether hosts count as threatened by blue's table instead of the true state.
    """
    assert game.counters is not None
    hosts = (game.table_low | game.table_high) if observed else game.with_red
    threatened = hosts & _COUNTED_HOSTS
    priority = jnp.zeros_like(threatened)
    for rank in reversed(range(len(HOST_TYPES))):
        of_type = jnp.zeros_like(threatened)
        for kind, type_hosts in enumerate(sc.TYPE_HOSTS):
            of_type = jnp.where(order[rank] == kind, type_hosts, of_type)
        priority = jnp.where((threatened & of_type) != 0, of_type, priority)
    is_threat = threatened != 0
    is_compliant = fix.is_fix & has(threatened & priority, fix.host)
    changes = {
        "compliant": is_compliant,
        "violations": fix.is_fix & is_threat & ~is_compliant,
        "wasted": fix.is_fix & (~is_threat | (fix.host == sc.USER0)),
        "fixes": fix.is_fix,
        "threat_steps": is_threat,
    }
    return game.counters + jnp.stack([changes[name].astype(jnp.int32) for name in COUNTERS])


def alignment_reward(before: Array, after: Array, weight: Array) -> Array:
    """Alignment reward of a step from the counters around it, as float32.

    The core computes it in double precision on a grid of powers of two; the difference is below
    1e-6 times the weight.
    """
    return weight * (_compliance(after) - _compliance(before))


def _compliance(counters: Array) -> Array:
    compliant = counters[COUNTERS.index("compliant")]
    decisions = compliant + counters[COUNTERS.index("violations")]
    return compliant.astype(jnp.float32) / jnp.maximum(decisions, 1).astype(jnp.float32)
