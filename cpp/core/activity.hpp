#pragma once
// Activity of hosts as blue's monitoring reports it: the network events of a step, by green and
// red, become None, Scan or Exploit (docs/rules.md, section 7.2).

#include "core/game.hpp"

namespace cagepool {

/// Network events that one agent causes on one host in a step, as far as the activity depends on
/// them. A scan counts as its number of distinct ports: ports that occur twice never matter.
enum class HostEvents : std::uint8_t {
  kNone,
  kOne,           // one event
  kTwoOnOnePort,  // exploit of a decoy
  kBruteForce,    // ten or more on one port
  kReverseShell,
  kScan1,  // one listening port
  kScan2,
  kScan3,  // three or more
};
inline constexpr std::size_t kEventKinds = 8;

inline constexpr unsigned kActivityNone = 0;
inline constexpr unsigned kActivityScan = 1;
inline constexpr unsigned kActivityExploit = 3;

/// Activity of a host by green's events, red's events and whether blue placed a decoy there in this
/// step.
constexpr unsigned activity(HostEvents green, HostEvents red, bool decoy) {
  constexpr std::array<unsigned, kEventKinds> kCount{0, 1, 2, 10, 2, 1, 2, 3};
  constexpr std::array<unsigned, kEventKinds> kDistinct{0, 1, 1, 1, 2, 1, 2, 3};
  const auto g = static_cast<std::size_t>(green);
  const auto r = static_cast<std::size_t>(red);
  const unsigned events = kCount[g] + kCount[r];
  const bool shell = red == HostEvents::kReverseShell;
  // Green's scan covers all listening ports, so red adds no distinct port but that of the reverse
  // shell.
  const unsigned distinct = green == HostEvents::kNone ? kDistinct[r] : kDistinct[g] + shell;
  if (events == 0) return kActivityNone;
  if (distinct >= 3) return kActivityScan;
  if (shell) return kActivityExploit;
  if (events + decoy >= 3 && distinct == 1) return kActivityExploit;
  return decoy ? kActivityNone : kActivityScan;
}

using ActivityTable =
    std::array<std::array<std::array<Byte, 2>, kEventKinds>, kEventKinds>;  // [green][red][decoy]
constexpr ActivityTable make_activity_table() {
  ActivityTable table{};
  for (std::size_t green = 0; green < kEventKinds; ++green) {
    for (std::size_t red = 0; red < kEventKinds; ++red) {
      for (const bool decoy : {false, true}) {
        table[green][red][decoy] = static_cast<Byte>(
            activity(static_cast<HostEvents>(green), static_cast<HostEvents>(red), decoy));
      }
    }
  }
  return table;
}
inline constexpr ActivityTable kActivityTable = make_activity_table();

/// Events of a port scan.
inline HostEvents scan_events(Slot slot, std::size_t host) {
  const int ports =
      std::popcount(unsigned{listening_ports(slot, host)}) + kHostFacts[host].other_ports;
  return static_cast<HostEvents>(static_cast<int>(HostEvents::kScan1) - 1 + std::min(ports, 3));
}

/// Enter the activity of a host in blue's table; returns its bits in the observation.
inline std::uint64_t record_activity(Slot slot, int host, unsigned activity) {
  if (activity == kActivityExploit)
    set_compromised(slot, host, kUserAccess);  // Q11: also from privileged
  return std::uint64_t{activity} << (4 * host);
}

}  // namespace cagepool
