#pragma once
// The 52 observation values, expanded eight at a time from the bits of one word
// (docs/rules.md, 7.4).

#include <algorithm>
#include <array>

#include "core/scenario.hpp"

namespace cagepool {

template <class Value>
constexpr std::array<std::array<Value, 8>, 256> make_expansion() {
  std::array<std::array<Value, 8>, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned k = 0; k < 8; ++k) table[byte][k] = static_cast<Value>((byte >> k) & 1u);
  }
  return table;
}
template <class Value>
inline constexpr std::array<std::array<Value, 8>, 256> kExpansion = make_expansion<Value>();

template <class Value>
inline void observe(std::uint64_t bits, Value* values) {
  // Copied as one vector each; memcpy would be split in two.
  using Eight
      [[gnu::vector_size(8 * sizeof(Value)), gnu::aligned(alignof(Value)), gnu::may_alias]] = Value;
#pragma GCC unroll 6
  for (int k = 0; k < kObservationSize / 8; ++k) {
    const Value* from = kExpansion<Value>[(bits >> (8 * k)) & 255u].data();
    *reinterpret_cast<Eight*>(values + 8 * k) = *reinterpret_cast<const Eight*>(from);
  }
  std::copy_n(kExpansion<Value>[(bits >> 48) & 15u].data(), 4, values + 48);
}

}  // namespace cagepool
