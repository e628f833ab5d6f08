#pragma once
// Blue's actions (docs/rules.md, section 4).

#include "core/sessions.hpp"

namespace cagepool {

inline void play_restore(Slot slot, int host) {
  Game& game = slot.game();
  TrueState& truth = slot.truth();
  const auto h = static_cast<std::size_t>(host);
  if (held_by_red(game) & bit(host)) restore_sessions(slot, host);
  truth.decoys[h] = 0;
  game.malware = static_cast<Mask>(game.malware & ~bit(host));
  truth.malware[h] = 0;
  set_compromised(slot, host, 0);
  if (host == kOpServer0) {
    game.outage_tenths = 0;
    game.ot_pid_known = false;  // Q2
    truth.ot_running = 1;
    truth.ot_pid_known = 0;
  } else if (host >= kUser3 && game.edition == Edition::kLeaderboard) {
    game.mail_immune = static_cast<Byte>(game.mail_immune | bit(host - kUser3));
    truth.mail_immune = game.mail_immune;
  }
}

inline void play_remove(Slot slot, int host) {
  const Game& game = slot.game();
  if (game.user_seen & bit(host)) remove_sessions(slot, host);
  if (compromised(game, host) != 0) set_compromised(slot, host, kUnknownAccess);
}

/// Does nothing where blue's fixes are not judged.
struct NoJudge {
  void operator()(const Game&, Mask) const {}
};

/// Blue's action; true if it placed a decoy. Few branches: nothing is harder to predict than blue's
/// choice.
template <class Judge>
inline bool play_blue(Slot slot, const BlueAction& blue, const Judge& judge) {
  std::uint16_t& decoys = slot.truth().decoys[blue.host];
  const bool placed = (blue.places != 0) & ((kOpened[decoys & 255u] & blue.needs) == 0);
  const unsigned added = unsigned{blue.places} * placed;
  const bool again = (decoys & added) != 0;  // only Vsftpd can be
  decoys = static_cast<std::uint16_t>(decoys | added);
  if (again && decoys < 0xFF00) [[unlikely]]
    decoys = static_cast<std::uint16_t>(decoys + 256);
  if (blue.restored) [[unlikely]] {
    judge(slot.game(), blue.restored);
    play_restore(slot, blue.host);
  }
  if (blue.removed) [[unlikely]] {
    judge(slot.game(), blue.removed);
    play_remove(slot, blue.host);
  }
  return placed;
}

}  // namespace cagepool
