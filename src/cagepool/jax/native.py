"""Games that move between the core and JAX: snapshots of `Batch.save` to `State` and back."""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from cagepool import _core
from cagepool.jax import bits
from cagepool.jax import scenario as sc
from cagepool.jax.draws import GOLDEN_RATIO
from cagepool.jax.game import GIVEN, NO_PICK, Game, State, pack, unpack
from cagepool.jax.rules import SESSION_ALIVE, SESSION_PRIVILEGED, SESSION_SEEN
from cagepool.sim import dtypes
from cagepool.sim.batch import Batch, BatchConfig
from cagepool.sim.compliance import order_number
from cagepool.sim.names import HOSTS

_NO_ORDER = 255
_HEADER = np.dtype([("magic", "S4"), ("version", "<u4"), ("checksum", "<u8")])
_BODY = np.dtype(
    [
        ("config", dtypes.GAME_CONFIG),
        ("game", dtypes.GAME),
        ("true_state", dtypes.CAGE2_TRUE_STATE),
        ("counters", "<i4", _core.COUNTER_COUNT),
        ("order", "u1"),
        ("moves", dtypes.MOVES),
    ]
)
_MASK_64 = 2**64 - 1
_NO_HOST = 255
_OUTAGE_TENTHS = 100
_SAME_FIELDS = (
    *("step", "horizon", "sessions", "privileged", "user_seen", "user_unseen", "malware"),
    *("known_ip", "known_host", "scanned", "exploited", "escalated", "mapped", "last_exploit"),
    *("last_host", "known_nets", "ot_pid_known", "ot_service_known", "last_scan_empty", "red"),
    *("mail_immune", "position", "reached_12", "swept"),
)


def from_native(blob: bytes) -> State:
    """State of a game that `Batch.save` or `envs.save` serialized.

    The state fits a `Cage2` with the settings of the game: its reds, edition and green agent, an
    order if compliance was tracked, and for a given red a `session_capacity` of its horizon.

    Raises:
        ValueError: the snapshot is damaged, or its red agents have weights.
    """
    body, log = _parse(blob)
    config, game, true_state = body["config"], body["game"], body["true_state"]
    if config["red_shares"].any():
        raise ValueError("a snapshot must have no weights of red agents, got one that has")
    values: dict[str, Any] = {name: _word(game[name]) for name in _SAME_FIELDS}
    table, observation = int(game["blue_table"]), int(game["observation"])
    values |= {
        "stream": _wide(_mix_bits(int(config["seed"]) + GOLDEN_RATIO)),
        "episode": _word(config["next_episode"]),
        "counter": _wide(int(game["key"]) + GOLDEN_RATIO * (4 * int(game["step"]) + 1)),
        "penalty": _word(-int(game["return_tenths"])),
        "outage": _word(game["outage_tenths"] != 0),
        "success": _word(int(game["last_success"]) + 1),
        "user_pick": _word(min(int(game["user_pick"]), int(NO_PICK))),
        "table_low": _word(_every_fourth(table, 2)),
        "table_high": _word(_every_fourth(table, 3)),
        "activity_low": _word(_every_fourth(observation, 0)),
        "activity_high": _word(_every_fourth(observation, 1)),
        "red_ports": _host_bytes(game["red_ports"]),
        "decoys": _host_bytes([_stored_decoys(int(decoys)) for decoys in true_state["decoys"]]),
        "repeated_decoys": _host_bytes(true_state["decoys"] >> 8),
        "privileged_counts": _host_bytes(true_state["privileged"]),
        "seen_counts": _host_bytes(true_state["user_seen"]),
        "unseen_counts": _host_bytes(true_state["user_unseen"]),
        "reds": _word(config["reds"]),
        "leaderboard": _word(config["edition"]),
        "green": _word(config["green"]),
        "counters": None if body["order"] == _NO_ORDER else jnp.array(body["counters"]),
        "session_log": None,
    }
    if int(game["red"]) == GIVEN:
        padded = np.zeros(int(game["horizon"]), np.uint8)
        padded[: len(log)] = log
        values["session_log"] = jnp.asarray(padded)
    return pack(Game(**values))


