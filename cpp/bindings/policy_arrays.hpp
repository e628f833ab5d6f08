#pragma once
// Checks of the arrays of policies: rows, masks and indices.

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/buffers.hpp"
#include "policy/encoder.hpp"

namespace cagepool {

inline void check(bool holds, const char* sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

template <class... Arrays>
void check_rows(std::size_t rows, const Arrays&... arrays) {
  (arrays.check_rows(rows), ...);
}

inline void check_range(std::span<const std::int64_t> indices, std::size_t count,
                        const char* sentence) {
  for (const std::int64_t index : indices) {
    if (index < 0 || std::cmp_greater_equal(index, count)) throw std::out_of_range(sentence);
  }
}

/// Copy of an array whose values are checked: other threads may change the array meanwhile.
template <class Value>
std::vector<Value> copy_of(std::span<const Value> values) {
  return {values.begin(), values.end()};
}

inline void check_histories(const FeatureEncoder& encoder, std::span<const History> histories) {
  for (const History& history : histories)
    check(encoder.is_possible(history),
          "histories must be those of `update`, with orders below 120");
}

/// Masks of choices; without rows if they are None.
class Masks {
 public:
  Masks(nb::handle masks, std::size_t rows, std::size_t choices) {
    if (masks.is_none()) return;
    array_.emplace(masks, "masks");
    array_->check_rows(rows);
    array_->check_columns(choices);
  }
  std::span<std::uint8_t> span() const {
    return array_ ? array_->span() : std::span<std::uint8_t>();
  }

 private:
  std::optional<Rows<std::uint8_t>> array_;
};

/// Choices of some rows of a rollout, copied for the same reason.
inline std::vector<std::int64_t> chosen_of_rows(std::span<const std::int64_t> chosen,
                                                std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> result;
  result.reserve(rows.size());
  for (const std::int64_t row : rows) result.push_back(chosen[static_cast<std::size_t>(row)]);
  return result;
}

}  // namespace cagepool
