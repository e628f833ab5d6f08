#pragma once
// PPO loss and its gradient with respect to logits and values.

#include <cstddef>
#include <cstdint>
#include <span>

namespace cagepool {

/// Hyper-parameters of the loss, under Stable-Baselines3's names.
struct PpoLossConfig {
  float clip_range;     // of the probability ratio
  float clip_range_vf;  // of the change of a value; 0: no clipping
  float ent_coef;
};

/// Data of a rollout, one row per transition.
struct RolloutRows {
  std::span<const std::uint8_t> masks;  // rows x choices; empty: every choice was allowed
  std::span<const float> log_probabilities;
  std::span<const float> advantages;
  std::span<const float> values;  // as predicted during the rollout
  std::span<const float> returns;
};

/// A slice of a minibatch: rows of the rollout, with the current outputs of the networks.
struct MinibatchSlice {
  std::span<const std::int64_t> rows;
  std::span<const std::int64_t> chosen;  // choice of each row
  std::size_t choices;
  std::size_t stride;             // from a row of logits to the next, at least `choices`
  std::span<const float> logits;  // rows x stride
  std::span<const float> values;
  std::size_t minibatch_size;  // rows of all slices together, the divisor of all means
};

/// Contribution of a slice to the means over its minibatch.
struct PpoLossParts {
  double policy = 0;
  double value = 0;
  double entropy = 0;
  double kl = 0;
  double clipped = 0;  // share of probability ratios outside of the clip range
};

/// Write the gradient of the minibatch's mean loss with respect to the logits and values of a
/// slice, with the stride of the logits; what is between the rows stays as it is.
///
/// The loss of a row is policy - ent_coef * entropy + value: the clipped surrogate and half the
/// (clipped) squared error.
PpoLossParts ppo_loss_gradient(const MinibatchSlice& slice, const RolloutRows& rollout,
                               const PpoLossConfig& config, std::span<float> logits_gradient,
                               std::span<float> values_gradient);

}  // namespace cagepool
