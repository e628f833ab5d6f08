#pragma once
// Blue's actions: decoys, Remove and Restore (docs/rules.md, section 4.1). Analyse, Monitor and
// Sleep change no state; step.hpp reports the files that Analyse finds.

#include "core/sessions.hpp"

namespace cagepool {

/// Play Restore: remove red's sessions, files and all decoys from a host.
inline void play_restore(Slot slot, int host) {
  Game& game = slot.game();
  TrueState& true_state = slot.true_state();
  const auto h = static_cast<std::size_t>(host);
  if (hosts_with_red(game) & bit(host)) restore_sessions(slot, host);
  true_state.decoys[h] = 0;
  game.malware = static_cast<Mask>(game.malware & ~bit(host));
  true_state.malware[h] = 0;
  set_compromised(slot, host, kNotCompromised);
  if (host == kOpServer0) {
    game.outage_tenths = 0;
    game.ot_pid_known = false;  // Q2
    true_state.ot_running = 1;
    true_state.ot_pid_known = 0;
  } else if (host >= kUser3 && game.edition == Edition::kLeaderboard) {
    game.mail_immune = static_cast<Byte>(game.mail_immune | bit(host - kUser3));
    true_state.mail_immune = game.mail_immune;
  }
}

/// Play Remove: end the user-level sessions that blue has seen on a host.
inline void play_remove(Slot slot, int host) {
  const Game& game = slot.game();
  if (game.user_seen & bit(host)) remove_sessions(slot, host);
  if (compromised(game, host) != kNotCompromised) set_compromised(slot, host, kUnknownAccess);
}

/// Place a decoy if the port that it needs is free; returns whether it was placed.
inline bool play_decoy(Slot slot, const BlueAction& action) {
  std::uint16_t& decoys = slot.true_state().decoys[action.host];
  const bool is_free = (kPortsOfDecoys[decoys & 255u] & action.free_port) == 0;
  const bool placed = (action.decoy_bit != 0) & is_free;
  const unsigned added = unsigned{action.decoy_bit} * placed;
  const bool is_duplicate = (decoys & added) != 0;  // possible for Vsftpd only
  decoys = static_cast<std::uint16_t>(decoys | added);
  if (is_duplicate && decoys < 0xFF00) [[unlikely]]
    decoys = static_cast<std::uint16_t>(decoys + 256);
  return placed;
}

/// Callback for fixes where compliance is not tracked.
struct IgnoreFixes {
  void operator()(const Game&, Mask) const {}
};

/// Play blue's action; returns whether a decoy was placed. `on_fix` is called with the game before
/// a Remove or Restore and with its host. Few branches: blue's choice is hard to predict, so every
/// action runs the code of a decoy.
template <class OnFix>
inline bool play_blue_action(Slot slot, const BlueAction& action, const OnFix& on_fix) {
  const bool placed = play_decoy(slot, action);
  if (action.restore_host) [[unlikely]] {
    on_fix(slot.game(), action.restore_host);
    play_restore(slot, action.host);
  }
  if (action.remove_host) [[unlikely]] {
    on_fix(slot.game(), action.remove_host);
    play_remove(slot, action.host);
  }
  return placed;
}

}  // namespace cagepool
