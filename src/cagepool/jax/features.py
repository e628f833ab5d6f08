"""Policy features and action masks as pure functions, equal to `sim.encoder.FeatureEncoder`."""

from dataclasses import fields
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from cagepool import _core
from cagepool.jax import bits, rules
from cagepool.jax import scenario as sc
from cagepool.jax.bits import HostBytes, Word, only_if, word
from cagepool.sim.encoder import FeatureConfig
from cagepool.sim.masks import action_set
from cagepool.sim.names import HOST_TYPES, HOSTS

# Settings that may differ from their defaults; what training alone uses is ignored.
_CHOICES = (
    *("scan_memory", "decoys_placed", "last_action", "time_left", "order_input"),
    *("actions", "action_masking", "critic_inputs"),
)
_DECOY_GROUPS = range(2, 10)  # of `rules.decode_action`
_RESTORE_GROUP = 10
_NO_GROUP = 11

BLUE_KINDS = len(_core.BlueKind) - 1  # CAGE-2 has no Misinform


class History(NamedTuple):
    """What features need of one game's episode."""

    scanned: Word  # hosts on which activity was ever seen
    exploited: Word  # hosts on which an exploit was ever seen
    latest: Word  # active hosts of the last step with any activity
    step: Word
    horizon: Word
    last_kind: Word
    last_host: Word
    decoys: HostBytes


