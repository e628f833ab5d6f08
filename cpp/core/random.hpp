#pragma once
// One counter-based random stream per game and episode, and the seam through which every draw of
// docs/rules.md, section 12, passes: `Draws` makes them, `FedDraws` (trace.cpp) takes them from a
// recording.

#include <bit>
#include <cstdint>

#include "core/scenario.hpp"

namespace cagepool {

/// The finaliser of SplitMix64: a bijection whose outputs on a counter pass the usual batteries.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

/// Key of the stream of one episode. Game i of a batch that was seeded with s has seed s + i, as in
/// Gymnasium.
constexpr std::uint64_t episode_key(std::uint64_t seed, std::uint32_t episode) {
  return mix(mix(seed + kGolden) + kGolden * (episode + 1u));
}

/// Word `lane` of step `step`; lane 3 of step 0 belongs to the reset.
constexpr std::uint64_t random_word(std::uint64_t key, std::uint32_t step, std::uint32_t lane) {
  return mix(key + kGolden * (4u * step + lane + 1u));
}

/// A number below `count`; biased by less than count / 2^32.
constexpr std::uint32_t below(std::uint32_t random, std::uint32_t count) {
  return static_cast<std::uint32_t>((std::uint64_t{random} * count) >> 32);
}

/// Index of the set bit of `mask` that has `rank` set bits below it. By halves and without a
/// branch: a loop over the bits would end where no processor can guess.
inline int select_bit(std::uint32_t mask, std::uint32_t rank) {
  std::uint32_t base = 0;
  for (const std::uint32_t half : {8u, 4u, 2u, 1u}) {
    const std::uint32_t low = (mask >> base) & ((1u << half) - 1);
    const auto below_half = static_cast<std::uint32_t>(std::popcount(low));
    const std::uint32_t is_above = rank >= below_half;
    rank -= is_above * below_half;
    base += is_above * half;
  }
  return static_cast<int>(base);
}

class Draws {
 public:
  Draws(std::uint64_t key, std::uint32_t step) : key_(key), step_(step) {}

  /// G1, G2: the host that green scans, or -1.
  int green() const {
    const std::uint64_t word = random_word(key_, step_, 2);
    return word >> 63 ? -1 : kGreenHosts[word & 7u];
  }
  /// B1, M1, M2, M3: one of the candidates.
  int target(Mask candidates) const {
    const auto count = static_cast<std::uint32_t>(std::popcount(candidates));
    return select_bit(candidates,
                      below(static_cast<std::uint32_t>(random_word(key_, step_, 0) >> 32), count));
  }
  /// E1, E2: the rank of the exploit chosen among the options; a single one is no choice.
  int exploit(Ports options) const {
    const auto random = static_cast<std::uint32_t>(random_word(key_, step_, 0));
    const bool single = (options & (options - 1)) == 0;
    if (single || random < kTopShare) return std::bit_width(unsigned{options}) - 1;
    const auto others = static_cast<std::uint32_t>(std::popcount(unsigned{options}) - 1);
    return select_bit(options, below((random - kTopShare) << 2, others));
  }
  /// E3: whether blue's monitoring notices a reverse shell.
  bool detected() const {
    return static_cast<std::uint32_t>(random_word(key_, step_, 1)) < kDetectedShare;
  }
  /// P1: which of a host's sessions is escalated.
  int session(int count) const {
    return static_cast<int>(below(static_cast<std::uint32_t>(random_word(key_, step_, 1) >> 32),
                                  static_cast<std::uint32_t>(count)));
  }

 private:
  static constexpr std::uint32_t kTopShare = 3u << 30;          // 0.75
  static constexpr std::uint32_t kDetectedShare = 4080218931u;  // 0.95 * 2^32, rounded
  std::uint64_t key_;
  std::uint32_t step_;
};

}  // namespace cagepool
