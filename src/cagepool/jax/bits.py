"""Bit operations on uint32 words: 64-bit arithmetic on pairs, bytes per host, sets of hosts.

No operation needs a 64-bit type, a gather or a scatter, so that programs are the same with and
without `jax_enable_x64` and fuse on every device.
"""

from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

Word: TypeAlias = Array  # uint32
Operand: TypeAlias = Array | np.uint32  # a word or a constant
Flag: TypeAlias = Array  # bool
Wide: TypeAlias = tuple[Word, Word]  # 64 bits: low and high word
HostBytes: TypeAlias = tuple[Word, Word, Word, Word]  # byte of host h: word h // 4, byte h % 4

_PRIME = np.uint32(4294967291)  # the largest below 2 ** 32


def word(value: Any) -> Word:
    """Convert a flag, an integer or an array to uint32."""
    return jnp.asarray(value).astype(jnp.uint32)


def materialize(value: Word) -> Word:
    """Return the same word, computed once: XLA does not copy a remainder into its consumers.

    On a CPU, XLA fuses the producers of every output with that output. Without this, each of the
    52 observation values and each word of the state would play the whole step again.
    The value must be below 4294967291.
    """
    return lax.rem(value, jnp.full_like(value, _PRIME))


def wide(value: int) -> tuple[np.uint32, np.uint32]:
    """Low and high word of a 64-bit constant."""
    return np.uint32(value & 0xFFFFFFFF), np.uint32(value >> 32)


def add_wide(a: Any, b: Any) -> Wide:
    """Sum modulo 2 ** 64."""
    low = a[0] + b[0]
    return low, a[1] + b[1] + word(low < b[0])


def multiply_wide(a: Any, b: Any) -> Wide:
    """Product modulo 2 ** 64."""
    return a[0] * b[0], multiply_high(a[0], b[0]) + a[0] * b[1] + a[1] * b[0]


def multiply_high(a: Any, b: Any) -> Word:
    """High word of the product of two words."""
    half = np.uint32(0xFFFF)
    a_low, a_high, b_low, b_high = a & half, a >> 16, b & half, b >> 16
    cross_1, cross_2 = a_low * b_high, a_high * b_low
    middle = ((a_low * b_low) >> 16) + (cross_1 & half) + (cross_2 & half)
    high: Word = a_high * b_high + (cross_1 >> 16) + (cross_2 >> 16) + (middle >> 16)
    return high


def xor_shift(a: Any, shift: int) -> Wide:
    """Return a ^ (a >> shift) of 64 bits, for shifts below 32."""
    return a[0] ^ ((a[0] >> shift) | (a[1] << (32 - shift))), a[1] ^ (a[1] >> shift)


def below(random: Word, count: Operand) -> Word:
    """Return (random * count) >> 32: a uniform number below `count`, which is below 2 ** 16."""
    low = ((random & np.uint32(0xFFFF)) * count) >> 16
    return ((random >> 16) * count + low) >> 16


def count_bits(mask: Word) -> Word:
    """Number of set bits."""
    return lax.population_count(mask)


def select_bit(mask: Word, rank: Word) -> Word:
    """Index of the set bit of a 16-bit mask that has `rank` set bits below it."""
    base = jnp.zeros_like(mask)
    for half in (8, 4, 2, 1):
        count = count_bits((mask >> base) & np.uint32((1 << half) - 1))
        is_above = word(rank >= count)
        rank = rank - is_above * count
        base = base + is_above * np.uint32(half)
    return base


def has(mask: Any, index: Any) -> Flag:
    """Whether a bit is set."""
    is_set: Flag = (mask >> index) & np.uint32(1) != 0
    return is_set


def only_if(condition: Flag, value: Any) -> Word:
    """Return the value, or 0 if the condition is false."""
    return jnp.where(condition, value, np.uint32(0))


def host_table(values: Any) -> tuple[np.uint32, ...]:
    """Constant bytes, one per host, as words."""
    padded = np.zeros(16, np.uint8)
    padded[: len(values)] = values
    return tuple(padded.view("<u4").astype(np.uint32))


def get_byte(words: Any, host: Operand) -> Word:
    """Byte of a host."""
    low = jnp.where(host >= 4, words[1], words[0])
    high = jnp.where(host >= 12, words[3], words[2])
    return (jnp.where(host >= 8, high, low) >> ((host & 3) * 8)) & np.uint32(255)


def byte_units(host: Word) -> HostBytes:
    """Words that have 1 in the byte of a host and 0 in all others, each computed once."""
    unit = np.uint32(1) << ((host & 3) * 8)
    first, second, third, fourth = (
        materialize(only_if(host >> 2 == index, unit)) for index in range(4)
    )
    return first, second, third, fourth


def add_byte(words: HostBytes, units: HostBytes, value: Word) -> HostBytes:
    """Add to the byte of the host of `units`; the sum must fit a byte."""
    return _map_words(lambda w, unit: w + unit * value, words, units)


def subtract_byte(words: HostBytes, units: HostBytes, value: Word) -> HostBytes:
    """Subtract from the byte of the host of `units`; the difference must not be negative."""
    return _map_words(lambda w, unit: w - unit * value, words, units)


def clear_byte(words: HostBytes, units: HostBytes, condition: Flag) -> HostBytes:
    """Set the byte of the host of `units` to 0 if the condition holds."""
    mask = only_if(condition, np.uint32(255))
    return _map_words(lambda w, unit: w & ~(unit * mask), words, units)


def _map_words(function: Any, words: HostBytes, units: HostBytes) -> HostBytes:
    first, second, third, fourth = map(function, words, units)
    return first, second, third, fourth
