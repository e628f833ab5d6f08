#pragma once
// Tables of a scenario that is data (docs/scenarios.md): what the rules ask about hosts and
// subnets. Python fills them from a scenario.

#include <span>
#include <type_traits>

#include "core/cage2.hpp"

namespace cagepool {

inline constexpr std::size_t kMaxHosts = 64;
inline constexpr std::size_t kMaxSubnets = 16;
inline constexpr std::size_t kBLinePositions = 15;

/// A set of hosts of such a scenario.
using WideMask = std::uint64_t;

/// Services of one host.
struct HostServices {
  Ports listening;   // genuine listening exploit ports
  Ports user_level;  // genuine services that yield a user account
  Ports privileged;  // genuine services that yield root or SYSTEM
  Ports resists;     // genuine services that yield no account
  Byte other_ports;  // distinct listening ports that no exploit uses, at most 3
  Byte entries;      // listening ports with repetitions, at most 3
  Byte subnet;
  Byte unused;
};

/// Members in order of use: a step of a game reads the first ones always, of the arrays one
/// element.
struct ScenarioTables {
  WideMask hosts;         // all hosts
  WideMask agents;        // hosts where blue can act
  WideMask monitored;     // hosts whose events are reported to blue
  WideMask open_hosts;    // hosts that red can always reach
  WideMask gated_hosts;   // hosts that red can reach with a session on a host of `gate`
  WideMask gate;          // hosts whose name contains "Enterprise"
  WideMask meander_op;    // hosts that RedMeanderAgent forgets first
  WideMask meander_ent;   // and next
  WideMask impact_host;   // Op_Server0, or 0
  WideMask b_line_users;  // hosts from which B_lineAgent draws its first target
  std::uint16_t open_nets;
  std::uint16_t gated_nets;
  std::uint16_t blue_kinds;  // bit `kind_bit` of each kind of action that blue has
  Byte host_count;
  Byte subnet_count;
  Byte entry;             // host of red's session 0
  Byte playable_reds;     // bit i: Red i can play
  Byte blue_after_red;    // 1: in a step, red acts before blue
  Byte blue_after_green;  // 1: green acts before blue
  Byte same_slots;        // 1: the slot of every host is its index
  std::array<Byte, 3> unused;
  std::array<std::int8_t, 8>
      green_hosts;  // Enterprise0 to 2, User0 to 4; -1: green has no such host
  WideMask windows;
  WideMask mail;        // hosts with a genuine mail service
  WideMask ot;          // hosts with the OTService
  WideMask reveals_ot;  // hosts whose escalation reveals the OTService
  WideMask initial_ip;  // addresses that red knows at the start
  std::uint64_t initial_nets;
  std::array<HostServices, kMaxHosts> services;
  /// Target of each position of B_lineAgent, by the user host that was drawn; 0 where
  /// the agent cannot get.
  std::array<std::array<std::int8_t, kBLinePositions + 1>, kMaxHosts> b_line_targets;
  std::array<WideMask, kMaxHosts> revealed_hosts;  // by the host that red escalates
  std::array<std::uint16_t, kMaxHosts> revealed_nets;
  std::array<std::int16_t, kMaxHosts> confidentiality_tenths;
  std::array<std::int16_t, kMaxHosts> availability_tenths;
  std::array<WideMask, kMaxSubnets> subnet_hosts;
  std::array<WideMask, kTypeCount> type_hosts;  // hosts by type of a workflow order
  std::array<Byte, kMaxHosts> slot_of_host;     // in observations and blue's actions
  std::array<Byte, kMaxHosts> host_of_slot;     // kNoHost: the scenario has no such host
  std::array<Byte, 16> hash;                    // first bytes of the scenario's hash
};
static_assert(std::is_trivially_copyable_v<ScenarioTables>);

/// Throw std::invalid_argument unless the rules can play by these tables without leaving them.
void check_tables(std::span<const ScenarioTables> scenarios);

}  // namespace cagepool
