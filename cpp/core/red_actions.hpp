#pragma once
// Red's actions: sweep, scan, exploit, escalate, impact (docs/rules.md, section 5).

#include "core/activity.hpp"
#include "core/sessions.hpp"

namespace cagepool {

/// Outcome of red's action; -1: no exploit was chosen, no detection was drawn.
struct RedOutcome {
  Success success = Success::kFalse;
  HostEvents events = HostEvents::kNone;
  std::int8_t exploit = -1;
  std::int8_t detected = -1;
};

/// Whether red knows the subnet, address or host that the action names. CybORG refuses an action on
/// an unknown one (rules 5).
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

/// Whether red can reach a host: operational hosts only with a session in the enterprise subnet.
inline bool is_reachable(const Game& game, int host) {
  return ((kOperational >> host) & 1) == 0 || (hosts_with_red(game) & kEnterpriseServers) != 0;
}

/// Play DiscoverRemoteSystems.
inline RedOutcome play_sweep(Game& game, int subnet) {
  if (subnet == kOperationalNet && !is_reachable(game, kOpServer0)) return {};
  game.known_ip |= kSubnetHosts[static_cast<std::size_t>(subnet)];
  return {.success = Success::kTrue};
}

/// Play DiscoverNetworkServices.
inline RedOutcome play_scan(Slot slot, int host) {
  Game& game = slot.game();
  const auto h = static_cast<std::size_t>(host);
  game.last_scan_empty = !is_reachable(game, host);
  if (game.last_scan_empty) return {.success = Success::kTrue};  // Q9
  const Ports remembered =
      game.edition == Edition::kLeaderboard ? game.red_ports[h] : Ports{0};  // L1
  game.red_ports[h] = remembered | listening_ports(slot, h);
  return {.success = Success::kTrue, .events = scan_events(slot, h)};
}

/// Play ExploitRemoteService.
template <class Draws>
inline RedOutcome play_exploit(Slot slot, int host, const Draws& draws) {
  Game& game = slot.game();
  const auto h = static_cast<std::size_t>(host);
  const Ports options = game.red_ports[h];
  if (options == 0) return {};
  const int rank = draws.exploit_rank(options);
  RedOutcome outcome{.exploit = kExploitOfRank[static_cast<std::size_t>(rank)]};
  if (!is_reachable(game, host)) return outcome;

  const auto port = static_cast<Ports>(1 << rank);
  const HostFacts& facts = kHostFacts[h];
  if (((facts.user_level | facts.privileged) & port) == 0) {
    const bool is_trap = ((decoy_ports(slot, h) | facts.always_traps) & port) != 0;
    if (is_trap)
      outcome.events = port == kSsh ? HostEvents::kBruteForce : HostEvents::kTwoOnOnePort;
    return outcome;
  }
  if (port == kSsh) {  // its events carry no process id, so the session is never `seen`
    outcome.events = HostEvents::kBruteForce;
    open_session(slot, host, kSessionSsh);
  } else if (port == kMail && ((unsigned{game.mail_immune} << kUser3) & bit(host)) != 0) {
    outcome.events = HostEvents::kOne;
    return outcome;
  } else {
    const bool detected = draws.is_detected();
    const bool privileged = (facts.privileged & port) != 0;
    outcome.detected = detected;
    outcome.events = detected ? HostEvents::kReverseShell : HostEvents::kOne;
    const int flags = (privileged ? kSessionPrivileged : 0) | (detected ? kSessionSeen : 0);
    open_session(slot, host, static_cast<Session>(flags));
    game.malware |= bit(host);
    slot.true_state().malware[h] = 1;
  }
  game.known_host |= bit(host);
  outcome.success = Success::kTrue;
  return outcome;
}

/// Play PrivilegeEscalate.
template <class Draws>
inline RedOutcome play_escalate(Slot slot, int host, const Draws& draws) {
  Game& game = slot.game();
  const auto h = static_cast<std::size_t>(host);
  if ((hosts_with_red(game) & bit(host)) == 0) return {};
  if ((game.privileged & bit(host)) == 0) {
    TrueState& true_state = slot.true_state();
    const int sessions = true_state.user_seen[h] + true_state.user_unseen[h];
    escalate_session(slot, host, draws.escalated_session(sessions));
    game.malware |= bit(host);
    true_state.malware[h] = 1;
  }
  const HostFacts& facts = kHostFacts[h];
  game.known_nets = static_cast<Byte>(game.known_nets | bit(facts.subnet));
  game.known_ip |= facts.revealed_hosts;
  if (host == kOpServer0) {
    game.ot_service_known = true;
    slot.true_state().ot_service_known = 1;
  }
  return {.success = Success::kTrue};
}

/// Play Impact.
inline RedOutcome play_impact(Slot slot) {
  Game& game = slot.game();
  if ((hosts_with_red(game) & bit(kOpServer0)) == 0 || !game.ot_service_known) return {};
  // No branch on state that differs from game to game. An outage continues (Q3, Q5).
  game.outage_tenths = static_cast<Byte>(game.outage_tenths | (kOutageTenths * game.ot_pid_known));
  slot.true_state().ot_running = game.outage_tenths == 0;
  return {.success = Success::kTrue};
}

template <class Draws>
inline RedOutcome play_red_action(Slot slot, RedAction action, const Draws& draws) {
  Game& game = slot.game();
  if (game.red == Red::kGiven && !is_known(game, action)) [[unlikely]]
    return {};
  switch (action.kind) {
    case RedKind::kSleep:
      return {.success = Success::kUnknown};
    case RedKind::kSweep:
      return play_sweep(game, action.target);
    case RedKind::kScan:
      return play_scan(slot, action.target);
    case RedKind::kExploit:
      return play_exploit(slot, action.target, draws);
    case RedKind::kEscalate:
      return play_escalate(slot, action.target, draws);
    case RedKind::kImpact:
      return play_impact(slot);
  }
  return {};
}

}  // namespace cagepool
