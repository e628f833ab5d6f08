#pragma once
// Blue's 145 actions (docs/rules.md, section 2) and red's 44, decoded by table.

#include <array>

#include "core/scenario.hpp"

namespace cagepool {

inline constexpr int kActions = 145;

enum class BlueKind : std::uint8_t { kSleep, kMonitor, kAnalyse, kRemove, kDecoy, kRestore };

struct BlueAction {
  BlueKind kind = BlueKind::kSleep;
  Byte host = 0;
  Byte places = 0;      // the decoy's bit; 0 where this host can never take it
  Ports needs = 0;      // the port that no decoy may have opened
  Byte cost = 0;        // tenths
  Success otherwise{};  // success value, unless a decoy is placed
  Mask analysed = 0;    // the host, if the action is of that kind
  Mask removed = 0;
  Mask restored = 0;
  Byte decoy = 0;  // decoy id of rules 1.5
};

constexpr BlueAction make_decoy(int decoy, int host) {
  const HostFacts& facts = kHostFacts[static_cast<std::size_t>(host)];
  const Ports needs = kNeededByDecoy[static_cast<std::size_t>(decoy)];
  const bool windows_only = decoy == 1 || decoy == 3 || decoy == 5;
  const bool linux_only = decoy == 2 || decoy == 7;
  const bool possible =
      (facts.listening & needs) == 0 && (facts.windows ? !linux_only : !windows_only);
  return {.kind = BlueKind::kDecoy,
          .host = static_cast<Byte>(host),
          .places = static_cast<Byte>(possible ? bit(decoy) : 0),
          .needs = needs,
          .otherwise = Success::kFalse,
          .decoy = static_cast<Byte>(decoy)};
}

constexpr std::array<BlueAction, kActions> make_blue_actions() {
  std::array<BlueAction, kActions> table{};
  table[0] = {.kind = BlueKind::kSleep, .otherwise = Success::kUnknown};
  table[1] = {.kind = BlueKind::kMonitor, .otherwise = Success::kTrue};
  std::size_t next = 2;
  const auto add_all = [&table, &next](auto make) {
    for (int host = 0; host < kHosts; ++host) table[next++] = make(host);
  };
  add_all([](int host) -> BlueAction {
    return {.kind = BlueKind::kAnalyse,
            .host = static_cast<Byte>(host),
            .otherwise = Success::kTrue,
            .analysed = bit(host)};
  });
  add_all([](int host) -> BlueAction {
    return {.kind = BlueKind::kRemove,
            .host = static_cast<Byte>(host),
            .otherwise = Success::kTrue,
            .removed = bit(host)};
  });
  for (int decoy = 0; decoy < kDecoys; ++decoy) {
    add_all([decoy](int host) { return make_decoy(decoy, host); });
  }
  add_all([](int host) -> BlueAction {
    return {.kind = BlueKind::kRestore,
            .host = static_cast<Byte>(host),
            .cost = kRestoreTenths,
            .otherwise = Success::kTrue,
            .restored = bit(host)};
  });
  return table;
}
inline constexpr std::array<BlueAction, kActions> kBlueActions = make_blue_actions();

struct RedAction {
  RedKind kind = RedKind::kSleep;
  std::int8_t target = -1;  // host; subnet for a sweep
};

/// Actions of a red that is played from outside: sleep, 3 sweeps, 13 scans, 13 exploits, 13
/// escalations, impact.
inline constexpr int kRedActions = 1 + kSubnets + 3 * kHosts + 1;

constexpr std::array<RedAction, kRedActions> make_red_actions() {
  std::array<RedAction, kRedActions> table{};
  std::size_t next = 1;
  for (int net = 0; net < kSubnets; ++net)
    table[next++] = {RedKind::kSweep, static_cast<std::int8_t>(net)};
  for (const RedKind kind : {RedKind::kScan, RedKind::kExploit, RedKind::kEscalate}) {
    for (int host = 0; host < kHosts; ++host)
      table[next++] = {kind, static_cast<std::int8_t>(host)};
  }
  table[next] = {RedKind::kImpact, kOpServer0};
  return table;
}
inline constexpr std::array<RedAction, kRedActions> kRedActionTable = make_red_actions();

/// What happened in one step; -1 where nothing did.
struct Moves {
  Byte blue_action = 0;
  Success blue_success = Success::kUnknown;
  RedKind red_kind = RedKind::kSleep;
  std::int8_t red_target = -1;
  Success red_success = Success::kUnknown;
  std::int8_t exploit = -1;
  std::int8_t detected = -1;
  std::int8_t green_host = -1;
};
static_assert(sizeof(Moves) == 8);

}  // namespace cagepool
