#pragma once
// Blue's actions: decoys, Remove and Restore (docs/rules.md, section 4.1). Analyse, Monitor and
// Sleep change no state; step.hpp reports the files that Analyse finds.

#include "core/sessions.hpp"

namespace cagepool {

/// Play Restore: remove red's sessions, files and all decoys from a host. Where blue has no agent,
/// only blue's table changes.
template <class Scenario>
inline void play_restore(BasicSlot<Scenario> slot, int host) {
  const Scenario scenario = slot.scenario();
  auto& game = slot.game();
  auto& true_state = slot.true_state();
  const auto h = static_cast<std::size_t>(host);
  set_compromised(slot, host, kNotCompromised);
  if (!scenario.has_agent(host)) return;
  if (hosts_with_red(game) & scenario.bit(host)) restore_sessions(slot, host);
  true_state.decoys[h] = 0;
  game.malware = static_cast<typename Scenario::Mask>(game.malware & ~scenario.bit(host));
  true_state.malware[h] = 0;
  if (scenario.runs_ot(host)) scenario.restart_ot(slot, host);
  if (game.edition == Edition::kLeaderboard && scenario.runs_mail(host))
    scenario.set_mail_immune(slot, host);
}

/// Play Remove: end the user-level sessions that blue has seen on a host.
///
/// @param spared Sessions that red opened earlier in this step, which blue has not seen yet.
template <class Scenario>
inline void play_remove(BasicSlot<Scenario> slot, int host, std::size_t spared) {
  const Scenario scenario = slot.scenario();
  const auto& game = slot.game();
  if ((game.user_seen & scenario.bit(host)) != 0 && scenario.has_agent(host))
    remove_sessions(slot, host, spared);
  if (compromised(game, host) != kNotCompromised) set_compromised(slot, host, kUnknownAccess);
}

/// Place a decoy if the port that it needs is free; returns whether it was placed.
template <class Scenario>
inline bool play_decoy(BasicSlot<Scenario> slot, const typename Scenario::Blue& action) {
  std::uint16_t& decoys = slot.true_state().decoys[action.host];
  const bool is_free = (Scenario::ports_of(decoys) & action.free_port) == 0;
  const bool placed = (action.decoy_bit != 0) & is_free;
  const unsigned added = unsigned{action.decoy_bit} * placed;
  const bool is_duplicate = (decoys & added) != 0;  // possible for Vsftpd only
  decoys = static_cast<std::uint16_t>(decoys | added);
  constexpr unsigned kMost = Scenario::kMostVsftpd;
  if (is_duplicate && ((decoys >> 8) & kMost) < kMost) [[unlikely]]
    decoys = static_cast<std::uint16_t>(decoys + 256);
  return placed;
}

/// Draw the decoy of Misinform and make it the decoy of the action; returns its id, or -1 if no
/// port is free (docs/scenarios.md, 1.5).
template <class Draws>
inline int draw_misinform(BasicSlot<TableScenario> slot, TableScenario::Blue& action,
                          const Draws& draws) {
  const unsigned choices =
      slot.scenario().misinform_choices(action.host, slot.true_state().decoys[action.host]);
  if (choices == 0) return -1;
  const int drawn = draws.misinform_decoy(static_cast<std::uint8_t>(choices));
  const MisinformDecoy& decoy = kMisinformDecoys[static_cast<std::size_t>(drawn)];
  action.decoy_bit = decoy.bit;
  action.free_port = decoy.port;
  return decoy.id;
}

/// Callback for fixes where compliance is not tracked.
struct IgnoreFixes {
  template <class AnyGame, class HostMask>
  void operator()(const AnyGame&, HostMask) const {}
};

/// Play blue's action; returns whether a decoy was placed. `on_fix` is called with the game before
/// a Remove or Restore and with its host. Few branches: blue's choice is hard to predict, so every
/// action runs the code of a decoy.
template <class Scenario, class OnFix>
inline bool play_blue_action(BasicSlot<Scenario> slot, const typename Scenario::Blue& action,
                             std::size_t opened_before, const OnFix& on_fix) {
  const bool placed = play_decoy(slot, action);
  if (action.restore_host) [[unlikely]] {
    on_fix(slot.game(), action.restore_host);
    play_restore(slot, action.host);
  }
  if (action.remove_host) [[unlikely]] {
    on_fix(slot.game(), action.remove_host);
    play_remove(slot, action.host, opened_before);
  }
  return placed;
}

}  // namespace cagepool
