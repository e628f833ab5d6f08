#pragma once
// The state of one game (docs/rules.md, section 3), in three parts: what the rules need at every
// step (`Game`), what people look at (`TrueState`) and red's sessions one by one (`SessionLog`).
// The last two change only when a host does.

#include <algorithm>
#include <span>
#include <type_traits>

#include "core/actions.hpp"

namespace cagepool {

enum class Phase : std::uint8_t { kUnstarted, kRunning, kOver };

inline constexpr Byte kNoHost = 255;

struct Game {
  std::uint64_t key;  // of this episode's random stream
  // Blue's table: 13 nibbles, each with the two `compromised` bits of rules 7.4 on top.
  std::uint64_t memory;
  std::uint64_t observation;  // what blue was last shown: bit k is value k of the 52
  std::int32_t return_tenths;
  std::uint16_t step;
  std::uint16_t horizon;
  std::uint16_t sessions;  // ids given so far, session 0 included

  // Hosts on which red has a session, by kind; hosts with a high-density file.
  Mask privileged;
  Mask user_seen;
  Mask user_unseen;
  Mask malware;

  // Red's knowledge.
  Mask known_ip;
  Mask known_host;
  // What RedMeanderAgent remembers of hosts.
  Mask scanned;
  Mask exploited;
  Mask escalated;
  Mask mapped;
  Mask last_exploit;  // the host of its last action, if it was an exploit
  Mask last_host;     // the same, if it was an escalation or an impact

  Byte known_nets;

  Byte outage_tenths;  // what the stopped OTService costs each step: 0 while it runs
  bool ot_pid_known;
  bool ot_service_known;
  bool last_scan_empty;
  Success last_success;

  Red red;
  Edition edition;
  bool green;
  Phase phase;
  Byte mail_immune;  // bit 0: User3, bit 1: User4 (L2)

  // B_lineAgent
  Byte position;
  Byte user_pick;   // 0..3 for User1..User4; kNoHost before it is drawn
  bool reached_12;  // position 12 has been issued

  // RedMeanderAgent
  Byte swept;  // subnets

  std::array<Ports, kHosts> red_ports;
  std::array<Byte, 2> unused;
};
static_assert(std::is_trivially_copyable_v<Game>);
static_assert(sizeof(Game) <= 100, "a game is small");

inline Mask held_by_red(const Game& game) {
  return game.privileged | game.user_seen | game.user_unseen;
}

/// What red really holds and what blue believes, a value a host.
struct TrueState {
  // Bit i: decoy i; +256 for each Vsftpd beyond the first.
  std::array<std::uint16_t, kHosts> decoys;
  std::array<Byte, kHosts> access;  // 0 none, 1 user, 2 privileged
  std::array<Byte, kHosts> privileged;
  std::array<Byte, kHosts> user_seen;
  std::array<Byte, kHosts> user_unseen;
  std::array<Byte, kHosts> malware;
  std::array<Byte, kHosts> compromised;  // blue's table: 0 no, 1 unknown, 2 user, 3 privileged
  Byte ot_running;
  Byte ot_pid_known;
  Byte ot_service_known;
  Byte mail_immune;  // bit 0: User3, bit 1: User4
  Red red;
  Edition edition;
};
static_assert(std::is_trivially_copyable_v<TrueState>);

/// One byte for each session of the episode, in order of creation; entry i has id i + 1 (id 0 is
/// red's foothold).
using Session = Byte;
inline constexpr Session kSessionHost = 0x0F;
inline constexpr Session kSessionAlive = 0x10;
inline constexpr Session kSessionPrivileged = 0x20;
inline constexpr Session kSessionSeen = 0x40;
inline constexpr Session kSessionSsh = 0x80;
/// The sessions so far. At most one is opened in a step, so room for as many as the horizon is
/// enough.
using SessionLog = std::span<Session>;

/// Where the parts of many games are. The hot path of a step touches only `Game`, so the others are
/// found when needed.
struct Store {
  Game* games;
  TrueState* truths;
  Session* logs;
  std::size_t log_size;  // for each game
};

/// One game of a store: what the rules work on.
struct Slot {
  const Store& store;
  std::size_t id;

  Game& game() const { return store.games[id]; }
  TrueState& truth() const { return store.truths[id]; }
  SessionLog log() const { return {store.logs + id * store.log_size, game().sessions - 1u}; }
};

inline constexpr unsigned kUnknownAccess = 1;
inline constexpr unsigned kUserAccess = 2;
inline constexpr unsigned kPrivilegedAccess = 3;

inline Ports opened(Slot slot, std::size_t host) {
  return kOpened[slot.truth().decoys[host] & 255u];
}

inline Ports listening(Slot slot, std::size_t host) {
  return kHostFacts[host].listening | opened(slot, host);
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

/// The fixed initial state of rules 3.3.
void clear(Slot slot, std::uint64_t key, std::uint16_t horizon, Red red, Edition edition,
           bool green);

}  // namespace cagepool
