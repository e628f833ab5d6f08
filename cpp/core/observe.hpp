#pragma once
// Expands the 52 bits of an observation to 52 floats or bytes (docs/rules.md, 7.4).

#include <algorithm>
#include <array>

#include "core/scenario.hpp"

namespace cagepool {

template <class Value>
constexpr std::array<std::array<Value, 8>, 256> make_bit_table() {
  std::array<std::array<Value, 8>, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned k = 0; k < 8; ++k) table[byte][k] = static_cast<Value>((byte >> k) & 1u);
  }
  return table;
}
template <class Value>
inline constexpr std::array<std::array<Value, 8>, 256> kBitTable = make_bit_table<Value>();

/// Write value k as bit k of `bits`, eight values at a time.
template <class Value>
inline void expand_observation(std::uint64_t bits, Value* values) {
  // One vector move each; GCC splits a memcpy of 32 bytes in two.
  using Eight
      [[gnu::vector_size(8 * sizeof(Value)), gnu::aligned(alignof(Value)), gnu::may_alias]] = Value;
#pragma GCC unroll 6
  for (int k = 0; k < kObservationSize / 8; ++k) {
    const Value* values_of_byte = kBitTable<Value>[(bits >> (8 * k)) & 255u].data();
    *reinterpret_cast<Eight*>(values + 8 * k) = *reinterpret_cast<const Eight*>(values_of_byte);
  }
  std::copy_n(kBitTable<Value>[(bits >> 48) & 15u].data(), 4, values + 48);
}

}  // namespace cagepool
