#pragma once
// Blue's 145 actions (docs/rules.md, section 2) and red's 44, decoded by table.

#include <array>

#include "scenario.hpp"

namespace cagepool {

inline constexpr int kActions = 145;

enum class BlueKind : std::uint8_t { kSleep, kMonitor, kAnalyse, kRemove, kDecoy, kRestore };

struct BlueAction {
  BlueKind kind = BlueKind::kSleep;
  std::uint8_t host = 0;
  std::uint8_t decoy = 0;  // decoy id of rules 1.5
  Ports places = 0;        // the decoy's bit; 0 where this host can never take it
  Ports needs = 0;         // the port that must be free of decoys
  std::uint8_t cost = 0;   // tenths
  Success otherwise{};     // success value unless a decoy is placed
  Mask analysed = 0;       // the host, for each kind of action
  Mask removed = 0;
  Mask restored = 0;
};

constexpr std::array<BlueAction, kActions> make_blue_actions() {
  std::array<BlueAction, kActions> table{};
  table[0] = {BlueKind::kSleep, 0, 0, 0, 0, 0, Success::kUnknown, 0, 0, 0};
  table[1] = {BlueKind::kMonitor, 0, 0, 0, 0, 0, Success::kTrue, 0, 0, 0};
  for (int k = 0; k < 11; ++k) {
    for (int host = 0; host < kHosts; ++host) {
      BlueAction action{};
      action.host = static_cast<std::uint8_t>(host);
      action.otherwise = Success::kTrue;
      if (k == 0) {
        action.kind = BlueKind::kAnalyse;
        action.analysed = bit(host);
      } else if (k == 1) {
        action.kind = BlueKind::kRemove;
        action.removed = bit(host);
      } else if (k == 10) {
        action.kind = BlueKind::kRestore;
        action.restored = bit(host);
        action.cost = kRestoreTenths;
      } else {
        const auto decoy = static_cast<std::uint8_t>(k - 2);
        const bool windows_only = decoy == 1 || decoy == 3 || decoy == 5;
        const bool linux_only = decoy == 2 || decoy == 7;
        const HostFacts& facts = kHostFacts[static_cast<std::size_t>(host)];
        const bool possible = (facts.listening & kPortOfDecoy[decoy]) == 0 && !(windows_only && !facts.windows) &&
                              !(linux_only && facts.windows);
        action.kind = BlueKind::kDecoy;
        action.decoy = decoy;
        action.places = possible ? kBitOfDecoy[decoy] : Ports{0};
        action.needs = kPortOfDecoy[decoy];
        action.otherwise = Success::kFalse;
      }
      table[static_cast<std::size_t>(2 + kHosts * k + host)] = action;
    }
  }
  return table;
}
inline constexpr std::array<BlueAction, kActions> kBlueActions = make_blue_actions();

struct RedAction {
  RedKind kind = RedKind::kSleep;
  std::int8_t target = -1;  // host; subnet for a sweep
};

/// Actions of a red that is played from outside: sleep, 3 sweeps, 13 scans, 13 exploits, 13 escalations, impact.
inline constexpr int kRedActions = 1 + kSubnets + 3 * kHosts + 1;

constexpr std::array<RedAction, kRedActions> make_red_actions() {
  std::array<RedAction, kRedActions> table{};
  std::size_t next = 1;
  for (int net = 0; net < kSubnets; ++net) table[next++] = {RedKind::kSweep, static_cast<std::int8_t>(net)};
  for (const RedKind kind : {RedKind::kScan, RedKind::kExploit, RedKind::kEscalate}) {
    for (int host = 0; host < kHosts; ++host) table[next++] = {kind, static_cast<std::int8_t>(host)};
  }
  table[next] = {RedKind::kImpact, kOpServer0};
  return table;
}
inline constexpr std::array<RedAction, kRedActions> kRedActionTable = make_red_actions();

}  // namespace cagepool
