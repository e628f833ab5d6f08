#pragma once
// The softmax of one row of logits.

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "policy/simd.hpp"

namespace cagepool {

constexpr float kNever = -1e30F;  // logit of what may not be chosen

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

}  // namespace cagepool
