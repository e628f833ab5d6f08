#include "choose.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

namespace cagepool {
namespace {

// Sixteen numbers at a time, on any processor: the compiler splits them where it must.
constexpr std::size_t kLanes = 16;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using IntLanes = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));
using ByteLanes = std::uint8_t __attribute__((vector_size(kLanes)));

/// Lanes in memory, aligned as the widest registers like it: the compiler, which knows of none when
/// it makes the vectors that hold them, would not do so by itself.
struct alignas(kLanes * sizeof(float)) Block {
  Lanes lanes;
};

constexpr float kNever = -1e30F;  // logit of what may not be chosen

inline Lanes all(float value) { return Lanes{} + value; }

/// e to the power of x for x <= 0, with a relative error of about 1e-7; 0 below -87.
inline Lanes exp_lanes(Lanes x) {
  const Lanes low = all(-87.0F);
  const auto vanishes = x < low;
  x = vanishes ? low : x;
  // x = n ln 2 + r; the exponent of a float is n, and a polynomial gives e^r.
  const Lanes magic = all(12582912.0F);  // 1.5 * 2^23: adding it rounds to a whole number
  const Lanes rounded = x * std::numbers::log2e_v<float> + magic;
  const Lanes n = rounded - magic;
  // ln 2 in two parts, the first with few digits so that its product is exact.
  const Lanes r =
      (x - n * 0.693359375F) - n * -2.12194440e-4F;  // NOLINT(modernize-use-std-numbers)
  Lanes p = all(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const IntLanes exponent = (__builtin_convertvector(n, IntLanes) + 127) << 23;
  Lanes power;
  std::memcpy(&power, &exponent, sizeof power);
  return vanishes ? Lanes{} : p * power;
}

inline float sum_of(Lanes lanes) {
  std::array<float, kLanes> sums;
  std::memcpy(sums.data(), &lanes, sizeof lanes);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

/// The softmax of one row, in memory that is a whole number of lanes long.
class Softmax {
 public:
  explicit Softmax(std::size_t count)
      : count_(count), logits_((count + kLanes - 1) / kLanes), weights_(logits_.size()) {}

  /// `mask` may be null: everything is allowed.
  inline void read(const float* from, const std::uint8_t* mask) {
    const float highest = copy(from, mask);
    Lanes sums{};
    Lanes products{};  // what is not allowed is finite, so that its product with 0 is 0
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      const Lanes less = logits_[i].lanes - highest;
      const Lanes weight = exp_lanes(less);
      logits_[i].lanes = less;
      weights_[i].lanes = weight;
      sums += weight;
      products += weight * less;
    }
    sum_ = sum_of(sums);
    log_sum_ = std::log(sum_);
    entropy_ = log_sum_ - sum_of(products) / sum_;
  }

  /// The first choice at which the running sum of probabilities passes a number in [0, 1).
  inline std::size_t at(float uniform) const {
    const float target = uniform * sum_;
    float passed = 0;
    std::size_t last = 0;  // block with a weight
    for (std::size_t block = 0; block < weights_.size(); ++block) {
      const float sum = sum_of(weights_[block].lanes);
      if (passed + sum > target) return within(block, target - passed);
      passed += sum;
      if (sum != 0.0F) last = block;
    }
    return within(last, sum_);  // rounding has left a little of the sum out
  }

  inline float log_probability(std::size_t choice) const {
    return logits_[choice / kLanes].lanes[choice % kLanes] - log_sum_;
  }

  inline float entropy() const { return entropy_; }

  /// d/dlogits of slope * log_probability(choice) - weight * entropy.
  inline void gradient(std::size_t choice, float slope, float weight, float* out) const {
    const float share = 1.0F / sum_;
    const auto write = [&](std::size_t block, std::size_t lanes) {
      const Lanes p = weights_[block].lanes * share;
      const Lanes entropy_slope = (logits_[block].lanes - log_sum_ + entropy_) * weight;
      const Lanes slopes = p * (entropy_slope - slope);
      std::memcpy(&out[block * kLanes], &slopes, sizeof(float) * lanes);
    };
    const std::size_t whole = count_ / kLanes;
    for (std::size_t block = 0; block < whole; ++block) write(block, kLanes);
    if (whole < logits_.size()) write(whole, count_ % kLanes);
    out[choice] += slope;
  }

 private:
  /// Take a row of logits, and tell the highest that is allowed.
  inline float copy(const float* from, const std::uint8_t* mask) {
    Lanes most = all(kNever);
    const auto take = [&](std::size_t block, std::size_t lanes) {
      const std::size_t first = block * kLanes;
      Lanes logits = all(kNever);
      std::memcpy(&logits, &from[first], sizeof(float) * lanes);
      if (mask != nullptr) {
        ByteLanes allowed{};
        std::memcpy(&allowed, &mask[first], lanes);
        logits = __builtin_convertvector(allowed, IntLanes) != 0 ? logits : all(kNever);
      }
      logits_[block].lanes = logits;
      most = logits > most ? logits : most;
    };
    const std::size_t whole = count_ / kLanes;
    for (std::size_t block = 0; block < whole; ++block) take(block, kLanes);
    if (whole < logits_.size()) take(whole, count_ % kLanes);
    float highest = most[0];
    for (std::size_t i = 1; i < kLanes; ++i) highest = std::max(highest, most[i]);
    return highest;
  }

  /// The first choice of a block at which the running sum of its weights passes the target.
  inline std::size_t within(std::size_t block, float target) const {
    const Lanes weights = weights_[block].lanes;
    float passed = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (weights[i] == 0.0F) continue;
      passed += weights[i];
      last = i;
      if (passed > target) break;
    }
    return block * kLanes + last;
  }

  std::size_t count_;
  std::vector<Block> logits_;   // less the highest; beyond the last choice as if not allowed
  std::vector<Block> weights_;  // probabilities, but for the factor 1 / sum_
  float sum_ = 0;
  float log_sum_ = 0;
  float entropy_ = 0;
};

