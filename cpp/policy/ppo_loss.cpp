#include "policy/ppo_loss.hpp"

#include <algorithm>
#include <cmath>

#include "policy/softmax.hpp"

namespace cagepool {
namespace {

/// Half the squared error of a value, and its slope; the worse of moving freely and moving by at
/// most `clip` from the old value, if there is a clip.
struct ValueLoss {
  float loss;
  float slope;

  ValueLoss(float value, float old, float target, float clip) {
    const float error = value - target;
    loss = error * error / 2;
    slope = error;
    if (clip <= 0) return;
    const float moved = std::clamp(value - old, -clip, clip);
    const float clipped_error = old + moved - target;
    if (clipped_error * clipped_error / 2 <= loss) return;
    loss = clipped_error * clipped_error / 2;
    slope = moved == value - old ? clipped_error : 0;
  }
};

inline LossParts gradient_rows(const Share& share, const Collected& collected, const LossRule& rule,
                               std::span<float> logits_gradient, std::span<float> values_gradient) {
  const std::size_t count = share.logits.size() / share.rows.size();
  Softmax softmax(count);
  LossParts sums;
  const auto rows = static_cast<float>(share.minibatch);
  for (std::size_t i = 0; i < share.rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(share.rows[i]);
    softmax.read(&share.logits[i * count], mask_of(collected.masks, row, count));
    const auto choice = static_cast<std::size_t>(collected.chosen[row]);
    const float change = softmax.log_probability(choice) - collected.log_probabilities[row];
    const float ratio = std::exp(change);
    const float advantage = collected.advantages[row];
    const float clipped = std::clamp(ratio, 1 - rule.clip, 1 + rule.clip);
    const bool is_free = ratio * advantage <= clipped * advantage;
    sums.policy -= is_free ? ratio * advantage : clipped * advantage;
    sums.entropy += softmax.entropy();
    sums.kl += ratio - 1 - change;
    sums.clipped += ratio != clipped;
    softmax.gradient(choice, is_free ? -ratio * advantage / rows : 0, rule.entropy / rows,
                     &logits_gradient[i * count]);
    const ValueLoss value(share.values[i], collected.values[row], collected.returns[row],
                          rule.value_clip);
    sums.value += value.loss;
    values_gradient[i] = value.slope / rows;
  }
  for (double* sum : {&sums.policy, &sums.value, &sums.entropy, &sums.kl, &sums.clipped})
    *sum /= rows;
  return sums;
}

#if defined(__x86_64__)
// One copy for each kind of processor; all round alike.
[[gnu::flatten, gnu::target("arch=x86-64-v4")]] LossParts gradient_rows_v4(
    const Share& share, const Collected& collected, const LossRule& rule,
    std::span<float> logits_gradient, std::span<float> values_gradient) {
  return gradient_rows(share, collected, rule, logits_gradient, values_gradient);
}
[[gnu::flatten, gnu::target("arch=x86-64-v3")]] LossParts gradient_rows_v3(
    const Share& share, const Collected& collected, const LossRule& rule,
    std::span<float> logits_gradient, std::span<float> values_gradient) {
  return gradient_rows(share, collected, rule, logits_gradient, values_gradient);
}
#endif

}  // namespace

LossParts loss_gradient(const Share& share, const Collected& collected, const LossRule& rule,
                        std::span<float> logits_gradient, std::span<float> values_gradient) {
  if (share.rows.empty()) return {};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4"))
    return gradient_rows_v4(share, collected, rule, logits_gradient, values_gradient);
  if (__builtin_cpu_supports("x86-64-v3"))
    return gradient_rows_v3(share, collected, rule, logits_gradient, values_gradient);
#endif
  return gradient_rows(share, collected, rule, logits_gradient, values_gradient);
}

}  // namespace cagepool
