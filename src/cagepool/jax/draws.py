"""The random numbers of the core (cpp/core/random.hpp): counter-based SplitMix64 streams."""

from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np
from jax import lax

from cagepool.jax import bits
from cagepool.jax.bits import Flag, Wide, Word
from cagepool.jax.scenario import GREEN_HOSTS

GOLDEN_RATIO = 0x9E3779B97F4A7C15
_FACTORS = (bits.wide(0xBF58476D1CE4E5B9), bits.wide(0x94D049BB133111EB))
_LANES = tuple(bits.wide(lane * GOLDEN_RATIO % 2**64) for lane in range(4))
STEP_INCREMENT = bits.wide(4 * GOLDEN_RATIO % 2**64)
_TOP_SHARE = np.uint32(3 << 30)  # 0.75
_DETECTED_SHARE = np.uint32(4080218931)  # 0.95 * 2 ** 32, rounded
_GREEN_TABLE = np.uint32(sum(host << (4 * i) for i, host in enumerate(GREEN_HOSTS)))
NO_HOST = np.uint32(15)


def mix_bits(a: Any) -> Wide:
    """Finalizer of SplitMix64."""
    a = bits.multiply_wide(bits.xor_shift(a, 30), _FACTORS[0])
    a = bits.multiply_wide(bits.xor_shift(a, 27), _FACTORS[1])
    return bits.xor_shift(a, 31)


def seed_stream(seed: Any) -> Wide:
    """First stage of the key of an episode, the same for all episodes of a seed."""
    return mix_bits(bits.add_wide(seed, bits.wide(GOLDEN_RATIO)))


def episode_key(stream: Any, episode: Word) -> Wide:
    """Key of the random stream of an episode."""
    golden = bits.wide(GOLDEN_RATIO)
    count = episode + np.uint32(1)
    offset = count * golden[0], bits.multiply_high(count, golden[0]) + count * golden[1]
    return mix_bits(bits.add_wide(stream, offset))


def first_counter(key: Any) -> Wide:
    """Counter of the first step: its lane 0."""
    return bits.add_wide(key, bits.wide(GOLDEN_RATIO))


def red_number(counter: Any, count: int) -> Word:
    """Which of `count` red agents plays the episode that begins at this counter."""
    return bits.below(mix_bits(bits.add_wide(counter, _LANES[3]))[0], np.uint32(count))


class Draws(Protocol):
    """The draws of one step; ids such as G1 refer to docs/rules.md, section 12."""

    def green_host(self) -> Word:
        """G1, G2: host that green scans, or `NO_HOST`."""
        ...

    def red_target(self, candidates: Word) -> Word:
        """B1, M1, M2, M3: target of red among the candidates."""
        ...

    def exploit_rank(self, options: Word) -> Word:
        """E1, E2: rank of the exploit among the options, which are not empty."""
        ...

    def is_detected(self) -> Flag:
        """E3: whether blue's monitoring detects a reverse shell."""
        ...

    def escalated_session(self, count: Word) -> Word:
        """P1: index of the session, among `count` on the host, that is escalated."""
        ...


class RandomDraws:
    """Draws from the random stream of the game."""

    def __init__(self, counter: Wide) -> None:
        """Use the counter of the step."""
        self._counter = counter

    def _lane(self, lane: int) -> Wide:
        return mix_bits(bits.add_wide(self._counter, _LANES[lane]) if lane else self._counter)

    def green_host(self) -> Word:
        """See `Draws`."""
        low, high = self._lane(2)
        host = (_GREEN_TABLE >> ((low & 7) * 4)) & np.uint32(15)
        return jnp.where(high >> 31 != 0, NO_HOST, host)

    def red_target(self, candidates: Word) -> Word:
        """See `Draws`."""
        count = bits.count_bits(candidates)
        return bits.select_bit(candidates, bits.below(self._lane(0)[1], count))

    def exploit_rank(self, options: Word) -> Word:
        """See `Draws`."""
        random = self._lane(0)[0]
        count = bits.count_bits(options)
        top = np.uint32(31) - jnp.minimum(lax.clz(options), np.uint32(31))
        others = bits.below((random - _TOP_SHARE) << 2, count - np.uint32(1))
        takes_top = (count == 1) | (random < _TOP_SHARE)
        return jnp.where(takes_top, top, bits.select_bit(options, others))

    def is_detected(self) -> Flag:
        """See `Draws`."""
        return self._lane(1)[0] < _DETECTED_SHARE

    def escalated_session(self, count: Word) -> Word:
        """See `Draws`."""
        return bits.below(self._lane(1)[1], count)
