#pragma once
// Expands the bits of an observation to floats or bytes (docs/rules.md, 7.4).

#include <algorithm>
#include <array>

#include "core/scenarios.hpp"

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
inline void expand_byte(std::uint64_t byte, Value* values) {
  // One vector move; GCC splits a memcpy of 32 bytes in two.
  using Eight
      [[gnu::vector_size(8 * sizeof(Value)), gnu::aligned(alignof(Value)), gnu::may_alias]] = Value;
  const Value* values_of_byte = kBitTable<Value>[byte & 255u].data();
  *reinterpret_cast<Eight*>(values) = *reinterpret_cast<const Eight*>(values_of_byte);
}

/// Write the 52 values of an observation.
template <class Value>
inline void expand_observation(std::uint64_t bits, Value* values) {
#pragma GCC unroll 6
  for (int k = 0; k < kObservationSize / 8; ++k) expand_byte(bits >> (8 * k), values + 8 * k);
  std::copy_n(kBitTable<Value>[(bits >> 48) & 15u].data(), 4, values + 48);
}

/// Move the nibble of every host to its slot.
inline WideTable in_slots(const TableScenario& scenario, const WideTable& table) {
  if (scenario.tables().same_slots) return table;
  WideTable by_slot{};
  for (std::size_t word = 0; word < table.size(); ++word) {
    for (std::uint64_t bits = table[word]; bits != 0;) {
      const int shift = std::countr_zero(bits) & ~3;
      const std::uint64_t nibble = (bits >> shift) & 15u;
      const std::size_t host = 16 * word + static_cast<std::size_t>(shift) / 4;
      const int slot = scenario.tables().slot_of_host[host];
      table_word(by_slot, slot) |= nibble << nibble_shift(by_slot, slot);
      bits ^= nibble << shift;
    }
  }
  return by_slot;
}

/// Write an observation as `columns` values, four per slot.
template <class Value>
inline void write_values(const CompiledScenario& /*scenario*/, std::uint64_t bits,
                         std::size_t /*columns*/, Value* values) {
  expand_observation(bits, values);
}
template <class Value>
inline void write_values(const TableScenario& scenario, const WideTable& table, std::size_t columns,
                         Value* values) {
  const WideTable bits = in_slots(scenario, table);
  const std::size_t bytes = columns / 8;
  for (std::size_t k = 0; k < bytes; ++k) expand_byte(bits[k / 8] >> (8 * (k % 8)), values + 8 * k);
  if (columns % 8 != 0) {
    const std::uint64_t nibble = bits[bytes / 8] >> (8 * (bytes % 8));
    std::copy_n(kBitTable<Value>[nibble & 15u].data(), 4, values + 8 * bytes);
  }
}

}  // namespace cagepool
