#pragma once
// Masked softmax of one row of logits: sampling, log-probability, entropy and gradient.

#include <cmath>
#include <span>
#include <vector>

#include "policy/simd.hpp"

namespace cagepool {

constexpr float kMaskedLogit = -1e30F;

/// Buffers are reused from row to row; they are padded to whole lanes with masked choices.
class Softmax {
 public:
  /// @param count Choices per row.
  explicit Softmax(std::size_t count)
      : count_(count), logits_((count + kLanes - 1) / kLanes), weights_(logits_.size()) {}

  /// Compute the softmax of a row. `mask` may be null: every choice is allowed.
  inline void compute(const float* logits, const std::uint8_t* mask) {
    const float highest = load(logits, mask);
    has_choice_ = highest > kMaskedLogit;
    Lanes sums{};
    Lanes products{};  // masked logits are finite, so that their product with weight 0 is 0
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      const Lanes shifted = logits_[i].lanes - highest;
      const Lanes weight = exp_lanes(shifted);
      logits_[i].lanes = shifted;
      weights_[i].lanes = weight;
      sums += weight;
      products += weight * shifted;
    }
    sum_ = sum_lanes(sums);
    log_sum_ = std::log(sum_);
    entropy_ = log_sum_ - sum_lanes(products) / sum_;
  }

  /// Inverse of the cumulative distribution: the choice for a uniform number in [0, 1).
  inline std::size_t sample(float uniform) const {
    const float target = uniform * sum_;
    float cumulative = 0;
    std::size_t last_block = 0;  // the last one with a weight
    for (std::size_t block = 0; block < weights_.size(); ++block) {
      const float sum = sum_lanes(weights_[block].lanes);
      if (cumulative + sum > target) return sample_in_block(block, target - cumulative);
      cumulative += sum;
      if (sum != 0.0F) last_block = block;
    }
    return sample_in_block(last_block, sum_);  // rounding made the sums fall short of the target
  }

  inline float log_probability(std::size_t choice) const {
    return logits_[choice / kLanes].lanes[choice % kLanes] - log_sum_;
  }

  inline float entropy() const { return entropy_; }

  /// Whether the row has a distribution: some choice is allowed and no allowed logit is NaN or
  /// positive infinity.
  inline bool is_valid() const { return has_choice_ && std::isfinite(sum_); }

  /// Write d/dlogits of slope * log_probability(choice) - entropy_weight * entropy.
  inline void write_gradient(std::size_t choice, float slope, float entropy_weight,
                             float* out) const {
    const float scale = 1.0F / sum_;
    const auto write = [&](std::size_t block, std::size_t lanes) {
      const Lanes p = weights_[block].lanes * scale;
      const Lanes entropy_slope = (logits_[block].lanes - log_sum_ + entropy_) * entropy_weight;
      const Lanes slopes = p * (entropy_slope - slope);
      std::memcpy(&out[block * kLanes], &slopes, sizeof(float) * lanes);
    };
    const std::size_t whole = count_ / kLanes;
    for (std::size_t block = 0; block < whole; ++block) write(block, kLanes);
    if (whole < logits_.size()) write(whole, count_ % kLanes);
    out[choice] += slope;
  }

 private:
  /// Copy a row of logits to the buffer; returns the highest that is allowed.
  inline float load(const float* logits, const std::uint8_t* mask) {
    Lanes most = all_lanes(kMaskedLogit);
    const auto load_block = [&](std::size_t block, std::size_t lanes) {
      const std::size_t first = block * kLanes;
      Lanes loaded = all_lanes(kMaskedLogit);
      std::memcpy(&loaded, &logits[first], sizeof(float) * lanes);
      if (mask != nullptr) {
        // A loop over arrays: the compiler converts vectors of bytes one by one.
        std::array<std::int32_t, kLanes> wide{};
        for (std::size_t i = 0; i < lanes; ++i) wide[i] = mask[first + i];
        IntLanes allowed;
        std::memcpy(&allowed, wide.data(), sizeof allowed);
        loaded = allowed != 0 ? loaded : all_lanes(kMaskedLogit);
      }
      logits_[block].lanes = loaded;
      most = loaded > most ? loaded : most;
    };
    const std::size_t whole = count_ / kLanes;
    for (std::size_t block = 0; block < whole; ++block) load_block(block, kLanes);
    if (whole < logits_.size()) load_block(whole, count_ % kLanes);
    return highest_lane(most);
  }

  /// The first choice of a block whose cumulative weight within the block exceeds the target.
  inline std::size_t sample_in_block(std::size_t block, float target) const {
    const Lanes weights = weights_[block].lanes;
    float cumulative = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (weights[i] == 0.0F) continue;
      cumulative += weights[i];
      last = i;
      if (cumulative > target) break;
    }
    return block * kLanes + last;
  }

  std::size_t count_;
  std::vector<Block> logits_;   // minus the highest
  std::vector<Block> weights_;  // probabilities times sum_
  bool has_choice_ = false;
  float sum_ = 0;
  float log_sum_ = 0;
  float entropy_ = 0;
};

/// Row of masks, or null if there are none.
inline const std::uint8_t* mask_row(std::span<const std::uint8_t> masks, std::size_t row,
                                    std::size_t count) {
  return masks.empty() ? nullptr : &masks[row * count];
}

}  // namespace cagepool
