#include "choose.hpp"

#include <algorithm>
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

/// Lanes in a row of floats, wherever it lies.
using LanesInRow =
    float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

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
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

/// The softmax of one row, in memory that is a whole number of lanes long.
class Softmax {
 public:
  explicit Softmax(std::size_t count)
      : count_(count),
        blocks_((count + kLanes - 1) / kLanes),
        logits_(blocks_ * kLanes, kNever),
        weights_(blocks_ * kLanes) {}

  /// `mask` may be null: everything is allowed.
  inline void read(const float* from, const std::uint8_t* mask) {
    if (mask == nullptr) {
      std::copy_n(from, count_, logits_.data());
    } else {
      for (std::size_t i = 0; i < count_; ++i) logits_[i] = mask[i] != 0 ? from[i] : kNever;
    }
    std::fill(logits_.begin() + static_cast<std::ptrdiff_t>(count_), logits_.end(), kNever);
    LanesInRow* const logits = blocks(logits_);
    LanesInRow* const weights = blocks(weights_);
    const float highest = highest_logit();
    Lanes sums{};
    Lanes products{};  // what is not allowed is finite, so that its product with 0 is 0
    for (std::size_t i = 0; i < blocks_; ++i) {
      const Lanes less = logits[i] - highest;
      const Lanes weight = exp_lanes(less);
      logits[i] = less;
      weights[i] = weight;
      sums += weight;
      products += weight * less;
    }
    sum_ = sum_of(sums);
    log_sum_ = std::log(sum_);
    entropy_ = log_sum_ - sum_of(products) / sum_;
  }

  /// The first choice at which the running sum of probabilities passes a number in [0, 1).
  inline std::size_t at(float uniform) {
    const LanesInRow* const weights = blocks(weights_);
    const float target = uniform * sum_;
    float passed = 0;
    std::size_t last = 0;  // block with a weight
    for (std::size_t block = 0; block < blocks_; ++block) {
      const float sum = sum_of(weights[block]);
      if (passed + sum > target) return within(block, target - passed);
      passed += sum;
      if (sum != 0.0F) last = block;
    }
    return within(last, sum_);  // rounding has left a little of the sum out
  }

  inline float log_probability(std::size_t choice) const { return logits_[choice] - log_sum_; }

  inline float entropy() const { return entropy_; }

  /// d/dlogits of slope * log_probability(choice) - weight * entropy; the last use of the row.
  inline void gradient(std::size_t choice, float slope, float weight, float* out) {
    const LanesInRow* const logits = blocks(logits_);
    LanesInRow* const weights = blocks(weights_);
    const float share = 1.0F / sum_;
    for (std::size_t i = 0; i < blocks_; ++i) {
      const Lanes p = weights[i] * share;
      const Lanes entropy_slope = (logits[i] - log_sum_ + entropy_) * weight;
      weights[i] = p * (entropy_slope - slope);
    }
    std::copy_n(weights_.data(), count_, out);
    out[choice] += slope;
  }

 private:
  static inline LanesInRow* blocks(std::vector<float>& row) {
    return reinterpret_cast<LanesInRow*>(row.data());
  }

  /// The first choice of a block at which the running sum of its weights passes the target.
  inline std::size_t within(std::size_t block, float target) const {
    float passed = 0;
    std::size_t last = block * kLanes;
    for (std::size_t i = block * kLanes; i < (block + 1) * kLanes; ++i) {
      if (weights_[i] == 0.0F) continue;
      passed += weights_[i];
      last = i;
      if (passed > target) break;
    }
    return last;
  }

  inline float highest_logit() {
    const LanesInRow* const logits = blocks(logits_);
    Lanes most = logits[0];
    for (std::size_t i = 1; i < blocks_; ++i) most = logits[i] > most ? logits[i] : most;
    float highest = most[0];
    for (std::size_t i = 1; i < kLanes; ++i) highest = std::max(highest, most[i]);
    return highest;
  }

  std::size_t count_;
  std::size_t blocks_;
  std::vector<float> logits_;   // less the highest
  std::vector<float> weights_;  // probabilities, but for the factor 1 / sum_
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
