#pragma once
// Red's actions (docs/rules.md, section 5).

#include "core/activity.hpp"
#include "core/random.hpp"
#include "core/sessions.hpp"

namespace cagepool {

/// What came of red's action.
struct RedOutcome {
  Success success = Success::kFalse;
  Noise noise = Noise::kNone;
  std::int8_t exploit = -1;
  std::int8_t detected = -1;
};

/// Whether red knows what the action names; upstream refuses an action on anything unknown (rules
/// 5).
inline bool is_known(const Game& game, RedAction action) {
  switch (action.kind) {
    case RedKind::kSleep:
      return true;
    case RedKind::kSweep:
      return (game.known_nets & bit(action.target)) != 0;
    case RedKind::kScan:
    case RedKind::kExploit:
      return (game.known_ip & bit(action.target)) != 0;
    case RedKind::kEscalate:
    case RedKind::kImpact:
      return (game.known_host & bit(action.target)) != 0;
  }
  return false;
}

inline bool is_reachable(const Game& game, int host) {
  return ((kOperational >> host) & 1) == 0 || (held_by_red(game) & kEnterpriseServers) != 0;
}

inline RedOutcome play_sweep(Game& game, int subnet) {
  if (subnet == kOperationalNet && !is_reachable(game, kOpServer0)) return {};
  game.known_ip |= kSubnetHosts[static_cast<std::size_t>(subnet)];
  return {.success = Success::kTrue};
}

inline RedOutcome play_scan(Slot slot, int host) {
  Game& game = slot.game();
  const auto h = static_cast<std::size_t>(host);
  game.last_scan_empty = !is_reachable(game, host);
  if (game.last_scan_empty) return {.success = Success::kTrue};  // Q9
  const Ports remembered =
      game.edition == Edition::kLeaderboard ? game.red_ports[h] : Ports{0};  // L1
  game.red_ports[h] = remembered | listening(slot, h);
  return {.success = Success::kTrue, .noise = scan_noise(slot, h)};
}

template <class Source>
inline RedOutcome play_exploit(Slot slot, int host, const Source& draws) {
  Game& game = slot.game();
  const auto h = static_cast<std::size_t>(host);
  const Ports options = game.red_ports[h];
  if (options == 0) return {};
  const int rank = draws.exploit(options);
  RedOutcome outcome{.exploit = kExploitOfRank[static_cast<std::size_t>(rank)]};
  if (!is_reachable(game, host)) return outcome;

  const auto port = static_cast<Ports>(1 << rank);
  const HostFacts& facts = kHostFacts[h];
  if (((facts.user_level | facts.privileged) & port) == 0) {
    const bool trapped = ((opened(slot, h) | facts.always_traps) & port) != 0;
    if (trapped) outcome.noise = port == kSsh ? Noise::kBruteForce : Noise::kTrapped;
    return outcome;
  }
  if (port == kSsh) {  // no process id in its events: such a session is never `seen`
    outcome.noise = Noise::kBruteForce;
    open_session(slot, host, kSessionSsh);
  } else if (port == kMail && ((unsigned{game.mail_immune} << kUser3) & bit(host)) != 0) {
    outcome.noise = Noise::kQuiet;
    return outcome;
  } else {
    const bool detected = draws.detected();
    const bool privileged = (facts.privileged & port) != 0;
    outcome.detected = detected;
    outcome.noise = detected ? Noise::kReverseShell : Noise::kQuiet;
    const int marks = (privileged ? kSessionPrivileged : 0) | (detected ? kSessionSeen : 0);
    open_session(slot, host, static_cast<Session>(marks));
    game.malware |= bit(host);
    slot.truth().malware[h] = 1;
  }
  game.known_host |= bit(host);
  outcome.success = Success::kTrue;
  return outcome;
}

template <class Source>
inline RedOutcome play_escalate(Slot slot, int host, const Source& draws) {
  Game& game = slot.game();
  const auto h = static_cast<std::size_t>(host);
  if ((held_by_red(game) & bit(host)) == 0) return {};
  if ((game.privileged & bit(host)) == 0) {
    TrueState& truth = slot.truth();
    escalate_session(slot, host, draws.session(truth.user_seen[h] + truth.user_unseen[h]));
    game.malware |= bit(host);
    truth.malware[h] = 1;
  }
  const HostFacts& facts = kHostFacts[h];
  game.known_nets = static_cast<Byte>(game.known_nets | bit(facts.subnet));
  game.known_ip |= facts.link;
  if (host == kOpServer0) {
    game.ot_service_known = true;
    slot.truth().ot_service_known = 1;
  }
  return {.success = Success::kTrue};
}

inline RedOutcome play_impact(Slot slot) {
  Game& game = slot.game();
  if ((held_by_red(game) & bit(kOpServer0)) == 0 || !game.ot_service_known) return {};
  // Without a branch on what differs from game to game. An outage that lasts goes on (Q3, Q5).
  game.outage_tenths = static_cast<Byte>(game.outage_tenths | (kOutageTenths * game.ot_pid_known));
  slot.truth().ot_running = game.outage_tenths == 0;
  return {.success = Success::kTrue};
}

template <class Source>
inline RedOutcome play_red(Slot slot, RedAction red, const Source& draws) {
  Game& game = slot.game();
  if (game.red == Red::kGiven && !is_known(game, red)) [[unlikely]]
    return {};
  switch (red.kind) {
    case RedKind::kSleep:
      return {.success = Success::kUnknown};
    case RedKind::kSweep:
      return play_sweep(game, red.target);
    case RedKind::kScan:
      return play_scan(slot, red.target);
    case RedKind::kExploit:
      return play_exploit(slot, red.target, draws);
    case RedKind::kEscalate:
      return play_escalate(slot, red.target, draws);
    case RedKind::kImpact:
      return play_impact(slot);
  }
  return {};
}

}  // namespace cagepool