def to_native(state: State, *, order: str | None = None) -> bytes:
    """Serialize one game as `Batch.save` does, for `restore`.

    Sessions of a scripted red are counted, not logged: their ids in the snapshot are new, which
    shows only in `true_state_dict`. The moves of the last step are not part of the state.

    Args:
        state: One game, without a batch axis.
        order: Workflow order, if compliance is tracked.

    Raises:
        ValueError: the state has a batch axis, or the order is missing or not tracked.
    """
    if jnp.ndim(state.time):
        shape = jnp.shape(state.time)
        raise ValueError(f"state must be one game, got a batch of the shape {shape}")
    if (state.counters is None) != (order is None):
        raise ValueError(
            f"order must be given if and only if compliance is tracked, got order={order!r}"
        )
    game = jax.tree.map(np.asarray, unpack(state))
    log = _session_log(game)
    body = np.zeros((), _BODY)
    _fill_config(body["config"], game)
    _fill_game(body["game"], game)
    _fill_true_state(body["true_state"], game, body["game"])
    body["order"] = _NO_ORDER if order is None else order_number(order)
    if game.counters is not None:
        body["counters"] = game.counters
    for name in {*(dtypes.MOVES.names or ())} - {"blue_action", "red_kind"}:
        body["moves"][name] = -1
    content = body.tobytes() + log.tobytes()
    header = np.zeros((), _HEADER)
    header["magic"], header["version"], header["checksum"] = b"CGPL", 1, _checksum(content)
    return bytes(header.tobytes() + content)


def _parse(blob: bytes) -> tuple[Any, Any]:
    """Body and session log of a snapshot that the core accepts."""
    size = _HEADER.itemsize + _BODY.itemsize
    if len(blob) < size:
        raise ValueError("a snapshot must be whole, got one that is cut short")
    body = np.frombuffer(blob, _BODY, count=1, offset=_HEADER.itemsize)[0]
    red = "given" if int(body["config"]["reds"]) >> GIVEN & 1 else "B_lineAgent"
    horizon = min(max(int(body["config"]["horizon"]), 1), _core.MAX_STEPS)
    Batch(1, BatchConfig(red=red, max_steps=horizon)).restore(np.zeros(1, np.int64), [blob])
    return body, np.frombuffer(blob, np.uint8, offset=size)


def _fill_config(config: Any, game: Game) -> None:
    seed = _unmix_bits(_number(game.stream)) - GOLDEN_RATIO
    config["seed"] = seed & _MASK_64
    config["next_episode"] = game.episode
    config["horizon"], config["reds"] = game.horizon, game.reds
    config["edition"], config["green"] = game.leaderboard, game.green


def _fill_game(target: Any, game: Game) -> None:
    for name in _SAME_FIELDS:
        target[name] = getattr(game, name)
    step = int(game.step)
    target["key"] = (_number(game.counter) - GOLDEN_RATIO * (4 * step + 1)) & _MASK_64
    table = _spread(game.table_low, 2) | _spread(game.table_high, 3)
    target["blue_table"] = table
    activity = _spread(game.activity_low, 0) | _spread(game.activity_high, 1)
    target["observation"] = table | activity
    target["return_tenths"] = -int(game.penalty)
    target["outage_tenths"] = _OUTAGE_TENTHS * int(game.outage)
    target["last_success"] = int(game.success) - 1
    target["edition"], target["green"] = game.leaderboard, game.green
    target["phase"] = 1 if step < int(game.horizon) else 2
    pick = int(game.user_pick)
    target["user_pick"] = _NO_HOST if pick == NO_PICK else pick
    target["red_ports"] = _byte_values(game.red_ports)


