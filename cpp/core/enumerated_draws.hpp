#pragma once
// Enumerates the draws of a step: `EnumeratedDraws` has the methods of RandomDraws and takes one
// course of the step after the other, each with its probability.

#include <array>
#include <bit>

#include "core/scenarios.hpp"

namespace cagepool {

/// All courses of a step that may give an observation. The probabilities are those of
/// docs/rules.md, section 12. A step is played once per course:
///
///     EnumeratedDraws draws(active, decoy_host);
///     do { play_step(copy of the game, ..., draws, ...); } while (draws.next_course());
///
/// Monitoring reports activity on two hosts at most, that of green's scan and red's target, and a
/// scan by green shows unless a decoy that was placed in the same step hides it. So activity
/// elsewhere rules out a choice, and courses with such choices are left out; those that remain may
/// still give another observation.
class EnumeratedDraws {
 public:
  /// @param active Hosts with activity in the observation.
  /// @param decoy_host Host on which blue's action places a decoy, as a bit, or 0.
  EnumeratedDraws(Mask active, Mask decoy_host) : active_(active), decoy_host_(decoy_host) {}

  /// Probability of the course, given the state before the step; 0 if it cannot give the
  /// observation.
  double probability() const { return probability_; }

  /// Go on to the next course; false if there is none.
  bool next_course() {
    probability_ = 1.0;
    unexplained_ = active_;
    depth_ = 0;
    while (length_ != 0) {
      Mask& left = choices_[length_ - 1];
      left = static_cast<Mask>(left & (left - 1u));
      if (left != 0) return true;
      --length_;
    }
    return false;
  }

  int green_host(const CompiledScenario& /*scenario*/) const {
    constexpr Mask kAsleep = 1u << 15;
    constexpr Mask kGreenTargets = kEnterpriseServers | kUserTargets | bit(kUser0);
    const int host = choose((kGreenTargets & (active_ | decoy_host_)) | kAsleep);
    if (bit(host) == kAsleep) {
      probability_ *= 0.5;
      return -1;
    }
    probability_ *= 0.5 / kGreenHosts.size();
    unexplained_ = static_cast<Mask>(unexplained_ & ~bit(host));
    return host;
  }
  int red_target(Mask candidates) const {
    probability_ *= 1.0 / std::popcount(candidates);
    const auto matching = static_cast<Mask>(candidates & unexplained_);
    if (unexplained_ == 0) return choose(candidates);
    if (matching != 0) return choose(matching);
    probability_ = 0.0;
    return std::countr_zero(candidates);
  }
  int exploit_rank(Ports options) const {
    const int top = std::bit_width(unsigned{options}) - 1;
    const int others = std::popcount(unsigned{options}) - 1;
    if (others == 0) return top;
    const int rank = choose(options);
    probability_ *= rank == top ? 0.75 : 0.25 / others;
    return rank;
  }
  bool is_detected() const {
    const bool detected = choose(0b11) != 0;
    probability_ *= detected ? 0.95 : 0.05;
    return detected;
  }
  int escalated_session(int count) const {
    probability_ *= 1.0 / count;
    return choose(static_cast<Mask>((1u << count) - 1));
  }

 private:
  static constexpr std::size_t kMaxDraws = 4;  // green, target, exploit, detection

  /// The choice of this course among `options`, a non-empty set.
  int choose(unsigned options) const {
    if (depth_ == length_) choices_[length_++] = static_cast<Mask>(options);
    return std::countr_zero(choices_[depth_++]);
  }

  Mask active_;
  Mask decoy_host_;
  // The rules take a draw source as const, since drawing changes no game.
  mutable Mask unexplained_ = active_;  // active hosts that green did not scan
  mutable double probability_ = 1.0;
  // Choices of the course: the lowest bit is the choice, the others are still to come.
  mutable std::array<Mask, kMaxDraws> choices_{};
  mutable std::size_t length_ = 0;
  mutable std::size_t depth_ = 0;
};

}  // namespace cagepool
