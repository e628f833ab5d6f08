#pragma once
// One step of the game: blue, green, red, reward, blue's table (docs/rules.md, sections 4, 5, 7 and 9).

#include "random.hpp"
#include "red.hpp"
#include "sessions.hpp"

namespace cagepool {

/// What happened in one step; -1 where nothing did.
struct Moves {
  std::uint8_t blue_action = 0;
  Success blue_success = Success::kUnknown;
  RedKind red_kind = RedKind::kSleep;
  std::int8_t red_target = -1;
  Success red_success = Success::kUnknown;
  std::int8_t exploit = -1;
  std::int8_t detected = -1;
  std::int8_t green_host = -1;
};
static_assert(sizeof(Moves) == 8);

struct Step {
  Moves moves;
  std::int32_t reward_tenths = 0;
  std::uint64_t observation = 0;  // bit k is value k of the 52
};

/// Network events on one host within a step, as far as blue's table tells them apart (rules 7.2).
struct Events {
  int count = 0;     // at least this many; exact below 3
  int distinct = 0;  // local ports
  bool reverse_shell = false;
};

inline constexpr unsigned kActivityScan = 1;
inline constexpr unsigned kActivityExploit = 3;
inline constexpr unsigned kUnknownAccess = 1;
inline constexpr unsigned kUserAccess = 2;
inline constexpr unsigned kPrivilegedAccess = 3;

inline unsigned activity(const Events& events, bool decoy_placed) {
  if (events.count == 0) return 0;
  if (events.distinct >= 3) return kActivityScan;
  if (events.reverse_shell) return kActivityExploit;
  if (events.distinct == 1 && events.count + decoy_placed >= 3) return kActivityExploit;
  return decoy_placed ? 0 : kActivityScan;
}

inline Ports listening(const Game& game, int host) {
  const auto h = static_cast<std::size_t>(host);
  return kHostFacts[h].listening | opened_by(game.decoys[h]);
}

/// One event for each listening port. Ports that occur twice never decide anything: see `Events::count`.
inline Events scan_events(const Game& game, int host) {
  const int ports = std::popcount(listening(game, host)) + kHostFacts[static_cast<std::size_t>(host)].others;
  return {ports, ports, false};
}

inline bool is_reachable(const Game& game, int host) {
  const Mask held = game.privileged | game.user_seen | game.user_unseen;
  return ((kOperational >> host) & 1) == 0 || (held & kEnterpriseServers) != 0;
}

inline unsigned compromised(const Game& game, int host) { return (game.memory >> (4 * host + 2)) & 3u; }

inline void set_compromised(const Table& table, int host, unsigned level) {
  const int shift = 4 * host + 2;
  table.game.memory = (table.game.memory & ~(std::uint64_t{3} << shift)) | (std::uint64_t{level} << shift);
  table.truth.compromised[static_cast<std::size_t>(host)] = static_cast<std::uint8_t>(level);
}

inline void restore(const Table& table, int host) {
  Game& game = table.game;
  TrueState& truth = table.truth;
  const auto h = static_cast<std::size_t>(host);
  if ((game.privileged | game.user_seen | game.user_unseen) & bit(host)) close_sessions(table, host, 0, 0);
  game.decoys[h] = 0;
  truth.decoys[h] = 0;
  game.malware = static_cast<Mask>(game.malware & ~bit(host));
  truth.malware[h] = 0;
  set_compromised(table, host, 0);
  if (host == kOpServer0) {
    game.ot_running = true;
    game.ot_pid_known = false;  // Q2
    truth.ot_running = 1;
    truth.ot_pid_known = 0;
  } else if (host >= kUser3 && game.edition == Edition::kLeaderboard) {
    game.mail_immune = static_cast<std::uint8_t>(game.mail_immune | bit(host - kUser3));
    truth.mail_immune = game.mail_immune;
  }
}

/// Blue's action; true if it placed a decoy.
inline bool play_blue(const Table& table, const BlueAction& blue) {
  Game& game = table.game;
  const auto h = static_cast<std::size_t>(blue.host);
  if (blue.restored) {
    restore(table, blue.host);
    return false;
  }
  if (blue.removed) {
    if (game.user_seen & blue.removed) {
      close_sessions(table, blue.host, kSessionPrivileged | kSessionSeen, kSessionSeen);
    }
    if (compromised(game, blue.host) != 0) set_compromised(table, blue.host, kUnknownAccess);
    return false;
  }
  const Ports decoys = game.decoys[h];
  if (blue.places == 0 || (opened_by(decoys) & blue.needs) != 0) return false;
  std::uint16_t& shown = table.truth.decoys[h];
  const bool again = (decoys & blue.places) != 0;  // only Vsftpd can be
  if (again) {
    if (shown < 0xFF00) shown = static_cast<std::uint16_t>(shown + 256);
  } else {
    shown = static_cast<std::uint16_t>(shown | bit(blue.decoy));
  }
  game.decoys[h] |= blue.places;
  return true;
}

struct RedOutcome {
  Success success = Success::kFalse;
  std::int8_t exploit = -1;
  std::int8_t detected = -1;
  Events events{};
};

template <class Source>
inline RedOutcome play_exploit(const Table& table, int host, const Source& draws) {
  Game& game = table.game;
  const auto h = static_cast<std::size_t>(host);
  const Ports options = game.red_ports[h];
  if (options == 0) return {};
  const int rank = draws.exploit(options);
  RedOutcome outcome{.exploit = static_cast<std::int8_t>(kExploitOfRank[static_cast<std::size_t>(rank)])};
  if (!is_reachable(game, host)) return outcome;

  const auto port = static_cast<Ports>(1 << rank);
  const HostFacts& facts = kHostFacts[h];
  if (((facts.user_level | facts.privileged) & port) == 0) {
    if (((opened_by(game.decoys[h]) | facts.always_traps) & port) != 0)
      outcome.events = {port == kSsh ? 3 : 2, 1, false};
    return outcome;
  }
  if (port == kSsh) {  // no process id in its events: such a session is never `seen`
    outcome.events = {3, 1, false};
    open_session(table, host, kSessionSsh);
  } else if (port == kMail && game.mail_immune != 0 && (game.mail_immune & bit(host - kUser3)) != 0) {
    outcome.events = {1, 1, false};
    return outcome;
  } else {
    const bool detected = draws.detected();
    outcome.detected = detected;
    outcome.events = {detected ? 2 : 1, detected ? 2 : 1, detected};
    const bool privileged = (facts.privileged & port) != 0;
    open_session(table, host,
                 static_cast<Session>((privileged ? kSessionPrivileged : 0) | (detected ? kSessionSeen : 0)));
    game.malware |= bit(host);
    table.truth.malware[h] = 1;
  }
  game.known_host |= bit(host);
  outcome.success = Success::kTrue;
  return outcome;
}

inline RedOutcome play_scan(const Table& table, int host) {
  Game& game = table.game;
  const auto h = static_cast<std::size_t>(host);
  game.last_scan_empty = !is_reachable(game, host);
  if (game.last_scan_empty) return {.success = Success::kTrue};                                   // Q9
  const Ports remembered = game.edition == Edition::kLeaderboard ? game.red_ports[h] : Ports{0};  // L1
  game.red_ports[h] = remembered | listening(game, host);
  return {.success = Success::kTrue, .events = scan_events(game, host)};
}

template <class Source>
inline RedOutcome play_escalate(const Table& table, int host, const Source& draws) {
  Game& game = table.game;
  const auto h = static_cast<std::size_t>(host);
  const Mask user_level = game.user_seen | game.user_unseen;
  if (((game.privileged | user_level) & bit(host)) == 0) return {};
  if ((game.privileged & bit(host)) == 0) {
    escalate_session(table, host, draws.session(table.truth.user_seen[h] + table.truth.user_unseen[h]));
    game.malware |= bit(host);
    table.truth.malware[h] = 1;
  }
  const HostFacts& facts = kHostFacts[h];
  game.known_nets = static_cast<std::uint8_t>(game.known_nets | bit(facts.subnet));
  game.known_ip |= facts.link;
  if (host == kOpServer0) {
    game.ot_service_known = true;
    table.truth.ot_service_known = 1;
  }
  return {.success = Success::kTrue};
}

inline RedOutcome play_impact(const Table& table) {
  Game& game = table.game;
  const Mask held = game.privileged | game.user_seen | game.user_unseen;
  if ((held & bit(kOpServer0)) == 0 || !game.ot_service_known) return {};
  if (game.ot_pid_known) {
    game.ot_running = false;
    table.truth.ot_running = 0;
  }
  return {.success = Success::kTrue};
}

template <class Source>
inline RedOutcome play_red(const Table& table, RedAction red, const Source& draws) {
  Game& game = table.game;
  switch (red.kind) {
    case RedKind::kSleep:
      return {.success = Success::kUnknown};
    case RedKind::kSweep:
      if (red.target == kOperationalNet && !is_reachable(game, kOpServer0)) return {};
      game.known_ip |= kSubnetHosts[static_cast<std::size_t>(red.target)];
      return {.success = Success::kTrue};
    case RedKind::kScan:
      return play_scan(table, red.target);
    case RedKind::kExploit:
      return play_exploit(table, red.target, draws);
    case RedKind::kEscalate:
      return play_escalate(table, red.target, draws);
    case RedKind::kImpact:
      return play_impact(table);
  }
  return {};
}

inline std::int32_t loss_tenths(const Game& game) {
  return 10 * std::popcount(static_cast<Mask>(game.privileged & kDear)) +
         std::popcount(static_cast<Mask>(game.privileged & kCheap)) + (game.ot_running ? 0 : kOutageTenths);
}

/// Enter what the events of one host show into blue's table; returns the host's activity at its place in the
/// observation.
inline std::uint64_t notice(const Table& table, int host, const Events& events, bool decoy_placed) {
  const unsigned shown = activity(events, decoy_placed);
  if (shown == kActivityExploit) set_compromised(table, host, kUserAccess);  // Q11: also from privileged
  return std::uint64_t{shown} << (4 * host);
}

/// Play one step. `given` is red's action if it is played from outside.
template <class Source>
inline Step play(const Table& table, int action, RedAction given, const Source& draws) {
  Game& game = table.game;
  const BlueAction& blue = kBlueActions[static_cast<std::size_t>(action)];
  const bool reported = (game.malware & blue.analysed) != 0;
  const bool placed = play_blue(table, blue);

  const int green_host = game.green ? draws.green() : -1;
  const Events green_events = green_host >= 0 ? scan_events(game, green_host) : Events{};

  const RedAction red = decide(game, given, draws);
  const bool refused = game.red == Red::kGiven && !is_known(game, red);
  const RedOutcome outcome = refused ? RedOutcome{} : play_red(table, red, draws);
  game.last_success = outcome.success;

  std::uint64_t seen = 0;
  const int decoy_host = placed ? blue.host : -1;
  if (green_host >= 0) {
    Events merged = green_events;
    if (green_host == red.target) {  // or a sweep of the subnet of that index, which makes no events
      // Every port that red touches is one that listens, but for the reverse shell's own.
      merged.count += outcome.events.count;
      merged.distinct += outcome.events.reverse_shell;
      merged.reverse_shell = outcome.events.reverse_shell;
    }
    seen = notice(table, green_host, merged, decoy_host == green_host);
  }
  if (outcome.events.count != 0 && red.target != green_host) {
    seen |= notice(table, red.target, outcome.events, decoy_host == red.target);
  }
  if (reported) set_compromised(table, blue.host, kPrivilegedAccess);

  const Success blue_success = placed ? Success::kTrue : blue.otherwise;
  return {.moves = {static_cast<std::uint8_t>(action), blue_success, red.kind, red.target, outcome.success,
                    outcome.exploit, outcome.detected, static_cast<std::int8_t>(green_host)},
          .reward_tenths = -loss_tenths(game) - blue.cost,
          .observation = game.memory | seen};
}

/// The fixed initial state of rules 3.3; `key` and `horizon`, `red`, `edition` and `green` are the caller's.
inline void clear(const Table& table) {
  Game& game = table.game;
  const Game before = game;
  game = Game{};
  game.key = before.key;
  game.horizon = before.horizon;
  game.red = before.red;
  game.edition = before.edition;
  game.green = before.green;
  game.phase = Phase::kRunning;
  game.sessions = 1;
  game.privileged = bit(kUser0);
  game.known_ip = bit(kUser0);
  game.known_host = bit(kUser0);
  game.known_nets = static_cast<std::uint8_t>(bit(kUserNet));
  game.ot_running = true;
  game.ot_pid_known = true;
  game.last_success = Success::kUnknown;
  game.user_pick = kNoHost;
  game.last_exploit = kNoHost;
  game.last_host = kNoHost;

  table.truth = TrueState{};
  table.truth.access[kUser0] = 2;
  table.truth.privileged[kUser0] = 1;
  table.truth.ot_running = 1;
  table.truth.ot_pid_known = 1;
  table.truth.red = game.red;
  table.truth.edition = game.edition;
}

}  // namespace cagepool
