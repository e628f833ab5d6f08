#pragma once
// Counter-based random numbers (SplitMix64), one stream per game and episode. `RandomDraws` makes
// every draw of docs/rules.md, section 12; `RecordedDraws` (trace.cpp) has the same methods and
// takes the draws from a recorded game.

#include <bit>
#include <cstdint>

#include "core/cage2.hpp"

namespace cagepool {

/// Finalizer of SplitMix64: a bijection. Its outputs on a counter pass the common test batteries.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15u;  // increment of SplitMix64

/// Key of the random stream of one episode. Game i of a batch with seed s has seed s + i, as in
/// Gymnasium.
constexpr std::uint64_t episode_key(std::uint64_t seed, std::uint32_t episode) {
  return mix_bits(mix_bits(seed + kGoldenRatio) + kGoldenRatio * (episode + 1u));
}

/// Word `lane` of step `step`; lane 3 of step 0 is used by the reset.
constexpr std::uint64_t random_word(std::uint64_t key, std::uint32_t step, std::uint32_t lane) {
  return mix_bits(key + kGoldenRatio * (4u * step + lane + 1u));
}

/// A uniform number below `count`, biased by less than count / 2^32.
constexpr std::uint32_t uniform_below(std::uint32_t random, std::uint32_t count) {
  return static_cast<std::uint32_t>((std::uint64_t{random} * count) >> 32);
}

/// Index of the set bit of `mask` that has `rank` set bits below it. Binary search without a
/// branch: the end of a loop over the bits would be mispredicted.
template <class Set>
inline int select_bit(Set mask, std::uint32_t rank) {
  std::uint32_t base = 0;
#pragma GCC unroll 6
  for (std::uint32_t half = 4 * sizeof(Set); half != 0; half /= 2) {
    const Set low = static_cast<Set>(mask >> base) & static_cast<Set>((Set{1} << half) - 1u);
    const auto count = static_cast<std::uint32_t>(std::popcount(static_cast<Set>(low)));
    const std::uint32_t is_above = rank >= count;
    rank -= is_above * count;
    base += is_above * half;
  }
  return static_cast<int>(base);
}

/// Shares of 2^32: red's exploit of highest weight, and detection of a reverse shell.
inline constexpr std::uint32_t kTopShare = 3u << 30;          // 0.75
inline constexpr std::uint32_t kDetectedShare = 4080218931u;  // 0.95 * 2^32, rounded

/// The draws of one step. Ids such as G1 refer to docs/rules.md, section 12.
class RandomDraws {
 public:
  RandomDraws(std::uint64_t key, std::uint32_t step) : key_(key), step_(step) {}

  /// G1, G2: host that green scans, or -1.
  template <class Scenario>
  int green_host(const Scenario& scenario) const {
    const std::uint64_t word = random_word(key_, step_, 2);
    return word >> 63 ? -1 : scenario.green_host(word & 7u);
  }
  /// D1: index of the decoy that Misinform places among `choices`.
  int misinform_decoy(std::uint8_t choices) const {
    const auto random = static_cast<std::uint32_t>(random_word(key_, step_, 2) >> 8);
    const auto count = static_cast<std::uint32_t>(std::popcount(choices));
    return select_bit(choices, uniform_below(random, count));
  }
  /// B1, M1, M2, M3: target of red among the candidates.
  template <class HostMask>
  int red_target(HostMask candidates) const {
    const auto count = static_cast<std::uint32_t>(std::popcount(candidates));
    const auto random = static_cast<std::uint32_t>(random_word(key_, step_, 0) >> 32);
    return select_bit(candidates, uniform_below(random, count));
  }
  /// E1, E2: rank of the exploit among the options. With a single option there is no draw.
  int exploit_rank(Ports options) const {
    const auto random = static_cast<std::uint32_t>(random_word(key_, step_, 0));
    const bool single = (options & (options - 1)) == 0;
    if (single || random < kTopShare) return std::bit_width(unsigned{options}) - 1;
    const auto others = static_cast<std::uint32_t>(std::popcount(unsigned{options}) - 1);
    return select_bit(std::uint8_t{options}, uniform_below((random - kTopShare) << 2, others));
  }
  /// E3: whether blue's monitoring detects a reverse shell.
  bool is_detected() const {
    return static_cast<std::uint32_t>(random_word(key_, step_, 1)) < kDetectedShare;
  }
  /// P1: index of the session, among `count` on the host, that is escalated.
  int escalated_session(int count) const {
    const auto random = static_cast<std::uint32_t>(random_word(key_, step_, 1) >> 32);
    return static_cast<int>(uniform_below(random, static_cast<std::uint32_t>(count)));
  }

 private:
  std::uint64_t key_;
  std::uint32_t step_;
};

}  // namespace cagepool
