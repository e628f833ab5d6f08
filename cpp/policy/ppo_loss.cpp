#include "policy/ppo_loss.hpp"

#include <algorithm>
#include <cmath>

#include "policy/softmax.hpp"

namespace cagepool {
namespace {

/// Half the squared error of a value, and its derivative. With a clip, the larger of the losses of
/// the value and of the value moved by at most `clip` from the old one.
struct ValueLoss {
  float loss;
  float slope;

  ValueLoss(float value, float old_value, float target, float clip) {
    const float error = value - target;
    loss = error * error / 2;
    slope = error;
    if (clip <= 0) return;
    const float change = std::clamp(value - old_value, -clip, clip);
    const float clipped_error = old_value + change - target;
    if (clipped_error * clipped_error / 2 <= loss) return;
    loss = clipped_error * clipped_error / 2;
    slope = change == value - old_value ? clipped_error : 0;
  }
};

inline PpoLossParts write_gradients(const MinibatchSlice& slice, const RolloutRows& rollout,
                                    const PpoLossConfig& config, std::span<float> logits_gradient,
                                    std::span<float> values_gradient) {
  const std::size_t choices = slice.choices;
  Softmax softmax(choices);
  PpoLossParts sums;
  const auto rows = static_cast<float>(slice.minibatch_size);
  for (std::size_t i = 0; i < slice.rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(slice.rows[i]);
    softmax.compute(&slice.logits[i * slice.stride], mask_row(rollout.masks, row, choices));
    const auto choice = static_cast<std::size_t>(slice.chosen[i]);
    const float log_ratio = softmax.log_probability(choice) - rollout.log_probabilities[row];
    const float ratio = std::exp(log_ratio);
    const float advantage = rollout.advantages[row];
    const float clipped = std::clamp(ratio, 1 - config.clip_range, 1 + config.clip_range);
    const bool is_unclipped = ratio * advantage <= clipped * advantage;
    sums.policy -= is_unclipped ? ratio * advantage : clipped * advantage;
    sums.entropy += softmax.entropy();
    sums.kl += ratio - 1 - log_ratio;
    sums.clipped += ratio != clipped;
    softmax.write_gradient(choice, is_unclipped ? -ratio * advantage / rows : 0,
                           config.ent_coef / rows, &logits_gradient[i * slice.stride]);
    const ValueLoss value(slice.values[i], rollout.values[row], rollout.returns[row],
                          config.clip_range_vf);
    sums.value += value.loss;
    values_gradient[i] = value.slope / rows;
  }
  for (double* sum : {&sums.policy, &sums.value, &sums.entropy, &sums.kl, &sums.clipped})
    *sum /= rows;
  return sums;
}

}  // namespace

PpoLossParts ppo_loss_gradient(const MinibatchSlice& slice, const RolloutRows& rollout,
                               const PpoLossConfig& config, std::span<float> logits_gradient,
                               std::span<float> values_gradient) {
  PpoLossParts parts;
  if (slice.rows.empty()) return parts;
  run_simd([&]<class Level>() {
    parts = write_gradients(slice, rollout, config, logits_gradient, values_gradient);
  });
  return parts;
}

}  // namespace cagepool
