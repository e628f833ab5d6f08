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

struct LossRule {
  float clip;        // of the ratio of probabilities
  float value_clip;  // of the change of a value; 0: none
  float entropy;     // weight of the entropy
};

/// What was collected, a number a row, and which choices were allowed.
struct Collected {
  std::span<const std::uint8_t> masks;  // rows x choices, or empty
  std::span<const std::int64_t> chosen;
  std::span<const float> log_probabilities;
  std::span<const float> advantages;
  std::span<const float> values;   // as predicted when it was collected
  std::span<const float> returns;  // that the value should have been
};

/// A part of a minibatch: which rows of what was collected, and what the networks say of them now.
struct Share {
  std::span<const std::int64_t> rows;
  std::span<const float> logits;  // rows x choices
  std::span<const float> values;
  std::size_t minibatch;  // rows of all shares: what means are over
};

/// This share of the means over the minibatch.
struct LossParts {
  double policy = 0;
  double value = 0;
  double entropy = 0;
  double kl = 0;
  double clipped = 0;
};

/// Gradient of the mean loss of PPO with respect to a share's logits and values.
///
/// The loss of a row is policy - rule.entropy * entropy + value, where policy is the clipped
/// surrogate and value is half the (clipped) squared error.
LossParts loss_gradient(const Share& share, const Collected& collected, const LossRule& rule,
                        std::span<float> logits_gradient, std::span<float> values_gradient);

}  // namespace cagepool
