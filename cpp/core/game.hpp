#pragma once
// State of one game (docs/rules.md, section 3), in three parts: `Game`, which every step reads;
// `TrueState`, which is exported to Python; `SessionLog`, red's sessions. The last two change only
// when a host changes.

#include <algorithm>
#include <span>
#include <type_traits>

#include "core/actions.hpp"

namespace cagepool {

enum class Phase : std::uint8_t { kUnstarted, kRunning, kOver };

inline constexpr Byte kNoHost = 255;

struct Game {
  std::uint64_t key;  // of the random stream of this episode
  // Blue's table: 13 nibbles; the high two bits of each are `compromised` of rules 7.4.
  std::uint64_t blue_table;
  std::uint64_t observation;  // last observation of blue: bit k is value k of the 52
  std::int32_t return_tenths;
  std::uint16_t step;
  std::uint16_t horizon;
  std::uint16_t sessions;  // number of session ids given out, session 0 included

  // Hosts with a red session, by kind of session; hosts with a high-density file.
  Mask privileged;
  Mask user_seen;
  Mask user_unseen;
  Mask malware;

  // Red's knowledge.
  Mask known_ip;
  Mask known_host;
  // Host lists of RedMeanderAgent.
  Mask scanned;
  Mask exploited;
  Mask escalated;
  Mask mapped;
  Mask last_exploit;  // host of its last action, if that was an exploit
  Mask last_host;     // host of its last action, if that was an escalation or an impact

  Byte known_nets;

  Byte outage_tenths;  // penalty per step of the stopped OTService; 0 while the service runs
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
  Byte user_pick;   // 0..3 for User1..User4; kNoHost before the draw
  bool reached_12;  // position 12 was played

  // RedMeanderAgent
  Byte swept;  // subnets

  std::array<Ports, kHostCount> red_ports;
  std::array<Byte, 2> unused;
};
static_assert(std::is_trivially_copyable_v<Game>);
static_assert(sizeof(Game) <= 100, "a step reads the whole struct, so it must stay small");

/// Sessions of red and beliefs of blue, one value per host, and the state of the OTService.
struct TrueState {
  // Bit i: decoy i; +256 for each Vsftpd beyond the first.
  std::array<std::uint16_t, kHostCount> decoys;
  std::array<Byte, kHostCount> access;  // 0 none, 1 user, 2 privileged
  std::array<Byte, kHostCount> privileged;
  std::array<Byte, kHostCount> user_seen;
  std::array<Byte, kHostCount> user_unseen;
  std::array<Byte, kHostCount> malware;
  std::array<Byte, kHostCount> compromised;  // blue's table: 0 no, 1 unknown, 2 user, 3 privileged
  Byte ot_running;
  Byte ot_pid_known;
  Byte ot_service_known;
  Byte mail_immune;  // bit 0: User3, bit 1: User4
  Red red;
  Edition edition;
};
static_assert(std::is_trivially_copyable_v<TrueState>);

/// One byte per session of the episode, in order of creation; entry i has id i + 1 (id 0 is red's
/// foothold).
using Session = Byte;
inline constexpr Session kSessionHost = 0x0F;
inline constexpr Session kSessionAlive = 0x10;
inline constexpr Session kSessionPrivileged = 0x20;
inline constexpr Session kSessionSeen = 0x40;
inline constexpr Session kSessionSsh = 0x80;
/// The sessions of an episode so far. A step opens at most one, so the capacity is the horizon.
using SessionLog = std::span<Session>;

/// Arrays with the parts of many games. A step reads `Game` always and the other parts only when
/// needed.
struct GameStore {
  Game* games;
  TrueState* true_states;
  Session* session_logs;
  std::size_t session_capacity;  // per game
};

/// One game of a store.
struct Slot {
  const GameStore& store;
  std::size_t id;

  Game& game() const { return store.games[id]; }
  TrueState& true_state() const { return store.true_states[id]; }
  SessionLog session_log() const {
    return {store.session_logs + id * store.session_capacity, game().sessions - 1u};
  }
};

/// Set a game to its initial state (rules 3.3).
void initialize_game(Slot slot, std::uint64_t key, std::uint16_t horizon, Red red, Edition edition,
                     bool green);

/// Hosts on which red has a session.
inline Mask hosts_with_red(const Game& game) {
  return game.privileged | game.user_seen | game.user_unseen;
}

/// Ports that decoys open on a host.
inline Ports decoy_ports(Slot slot, std::size_t host) {
  return kPortsOfDecoys[slot.true_state().decoys[host] & 255u];
}

inline Ports listening_ports(Slot slot, std::size_t host) {
  return kHostFacts[host].listening | decoy_ports(slot, host);
}

// Levels of `compromised` in blue's table.
inline constexpr unsigned kNotCompromised = 0;
inline constexpr unsigned kUnknownAccess = 1;
inline constexpr unsigned kUserAccess = 2;
inline constexpr unsigned kPrivilegedAccess = 3;

inline unsigned compromised(const Game& game, int host) {
  return (game.blue_table >> (4 * host + 2)) & 3u;
}

inline void set_compromised(Slot slot, int host, unsigned level) {
  const int shift = 4 * host + 2;
  std::uint64_t& table = slot.game().blue_table;
  table = (table & ~(std::uint64_t{3} << shift)) | (std::uint64_t{level} << shift);
  slot.true_state().compromised[static_cast<std::size_t>(host)] = static_cast<Byte>(level);
}

}  // namespace cagepool
