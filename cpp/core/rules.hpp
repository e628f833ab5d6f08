#pragma once
// One step of the game: blue, green, red, reward, blue's table (docs/rules.md, sections 4, 5, 7 and
// 9).

#include "random.hpp"
#include "red.hpp"
#include "sessions.hpp"

namespace cagepool {

/// What happened in one step; -1 where nothing did.
struct Moves {
  Byte blue_action = 0;
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
  int reward_tenths;
  std::uint64_t observation;  // bit k is value k of the 52
};

/// Network events on one host within a step, as far as blue's table tells them apart (rules 7.2).
/// Ports that occur twice in a scan never decide anything, so a scan is known by its distinct
/// ports.
enum class Noise : std::uint8_t {
  kNone,
  kQuiet,       // one event
  kTrapped,     // two on one port
  kBruteForce,  // many on one port
  kReverseShell,
  kScan1,  // one listening port
  kScan2,
  kScan3,  // three or more
};
inline constexpr std::size_t kNoises = 8;

inline constexpr unsigned kActivityScan = 1;
inline constexpr unsigned kActivityExploit = 3;

/// Activity of a host by green's noise there, red's noise there, and whether blue placed a decoy
/// there in this step.
constexpr unsigned activity(Noise green, Noise red, bool decoy) {
  constexpr std::array<unsigned, kNoises> kCount{0, 1, 2, 10, 2, 1, 2, 3};
  constexpr std::array<unsigned, kNoises> kDistinct{0, 1, 1, 1, 2, 1, 2, 3};
  const auto g = static_cast<std::size_t>(green);
  const auto r = static_cast<std::size_t>(red);
  const unsigned events = kCount[g] + kCount[r];
  const bool shell = red == Noise::kReverseShell;
  // Whatever port red touches is one that listens, and so one that green has touched, but for the
  // reverse shell's own.
  const unsigned distinct = green == Noise::kNone ? kDistinct[r] : kDistinct[g] + shell;
  if (events == 0) return 0;
  if (distinct >= 3) return kActivityScan;
  if (shell) return kActivityExploit;
  if (events + decoy >= 3 && distinct == 1) return kActivityExploit;
  return decoy ? 0 : kActivityScan;
}

using ActivityTable =
    std::array<std::array<std::array<Byte, 2>, kNoises>, kNoises>;  // [green][red][decoy]
constexpr ActivityTable make_activities() {
  ActivityTable table{};
  for (std::size_t green = 0; green < kNoises; ++green) {
    for (std::size_t red = 0; red < kNoises; ++red) {
      for (const bool decoy : {false, true}) {
        table[green][red][decoy] =
            static_cast<Byte>(activity(static_cast<Noise>(green), static_cast<Noise>(red), decoy));
      }
    }
  }
  return table;
}
inline constexpr ActivityTable kActivities = make_activities();

inline constexpr unsigned kUnknownAccess = 1;
inline constexpr unsigned kUserAccess = 2;
inline constexpr unsigned kPrivilegedAccess = 3;

inline Ports opened(Slot slot, std::size_t host) {
  return kOpened[slot.truth().decoys[host] & 255u];
}

inline Ports listening(Slot slot, std::size_t host) {
  return kHostFacts[host].listening | opened(slot, host);
}

inline Noise scan_noise(Slot slot, std::size_t host) {
  const int ports = std::popcount(unsigned{listening(slot, host)}) + kHostFacts[host].others;
  return static_cast<Noise>(static_cast<int>(Noise::kScan1) - 1 + std::min(ports, 3));
}

inline bool is_reachable(const Game& game, int host) {
  return ((kOperational >> host) & 1) == 0 || (held_by_red(game) & kEnterpriseServers) != 0;
}

inline unsigned compromised(const Game& game, int host) {
  return (game.memory >> (4 * host + 2)) & 3u;
}

inline void set_compromised(Slot slot, int host, unsigned level) {
  const int shift = 4 * host + 2;
  std::uint64_t& memory = slot.game().memory;
  memory = (memory & ~(std::uint64_t{3} << shift)) | (std::uint64_t{level} << shift);
  slot.truth().compromised[static_cast<std::size_t>(host)] = static_cast<Byte>(level);
}

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

/// What came of red's action.
struct RedOutcome {
  Success success = Success::kFalse;
  Noise noise = Noise::kNone;
  std::int8_t exploit = -1;
  std::int8_t detected = -1;
};

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

inline int loss_tenths(const Game& game) {
  const unsigned held = game.privileged;
  return 10 * std::popcount(held & kDear) + std::popcount(held & kCheap) + game.outage_tenths;
}

/// Enter a host's activity into blue's table; returns it at its place in the observation.
inline std::uint64_t notice(Slot slot, int host, unsigned shown) {
  if (shown == kActivityExploit)
    set_compromised(slot, host, kUserAccess);  // Q11: also from privileged
  return std::uint64_t{shown} << (4 * host);
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

/// The fixed initial state of rules 3.3.
void clear(Slot slot, std::uint64_t key, std::uint16_t horizon, Red red, Edition edition,
           bool green);

}  // namespace cagepool
