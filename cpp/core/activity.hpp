#pragma once
// Activity of hosts that blue's monitoring sees (docs/rules.md, sections 4.2 and 7).

#include "core/game.hpp"

namespace cagepool {

/// Network events on one host within a step, as far as blue's table tells them apart (rules 7.2).
/// Ports that occur twice in a scan never decide anything, so a scan is known by its distinct
/// ports.
enum class Noise : std::uint8_t {
  kNone,
  kQuiet,       // one event
  kTrapped,     // two on one port
  kBruteForce,  // many on one port
  kReverseShell,
  kScan1,  // one listening port
  kScan2,
  kScan3,  // three or more
};
inline constexpr std::size_t kNoises = 8;

inline constexpr unsigned kActivityScan = 1;
inline constexpr unsigned kActivityExploit = 3;

/// Activity of a host by green's noise there, red's noise there, and whether blue placed a decoy
/// there in this step.
constexpr unsigned activity(Noise green, Noise red, bool decoy) {
  constexpr std::array<unsigned, kNoises> kCount{0, 1, 2, 10, 2, 1, 2, 3};
  constexpr std::array<unsigned, kNoises> kDistinct{0, 1, 1, 1, 2, 1, 2, 3};
  const auto g = static_cast<std::size_t>(green);
  const auto r = static_cast<std::size_t>(red);
  const unsigned events = kCount[g] + kCount[r];
  const bool shell = red == Noise::kReverseShell;
  // Whatever port red touches is one that listens, and so one that green has touched, but for the
  // reverse shell's own.
  const unsigned distinct = green == Noise::kNone ? kDistinct[r] : kDistinct[g] + shell;
  if (events == 0) return 0;
  if (distinct >= 3) return kActivityScan;
  if (shell) return kActivityExploit;
  if (events + decoy >= 3 && distinct == 1) return kActivityExploit;
  return decoy ? 0 : kActivityScan;
}

using ActivityTable =
    std::array<std::array<std::array<Byte, 2>, kNoises>, kNoises>;  // [green][red][decoy]
constexpr ActivityTable make_activities() {
  ActivityTable table{};
  for (std::size_t green = 0; green < kNoises; ++green) {
    for (std::size_t red = 0; red < kNoises; ++red) {
      for (const bool decoy : {false, true}) {
        table[green][red][decoy] =
            static_cast<Byte>(activity(static_cast<Noise>(green), static_cast<Noise>(red), decoy));
      }
    }
  }
  return table;
}
inline constexpr ActivityTable kActivities = make_activities();

inline Noise scan_noise(Slot slot, std::size_t host) {
  const int ports = std::popcount(unsigned{listening(slot, host)}) + kHostFacts[host].others;
  return static_cast<Noise>(static_cast<int>(Noise::kScan1) - 1 + std::min(ports, 3));
}

/// Enter a host's activity into blue's table; returns it at its place in the observation.
inline std::uint64_t notice(Slot slot, int host, unsigned shown) {
  if (shown == kActivityExploit)
    set_compromised(slot, host, kUserAccess);  // Q11: also from privileged
  return std::uint64_t{shown} << (4 * host);
}

}  // namespace cagepool
