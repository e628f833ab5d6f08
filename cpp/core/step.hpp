#pragma once
// One step of the game: blue, green, red, reward, blue's table (docs/rules.md, sections 4, 5, 7 and
// 9).

#include "core/blue.hpp"
#include "core/red.hpp"
#include "core/red_actions.hpp"

namespace cagepool {

struct Step {
  Moves moves;
  int reward_tenths;
  std::uint64_t observation;  // bit k is value k of the 52
};

inline int loss_tenths(const Game& game) {
  const unsigned held = game.privileged;
  return 10 * std::popcount(held & kDear) + std::popcount(held & kCheap) + game.outage_tenths;
}

/// Put a step's moves together in a register; byte by byte they would be written and read again.
inline Moves pack_moves(int action, Success blue, RedAction red, RedOutcome outcome,
                        int green_host) {
  const auto byte = [](auto value, int place) {
    return std::uint64_t{static_cast<std::uint8_t>(value)} << (8 * place);
  };
  return std::bit_cast<Moves>(byte(action, 0) | byte(blue, 1) | byte(red.kind, 2) |
                              byte(red.target, 3) | byte(outcome.success, 4) |
                              byte(outcome.exploit, 5) | byte(outcome.detected, 6) |
                              byte(green_host, 7));
}

/// Play one step. `given` is red's action if it is played from outside; `judge` sees a fix and the
/// game before it.
template <class Source, class Judge>
inline Step play(Slot slot, int action, RedAction given, const Source& draws, const Judge& judge) {
  Game& game = slot.game();
  const BlueAction& blue = kBlueActions[static_cast<std::size_t>(action)];
  const bool reported = (game.malware & blue.analysed) != 0;
  const bool placed = play_blue(slot, blue, judge);

  int green_host = -1;
  Noise green_noise = Noise::kNone;
  if (game.green) {
    green_host = draws.green();
    if (green_host >= 0) green_noise = scan_noise(slot, static_cast<std::size_t>(green_host));
  }

  const RedAction red = decide(game, given, draws);
  const RedOutcome outcome = play_red(slot, red, draws);
  game.last_success = outcome.success;

  const auto activity_on = [&](int host, Noise green_there, Noise red_there) {
    const bool decoy = placed & (int{blue.host} == host);
    return kActivities[static_cast<std::size_t>(green_there)][static_cast<std::size_t>(red_there)]
                      [decoy];
  };
  std::uint64_t activities = 0;
  if (green_noise != Noise::kNone) [[unlikely]] {
    const Noise red_there = red.target == green_host ? outcome.noise : Noise::kNone;
    activities = notice(slot, green_host, activity_on(green_host, green_noise, red_there));
  }
  if (outcome.noise != Noise::kNone && red.target != green_host) {
    activities |= notice(slot, red.target, activity_on(red.target, Noise::kNone, outcome.noise));
  }
  if (reported) [[unlikely]]
    set_compromised(slot, blue.host, kPrivilegedAccess);

  const auto blue_success = static_cast<Success>(placed | static_cast<int>(blue.otherwise));
  return {.moves = pack_moves(action, blue_success, red, outcome, green_host),
          .reward_tenths = -loss_tenths(game) - blue.cost,
          .observation = game.memory | activities};
}

}  // namespace cagepool
