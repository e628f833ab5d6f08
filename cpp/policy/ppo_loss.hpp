#pragma once
// Gradient of the loss of PPO.

#include <cstddef>
#include <cstdint>
#include <span>

namespace cagepool {

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