class Features:
    """Encodes observations and the history of an episode; has no state of its own."""

    def __init__(self, config: FeatureConfig | None = None, *, horizon: int = 100) -> None:
        """Choose features and actions.

        Args:
            config: Features and action set, as of a training.
            horizon: Episode length behind the feature `time_left`.
        """
        self.config = config or FeatureConfig()
        for field in fields(FeatureConfig):
            if field.name not in _CHOICES and getattr(self.config, field.name) != field.default:
                raise ValueError(f"JAX needs {field.name}={field.default}")
        self.horizon = horizon
        self.action_indices = action_set(self.config.actions)  # action of each choice
        self.n_choices = len(self.action_indices)
        facts = [_core.blue_action(int(action)) for action in self.action_indices]
        self._decoy_choices = [
            (number, int(host), int(decoy))
            for number, (kind, host, decoy, fits) in enumerate(facts)
            if kind == _core.BlueKind.DECOY and fits
        ]
        self._can_ever_work = np.array(
            [kind != _core.BlueKind.DECOY or fits for kind, _, _, fits in facts], np.bool_
        )

    @property
    def size(self) -> int:
        """Number of features."""
        config = self.config
        size = 4 * len(HOSTS) + 3 * len(HOSTS) * config.scan_memory
        size += len(self._decoy_choices) * config.decoys_placed
        size += (BLUE_KINDS + len(HOSTS)) * config.last_action
        return size + config.time_left + len(HOST_TYPES) ** 2 * config.order_input

    def start(self) -> History:
        """History at the start of an episode."""
        zero = jnp.zeros((), jnp.uint32)
        horizon = zero + np.uint32(self.horizon)
        return History(zero, zero, zero, zero, horizon, zero, zero, (zero, zero, zero, zero))

    def action(self, choice: Array) -> Array:
        """Action of a choice of the policy, as one of the 145."""
        actions = self.action_indices.astype(np.int32)
        is_chosen = choice == np.arange(self.n_choices)
        return jnp.sum(jnp.where(is_chosen, actions, 0))

    def update(self, history: History, action: Array, observation: Array) -> History:
        """Add a step: the action, one of the 145, and the observation that followed."""
        group, host = rules.decode_action(word(action))
        is_decoy = (group >= _DECOY_GROUPS.start) & (group < _DECOY_GROUPS.stop)
        decoy = (group - np.uint32(_DECOY_GROUPS.start)) & np.uint32(7)
        placed = bits.get_byte(history.decoys, host)
        works = is_decoy & rules.can_place(placed, host, decoy)
        bit = only_if(works, rules.decoy_bit(decoy))
        units = bits.byte_units(host)
        decoys = bits.add_byte(history.decoys, units, bit & ~placed)
        decoys = bits.clear_byte(decoys, units, group == _RESTORE_GROUP)
        kind = jnp.where(is_decoy, np.uint32(4), group + np.uint32(2))
        kind = jnp.where(group == _RESTORE_GROUP, np.uint32(5), kind)
        kind = jnp.where(group == _NO_GROUP, word(action), kind)
        cells = observation.reshape(len(HOSTS), 4) != 0
        active = _mask(cells[:, 0] | cells[:, 1])
        return history._replace(
            scanned=history.scanned | active,
            exploited=history.exploited | _mask(cells[:, 0] & cells[:, 1]),
            latest=jnp.where(active != 0, active, history.latest),
            step=history.step + np.uint32(1),
            last_kind=kind,
            last_host=host,
            decoys=decoys,
        )

    def encode(
        self, observation: Array, history: History, order: Array | None = None
    ) -> tuple[Array, Array]:
        """Features, (size,) float32, and mask of the choices that can work, (n_choices,).

        Args:
            observation: Observation of the present state.
            history: History of the episode.
            order: Workflow order, for the feature `order_input`; see `order_array`.
        """
        config = self.config
        parts = [observation.astype(jnp.float32)]
        if config.scan_memory:
            masks = (history.scanned, history.exploited, history.latest)
            parts += [_bits(mask, len(HOSTS)) for mask in masks]
        if config.decoys_placed:
            placed = [self._stands(history, host, decoy) for _, host, decoy in self._decoy_choices]
            parts.append(jnp.stack(placed).astype(jnp.float32))
        if config.last_action:
            parts += self._last_action(history)
        if config.time_left:
            left = history.horizon.astype(jnp.float32) - history.step.astype(jnp.float32)
            parts.append(jnp.maximum(left / history.horizon.astype(jnp.float32), 0.0)[None])
        if config.order_input:
            if order is None:
                raise ValueError("encode needs an order for the feature order_input, got none")
            kinds = jnp.arange(len(HOST_TYPES))
            parts.append((order[:, None] == kinds[None, :]).astype(jnp.float32).reshape(-1))
        return jnp.concatenate(parts), self._mask_of_choices(history)

    def _stands(self, history: History, host: int, decoy: int) -> Array:
        byte = history.decoys[host // 4] >> (8 * (host % 4))
        return (byte & np.uint32(sc.DECOY_BIT[decoy])) != 0

    def _last_action(self, history: History) -> list[Array]:
        has_action = history.step != 0
        has_host = has_action & (history.last_kind > int(_core.BlueKind.MONITOR))
        kind = only_if(has_action, np.uint32(1) << history.last_kind)
        host = only_if(has_host, np.uint32(1) << history.last_host)
        return [_bits(kind, BLUE_KINDS), _bits(host, len(HOSTS))]

    def _mask_of_choices(self, history: History) -> Array:
        choices = []
        decoys = {number: (host, decoy) for number, host, decoy in self._decoy_choices}
        for number, can_work in enumerate(self._can_ever_work):
            if number not in decoys:
                choices.append(jnp.asarray(can_work))
                continue
            host, decoy = decoys[number]
            placed = (history.decoys[host // 4] >> (8 * (host % 4))) & np.uint32(255)
            choices.append(rules.can_place(placed, np.uint32(host), np.uint32(decoy)))
        return jnp.stack(choices)


def _bits(mask: Word, count: int) -> Array:
    return ((mask >> np.arange(count, dtype=np.uint32)) & np.uint32(1)).astype(jnp.float32)


def _mask(flags: Array) -> Word:
    weights = np.uint32(1) << np.arange(flags.shape[0], dtype=np.uint32)
    return jnp.sum(jnp.where(flags, weights, np.uint32(0)), dtype=jnp.uint32)