def _fill_true_state(target: Any, game: Game, native: Any) -> None:
    decoys = [_exported_decoys(int(stored)) for stored in _byte_values(game.decoys)]
    target["decoys"] = np.array(decoys, np.uint16)
    target["decoys"] += _byte_values(game.repeated_decoys).astype(np.uint16) << 8
    privileged = _byte_values(game.privileged_counts)
    target["privileged"] = privileged
    target["user_seen"] = _byte_values(game.seen_counts)
    target["user_unseen"] = _byte_values(game.unseen_counts)
    users = (target["user_seen"] > 0) | (target["user_unseen"] > 0)
    target["access"] = np.where(privileged > 0, 2, users)
    hosts = np.arange(len(HOSTS))
    target["malware"] = (int(game.malware) >> hosts) & 1
    low, high = (int(game.table_low) >> hosts) & 1, (int(game.table_high) >> hosts) & 1
    target["compromised"] = low + 2 * high
    target["ot_running"][sc.OP_SERVER0] = not game.outage
    target["ot_pid_known"][sc.OP_SERVER0] = native["ot_pid_known"]
    target["mail_immune"] = (int(native["mail_immune"]) << sc.USER3 >> hosts) & 1
    for name in ("ot_service_known", "red", "edition"):
        target[name] = native[name]


def _session_log(game: Game) -> Any:
    """Session log of the core; sessions that are only counted come in the order of their hosts."""
    length = int(game.sessions) - 1
    if game.session_log is not None:
        return np.asarray(game.session_log[:length])
    log = np.zeros(length, np.uint8)  # the rest have ended
    kinds = (
        (game.privileged_counts, SESSION_PRIVILEGED),
        (game.seen_counts, SESSION_SEEN),
        (game.unseen_counts, 0),
    )
    alive = []
    for counts, flag in kinds:
        for host, count in enumerate(_byte_values(counts)):
            foothold = host == sc.USER0 and flag == SESSION_PRIVILEGED
            alive += [host | SESSION_ALIVE | flag] * (int(count) - foothold)
    log[: len(alive)] = alive
    return log


def _word(value: Any) -> jax.Array:
    return jnp.asarray(np.uint32(value))


def _wide(value: int) -> bits.Wide:
    low, high = bits.wide(value & _MASK_64)
    return jnp.asarray(low), jnp.asarray(high)


def _number(words: Any) -> int:
    return int(words[0]) | (int(words[1]) << 32)


def _host_bytes(values: Any) -> bits.HostBytes:
    return cast(bits.HostBytes, tuple(map(jnp.asarray, bits.host_table(values))))


def _byte_values(words: Any) -> Any:
    packed = np.array([int(w) for w in words], "<u4")
    return packed.view(np.uint8)[: len(HOSTS)]


def _every_fourth(value: int, offset: int) -> int:
    return sum(((value >> (4 * host + offset)) & 1) << host for host in range(len(HOSTS)))


def _spread(mask: Any, offset: int) -> int:
    return sum(((int(mask) >> host) & 1) << (4 * host + offset) for host in range(len(HOSTS)))


def _stored_decoys(decoys: int) -> int:
    return sum(bit for decoy, bit in enumerate(sc.DECOY_BIT) if (decoys >> decoy) & 1)


def _exported_decoys(stored: int) -> int:
    return sum(1 << decoy for decoy, bit in enumerate(sc.DECOY_BIT) if stored & bit)


def _mix_bits(x: int) -> int:
    """Finalizer of SplitMix64 (cpp/core/random.hpp)."""
    x &= _MASK_64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return x ^ (x >> 31)


def _unmix_bits(x: int) -> int:
    """Inverse of `_mix_bits`."""
    x = _undo_xor_shift(x, 31)
    x = (x * pow(0x94D049BB133111EB, -1, 2**64)) & _MASK_64
    x = _undo_xor_shift(x, 27)
    x = (x * pow(0xBF58476D1CE4E5B9, -1, 2**64)) & _MASK_64
    return _undo_xor_shift(x, 30)


def _undo_xor_shift(x: int, shift: int) -> int:
    result = x
    for _ in range(64 // shift):
        result = x ^ (result >> shift)
    return result


def _checksum(content: bytes) -> int:
    total = len(content)
    for byte in content:
        total = _mix_bits(total ^ byte)
    return total
