#pragma once
// Tables of blue's 145 actions (docs/rules.md, section 2) and red's 44, the actions of other
// scenarios, and the record of a step.

#include <array>

#include "core/cage2.hpp"

namespace cagepool {

inline constexpr int kActionCount = 145;

enum class BlueKind : std::uint8_t {
  kSleep,
  kMonitor,
  kAnalyse,
  kRemove,
  kDecoy,
  kRestore,
  kMisinform
};

/// Aligned, so that the address of an action of Scenario2 is a shift of its index.
///
/// @tparam HostMask A set of hosts.
/// @tparam DecoyBits A set of decoys.
template <class HostMask, class DecoyBits>
struct alignas(8) BasicBlueAction {
  BlueKind kind = BlueKind::kSleep;
  Byte host = 0;
  DecoyBits decoy_bit = 0;    // bit of the decoy; 0 if the host can never take it
  Ports free_port = 0;        // port that no decoy may have opened
  Byte cost = 0;              // tenths
  Success default_success{};  // unless a decoy is placed
  HostMask analyse_host = 0;  // the host as a bit, if the action is of that kind
  HostMask remove_host = 0;
  HostMask restore_host = 0;
  Byte decoy = 0;  // decoy id of rules 1.5
};
using BlueAction = BasicBlueAction<Mask, Byte>;

/// Whether a host of this system can run a decoy (rules 1.5).
constexpr bool fits_system(int decoy, bool windows) {
  const bool windows_only = decoy == 1 || decoy == 3 || decoy == 5;
  const bool linux_only = decoy == 2 || decoy == 7;
  return windows ? !linux_only : !windows_only;
}

constexpr BlueAction make_decoy(int decoy, int host) {
  const HostFacts& facts = kHostFacts[static_cast<std::size_t>(host)];
  const Ports free_port = kDecoyFreePort[static_cast<std::size_t>(decoy)];
  const bool possible = (facts.listening & free_port) == 0 && fits_system(decoy, facts.windows);
  return {.kind = BlueKind::kDecoy,
          .host = static_cast<Byte>(host),
          .decoy_bit = static_cast<Byte>(possible ? bit(decoy) : 0),
          .free_port = free_port,
          .default_success = Success::kFalse,
          .decoy = static_cast<Byte>(decoy)};
}

constexpr std::array<BlueAction, kActionCount> make_blue_actions() {
  std::array<BlueAction, kActionCount> table{};
  table[0] = {.kind = BlueKind::kSleep, .default_success = Success::kUnknown};
  table[1] = {.kind = BlueKind::kMonitor, .default_success = Success::kTrue};
  std::size_t next = 2;
  const auto add_all = [&table, &next](auto make) {
    for (int host = 0; host < kHostCount; ++host) table[next++] = make(host);
  };
  add_all([](int host) -> BlueAction {
    return {.kind = BlueKind::kAnalyse,
            .host = static_cast<Byte>(host),
            .default_success = Success::kTrue,
            .analyse_host = bit(host)};
  });
  add_all([](int host) -> BlueAction {
    return {.kind = BlueKind::kRemove,
            .host = static_cast<Byte>(host),
            .default_success = Success::kTrue,
            .remove_host = bit(host)};
  });
  for (int decoy = 0; decoy < kDecoyCount; ++decoy) {
    add_all([decoy](int host) { return make_decoy(decoy, host); });
  }
  add_all([](int host) -> BlueAction {
    return {.kind = BlueKind::kRestore,
            .host = static_cast<Byte>(host),
            .cost = kRestoreTenths,
            .default_success = Success::kTrue,
            .restore_host = bit(host)};
  });
  return table;
}
inline constexpr std::array<BlueAction, kActionCount> kBlueActions = make_blue_actions();

struct RedAction {
  RedKind kind = RedKind::kSleep;
  std::int8_t target = -1;  // host; subnet for a sweep
};

/// Actions of a red agent that the caller plays: sleep, 3 sweeps, 13 scans, 13 exploits, 13
/// escalations, impact.
inline constexpr int kRedActionCount = 1 + kSubnetCount + 3 * kHostCount + 1;

constexpr std::array<RedAction, kRedActionCount> make_red_actions() {
  std::array<RedAction, kRedActionCount> table{};
  std::size_t next = 1;
  for (int net = 0; net < kSubnetCount; ++net)
    table[next++] = {RedKind::kSweep, static_cast<std::int8_t>(net)};
  for (const RedKind kind : {RedKind::kScan, RedKind::kExploit, RedKind::kEscalate}) {
    for (int host = 0; host < kHostCount; ++host)
      table[next++] = {kind, static_cast<std::int8_t>(host)};
  }
  table[next] = {RedKind::kImpact, kOpServer0};
  return table;
}
inline constexpr std::array<RedAction, kRedActionCount> kRedActions = make_red_actions();

/// A blue action of any scenario: kind and slot (position in observations) of its host.
struct LayoutAction {
  BlueKind kind;
  Byte slot;
  Byte decoy;
};
/// Bit of `ScenarioTables::blue_kinds` for a kind of action; every decoy has one.
constexpr int kind_bit(BlueKind kind, int decoy) {
  return kind == BlueKind::kDecoy ? 8 + decoy : static_cast<int>(kind);
}

/// What blue, green and red did in one step, without blue's action; -1: none.
struct Outcomes {
  Success blue_success = Success::kUnknown;
  RedKind red_kind = RedKind::kSleep;
  std::int8_t red_target = -1;
  std::int8_t decoy_pick = -1;  // decoy id that Misinform placed
  Success red_success = Success::kUnknown;
  std::int8_t exploit = -1;
  std::int8_t detected = -1;
  std::int8_t green_host = -1;
};
static_assert(sizeof(Outcomes) == 8, "a step keeps it in a register");

/// Actions of blue, green and red in one step and their outcomes.
struct Moves : Outcomes {
  std::uint32_t blue_action = 0;
};
static_assert(sizeof(Moves) == 12);

}  // namespace cagepool