/// A row of masks, or null if there are none.
inline const std::uint8_t* mask_of(std::span<const std::uint8_t> masks, std::size_t row,
                                   std::size_t count) {
  return masks.empty() ? nullptr : &masks[row * count];
}

inline void draw_rows(const Choices& choices, std::span<const float> uniforms,
                      std::span<std::int64_t> chosen, std::span<float> log_probabilities) {
  Softmax softmax(choices.count);
  for (std::size_t row = 0; row < choices.rows(); ++row) {
    softmax.read(&choices.logits[row * choices.count], mask_of(choices.masks, row, choices.count));
    const std::size_t choice = softmax.at(uniforms[row]);
    chosen[row] = static_cast<std::int64_t>(choice);
    log_probabilities[row] = softmax.log_probability(choice);
  }
}

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
[[gnu::flatten, gnu::target("arch=x86-64-v4")]] void draw_rows_v4(
    const Choices& choices, std::span<const float> uniforms, std::span<std::int64_t> chosen,
    std::span<float> log_probabilities) {
  draw_rows(choices, uniforms, chosen, log_probabilities);
}
[[gnu::flatten, gnu::target("arch=x86-64-v3")]] void draw_rows_v3(
    const Choices& choices, std::span<const float> uniforms, std::span<std::int64_t> chosen,
    std::span<float> log_probabilities) {
  draw_rows(choices, uniforms, chosen, log_probabilities);
}
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

void draw(const Choices& choices, std::span<const float> uniforms, std::span<std::int64_t> chosen,
          std::span<float> log_probabilities) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4"))
    return draw_rows_v4(choices, uniforms, chosen, log_probabilities);
  if (__builtin_cpu_supports("x86-64-v3"))
    return draw_rows_v3(choices, uniforms, chosen, log_probabilities);
#endif
  draw_rows(choices, uniforms, chosen, log_probabilities);
}

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
