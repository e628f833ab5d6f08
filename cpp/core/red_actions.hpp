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
  Ports port = 0;  // of an exploit with events
};

/// Whether red knows the subnet, address or host that the action names. CybORG refuses an action on
/// an unknown one (rules 5).
template <class Scenario>
inline bool is_known(const typename Scenario::Game& game, RedAction action) {
  switch (action.kind) {
    case RedKind::kSleep:
      return true;
    case RedKind::kSweep:
      return ((game.known_nets >> action.target) & 1u) != 0;
    case RedKind::kScan:
    case RedKind::kExploit:
      return (game.known_ip & Scenario::bit(action.target)) != 0;
    case RedKind::kEscalate:
    case RedKind::kImpact:
      return (game.known_host & Scenario::bit(action.target)) != 0;
  }
  return false;
}

/// Play DiscoverRemoteSystems.
template <class Scenario>
inline RedOutcome play_sweep(BasicSlot<Scenario> slot, int subnet) {
  const Scenario scenario = slot.scenario();
  auto& game = slot.game();
  if (!scenario.reaches_subnet(game, subnet)) return {};
  game.known_ip |= scenario.subnet_hosts(static_cast<std::size_t>(subnet));
  return {.success = Success::kTrue};
}

/// Play DiscoverNetworkServices.
template <class Scenario>
inline RedOutcome play_scan(BasicSlot<Scenario> slot, int host) {
  const Scenario scenario = slot.scenario();
  auto& game = slot.game();
  const auto h = static_cast<std::size_t>(host);
  const bool is_reached = scenario.reaches(game, host);
  const HostEvents events = is_reached ? scan_events(slot, h) : HostEvents::kNone;
  game.last_scan_empty = events == HostEvents::kNone;
  if (game.last_scan_empty) return {.success = Success::kTrue};  // Q9
  const Ports remembered =
      game.edition == Edition::kLeaderboard ? game.red_ports[h] : Ports{0};  // L1
  game.red_ports[h] = remembered | listening_ports(slot, h);
  scenario.learn_ports(game, host);
  return {.success = Success::kTrue, .events = events};
}

/// Play ExploitRemoteService.
template <class Scenario, class Draws>
inline RedOutcome play_exploit(BasicSlot<Scenario> slot, int host, const Draws& draws) {
  using Bits = typename Scenario::Bits;
  const Scenario scenario = slot.scenario();
  auto& game = slot.game();
  const auto h = static_cast<std::size_t>(host);
  const Ports options = game.red_ports[h];
  if (options == 0) return {};
  const int rank = draws.exploit_rank(options);
  const auto port = static_cast<Ports>(1 << rank);
  RedOutcome outcome{.exploit = kExploitOfRank[static_cast<std::size_t>(rank)], .port = port};
  if (!scenario.reaches(game, host)) return outcome;

  if (((scenario.user_level(h) | scenario.privileged(h)) & port) == 0) {
    // A decoy traps only where no genuine service has the port (Q27). The decoys of Misinform
    // alone, beyond the first eight bits, trap nothing.
    const Ports traps = kPortsOfDecoys[slot.true_state().decoys[h] & 255u];
    if (scenario.resists(h) & port)
      outcome.events = port == kSsh ? HostEvents::kBruteForce : HostEvents::kOne;
    else if (traps & port)
      outcome.events = port == kSsh ? HostEvents::kBruteForce : HostEvents::kTwoOnOnePort;
    return outcome;
  }
  const auto flags_with = [&outcome](int flags) {
    const int exploit = Bits::kHasExploit ? outcome.exploit << Bits::kExploitShift : 0;
    return static_cast<typename Scenario::Session>(flags | exploit);
  };
  if (port == kSsh) {  // its events carry no process id, so the session is never `seen`
    outcome.events = HostEvents::kBruteForce;
    open_session(slot, host, flags_with(Bits::kSsh));
  } else if (port == kMail && scenario.is_mail_immune(game, host)) {
    outcome.events = HostEvents::kOne;
    return outcome;
  } else {
    const bool detected = draws.is_detected();
    outcome.detected = detected;
    outcome.events = detected ? HostEvents::kReverseShell : HostEvents::kOne;
    const bool privileged = (scenario.privileged(h) & port) != 0;
    const bool seen = detected && scenario.is_monitored(host);
    open_session(slot, host,
                 flags_with((privileged ? Bits::kPrivileged : 0) | (seen ? Bits::kSeen : 0)));
    game.malware |= scenario.bit(host);
    slot.true_state().malware[h] = 1;
  }
  game.known_host |= scenario.bit(host);
  outcome.success = Success::kTrue;
  return outcome;
}

/// Play PrivilegeEscalate.
template <class Scenario, class Draws>
inline RedOutcome play_escalate(BasicSlot<Scenario> slot, int host, const Draws& draws) {
  const Scenario scenario = slot.scenario();
  auto& game = slot.game();
  const auto h = static_cast<std::size_t>(host);
  if ((hosts_with_red(game) & scenario.bit(host)) == 0) return {};
  if ((game.privileged & scenario.bit(host)) == 0) {
    auto& true_state = slot.true_state();
    const int sessions = true_state.user_seen[h] + true_state.user_unseen[h];
    escalate_session(slot, host, draws.escalated_session(sessions));
    game.malware |= scenario.bit(host);
    true_state.malware[h] = 1;
  }
  game.known_nets =
      static_cast<decltype(game.known_nets)>(game.known_nets | scenario.revealed_nets(h));
  game.known_ip |= scenario.revealed_hosts(h);
  if (scenario.reveals_ot(host)) {
    game.ot_service_known = true;
    slot.true_state().ot_service_known = 1;
  }
  return {.success = Success::kTrue};
}

/// Play Impact.
template <class Scenario>
inline RedOutcome play_impact(BasicSlot<Scenario> slot, int host) {
  const Scenario scenario = slot.scenario();
  const auto& game = slot.game();
  if ((hosts_with_red(game) & scenario.bit(host)) == 0 || !game.ot_service_known) return {};
  if (!scenario.runs_ot(host)) return {};
  scenario.stop_ot(slot, host);
  return {.success = Success::kTrue};
}

template <class Scenario, class Draws>
inline RedOutcome play_red_action(BasicSlot<Scenario> slot, RedAction action, const Draws& draws) {
  const auto& game = slot.game();
  if (game.red == Red::kGiven && !is_known<Scenario>(game, action)) [[unlikely]]
    return {};
  switch (action.kind) {
    case RedKind::kSleep:
      return {.success = Success::kUnknown};
    case RedKind::kSweep:
      return play_sweep(slot, action.target);
    case RedKind::kScan:
      return play_scan(slot, action.target);
    case RedKind::kExploit:
      return play_exploit(slot, action.target, draws);
    case RedKind::kEscalate:
      return play_escalate(slot, action.target, draws);
    case RedKind::kImpact:
      return play_impact(slot, Scenario::impact_target(action.target));
  }
  return {};
}

}  // namespace cagepool
