#pragma once
// Sampling of choices from masked logits.

#include <cstddef>
#include <cstdint>
#include <span>

namespace cagepool {

/// Rows of logits, and which choices are allowed.
struct MaskedLogits {
  std::span<const float> logits;        // rows x stride
  std::span<const std::uint8_t> masks;  // rows x choices, 1: allowed; empty: every choice is
  std::size_t choices;
  std::size_t stride;         // from a row of logits to the next, at least `choices`
  std::size_t first_row = 0;  // number of the first row, for messages

  std::size_t rows() const { return logits.size() / stride; }
};

/// Sample one choice per row from the softmax of its logits, by one uniform number in [0, 1) per
/// row. Throws std::invalid_argument if a row allows no choice or has NaN; earlier rows are
/// sampled.
void sample_choices(const MaskedLogits& logits, std::span<const float> uniforms,
                    std::span<std::int64_t> chosen, std::span<float> log_probabilities);

}  // namespace cagepool
