#pragma once
// The 52 observation values, expanded eight at a time from the bits of one word
// (docs/rules.md, 7.4).

#include <algorithm>
#include <array>
#include <cstring>

#include "scenario.hpp"

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
#pragma GCC unroll 6
  for (int k = 0; k < kObservationSize / 8; ++k) {
    std::memcpy(values + 8 * k, kExpansion<Value>[(bits >> (8 * k)) & 255u].data(),
                8 * sizeof(Value));
  }
  std::memcpy(values + 48, kExpansion<Value>[(bits >> 48) & 15u].data(), 4 * sizeof(Value));
}

}  // namespace cagepool
