#pragma once
// One step of a game: blue, green and red act, then the reward and blue's observation follow
// (docs/rules.md, section 4).

#include "core/activity.hpp"
#include "core/blue.hpp"
#include "core/red.hpp"
#include "core/red_actions.hpp"

namespace cagepool {

struct StepResult {
  Moves moves;
  int reward_tenths;
  std::uint64_t observation;  // bit k is value k of the 52
};

/// Penalty of a step for hosts with a privileged red session and for the stopped OTService (rules
/// 9).
inline int penalty_tenths(const Game& game) {
  const unsigned hosts = game.privileged;
  return 10 * std::popcount(hosts & kHighValueHosts) + std::popcount(hosts & kLowValueHosts) +
         game.outage_tenths;
}

/// Pack the moves of a step in a register; eight stores of bytes and a reload of the word would
/// stall.
inline Moves pack_moves(int action, Success blue, RedAction red, RedOutcome outcome,
                        int green_host) {
  const auto byte = [](auto value, int offset) {
    return std::uint64_t{static_cast<std::uint8_t>(value)} << (8 * offset);
  };
  return std::bit_cast<Moves>(byte(action, 0) | byte(blue, 1) | byte(red.kind, 2) |
                              byte(red.target, 3) | byte(outcome.success, 4) |
                              byte(outcome.exploit, 5) | byte(outcome.detected, 6) |
                              byte(green_host, 7));
}

/// Play one step.
///
/// @param given Red's action, if the caller plays red.
/// @param draws Source of the random draws: RandomDraws or RecordedDraws.
/// @param on_fix Called with the game before a Remove or Restore and with its host.
template <class Draws, class OnFix>
inline StepResult play_step(Slot slot, int action, RedAction given, const Draws& draws,
                            const OnFix& on_fix) {
  Game& game = slot.game();
  const BlueAction& blue = kBlueActions[static_cast<std::size_t>(action)];
  const bool finds_malware = (game.malware & blue.analyse_host) != 0;
  const bool placed_decoy = play_blue_action(slot, blue, on_fix);

  int green_host = -1;
  HostEvents green_events = HostEvents::kNone;
  if (game.green) {
    green_host = draws.green_host();
    if (green_host >= 0) green_events = scan_events(slot, static_cast<std::size_t>(green_host));
  }

  const RedAction red = choose_red_action(game, given, draws);
  const RedOutcome outcome = play_red_action(slot, red, draws);
  game.last_success = outcome.success;

  const auto activity_on = [&](int host, HostEvents by_green, HostEvents by_red) {
    const bool decoy = placed_decoy & (int{blue.host} == host);
    return kActivityTable[static_cast<std::size_t>(by_green)][static_cast<std::size_t>(by_red)]
                         [decoy];
  };
  std::uint64_t activities = 0;
  if (green_events != HostEvents::kNone) [[unlikely]] {
    const HostEvents by_red = red.target == green_host ? outcome.events : HostEvents::kNone;
    activities = record_activity(slot, green_host, activity_on(green_host, green_events, by_red));
  }
  if (outcome.events != HostEvents::kNone && red.target != green_host) {
    activities |= record_activity(slot, red.target,
                                  activity_on(red.target, HostEvents::kNone, outcome.events));
  }
  if (finds_malware) [[unlikely]]
    set_compromised(slot, blue.host, kPrivilegedAccess);

  const auto blue_success =
      static_cast<Success>(placed_decoy | static_cast<int>(blue.default_success));
  return {.moves = pack_moves(action, blue_success, red, outcome, green_host),
          .reward_tenths = -penalty_tenths(game) - blue.cost,
          .observation = game.blue_table | activities};
}

}  // namespace cagepool
