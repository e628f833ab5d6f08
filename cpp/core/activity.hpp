#pragma once
// Activity of hosts as blue's monitoring reports it: the connections of a step, by green and
// red, become None, Scan or Exploit (docs/rules.md, section 7.2).

#include "core/scenarios.hpp"

namespace cagepool {

/// Scenario events that one agent causes on one host in a step, as far as the activity depends on
/// them. A scan counts as its number of distinct ports; ports that occur twice matter only if there
/// is no other.
enum class HostEvents : std::uint8_t {
  kNone,
  kOne,           // one event
  kTwoOnOnePort,  // exploit of a decoy
  kBruteForce,    // ten or more on one port
  kReverseShell,
  kScan1,  // one listening port
  kScan2,
  kScan3,       // three or more
  kScan1Twice,  // one listening port, two entries
  kScan1Often,  // one listening port, three or more entries
};
inline constexpr std::size_t kEventKinds = 10;

inline constexpr unsigned kActivityNone = 0;
inline constexpr unsigned kActivityScan = 1;
inline constexpr unsigned kActivityExploit = 3;

/// Activity of a host by green's events, red's events and whether blue placed a decoy there in this
/// step.
///
/// @param new_port Red's exploit used a port that was not open when green scanned the host: blue
///     opened it in between.
constexpr unsigned activity(HostEvents green, HostEvents red, bool decoy, bool new_port = false) {
  constexpr std::array<unsigned, kEventKinds> kCount{0, 1, 2, 10, 2, 1, 2, 3, 2, 3};
  constexpr std::array<unsigned, kEventKinds> kDistinct{0, 1, 1, 1, 2, 1, 2, 3, 1, 1};
  const auto g = static_cast<std::size_t>(green);
  const auto r = static_cast<std::size_t>(red);
  const unsigned events = kCount[g] + kCount[r];
  const bool shell = red == HostEvents::kReverseShell;
  // A scan covers all listening ports, so red adds no distinct port to green's but that of the
  // reverse shell; of two scans, the later one may find a decoy more.
  const unsigned distinct = green == HostEvents::kNone  ? kDistinct[r]
                            : red >= HostEvents::kScan1 ? std::max(kDistinct[g], kDistinct[r])
                                                        : kDistinct[g] + shell + new_port;
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
template <class Scenario>
inline HostEvents scan_events(BasicSlot<Scenario> slot, std::size_t host) {
  const Scenario scenario = slot.scenario();
  const int ports =
      std::popcount(unsigned{listening_ports(slot, host)}) + scenario.other_ports(host);
  if constexpr (Scenario::kIsTable) {
    if (ports == 0) return HostEvents::kNone;
    const int entries = scenario.port_entries(host, slot.true_state().decoys[host]);
    if (ports == 1 && entries > 1)
      return entries == 2 ? HostEvents::kScan1Twice : HostEvents::kScan1Often;
  }
  return static_cast<HostEvents>(static_cast<int>(HostEvents::kScan1) - 1 + std::min(ports, 3));
}

/// Enter the activity of a host in blue's table and in the observation.
template <class Scenario>
inline void record_activity(BasicSlot<Scenario> slot, int host, unsigned activity,
                            typename Scenario::Table& activities) {
  if (activity == kActivityExploit)
    set_compromised(slot, host, kUserAccess);  // Q11: also from privileged
  table_word(activities, host) |= std::uint64_t{activity} << nibble_shift(activities, host);
}

}  // namespace cagepool
