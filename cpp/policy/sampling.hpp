#pragma once
// The two places where a learner works on every choice of every state: drawing a choice, and the
// gradient of the loss. In Python they would cost more than the game and the network together.

#include <cstddef>
#include <cstdint>
#include <span>

namespace cagepool {

/// Rows of choices: logits, and which of them may be chosen (empty: all).
struct Choices {
  std::span<const float> logits;        // rows x count
  std::span<const std::uint8_t> masks;  // the same shape, or empty
  std::size_t count;

  std::size_t rows() const { return logits.size() / count; }
};

/// Draw a choice in every row from the softmax of its logits, by one uniform number a row.
void draw(const Choices& choices, std::span<const float> uniforms, std::span<std::int64_t> chosen,
          std::span<float> log_probabilities);

}  // namespace cagepool
