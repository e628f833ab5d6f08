#pragma once
// The state of one game (docs/rules.md, section 3), in three parts: what the rules need at every step (`Game`), what
// people look at (`TrueState`) and red's sessions one by one (`SessionLog`). The last two change only when a host does.

#include <algorithm>
#include <span>
#include <type_traits>

#include "actions.hpp"

namespace cagepool {

enum class Phase : std::uint8_t { kUnstarted, kRunning, kOver };

inline constexpr std::uint8_t kNoHost = 255;

struct Game {
  std::uint64_t key;     // of this episode's random stream
  std::uint64_t memory;  // blue's table: 13 nibbles, each with the two `compromised` bits of rules 7.4 on top
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

  std::uint8_t known_nets;

  bool ot_running;
  bool ot_pid_known;
  bool ot_service_known;
  bool last_scan_empty;
  Success last_success;

  Red red;
  Edition edition;
  bool green;
  Phase phase;
  std::uint8_t mail_immune;  // bit 0: User3, bit 1: User4 (L2)

  // B_lineAgent
  std::uint8_t position;
  std::uint8_t user_pick;  // 0..3 for User1..User4; kNoHost before it is drawn
  bool reached_12;         // position 12 has been issued

  // RedMeanderAgent
  std::uint8_t swept;  // subnets
  std::uint8_t last_exploit;
  std::uint8_t last_host;

  std::array<Ports, kHosts> red_ports;
  std::array<Ports, kHosts> decoys;  // see kBitOfDecoy
  std::array<std::uint8_t, 7> unused;
};
static_assert(std::is_trivially_copyable_v<Game>);
static_assert(sizeof(Game) <= 100, "a game is small");

/// What red really holds and what blue believes, a value a host.
struct TrueState {
  std::array<std::uint16_t, kHosts> decoys;  // bit i: decoy i; +256 for each Vsftpd beyond the first
  std::array<std::uint8_t, kHosts> access;   // 0 none, 1 user, 2 privileged
  std::array<std::uint8_t, kHosts> privileged;
  std::array<std::uint8_t, kHosts> user_seen;
  std::array<std::uint8_t, kHosts> user_unseen;
  std::array<std::uint8_t, kHosts> malware;
  std::array<std::uint8_t, kHosts> compromised;  // blue's table: 0 no, 1 unknown, 2 user, 3 privileged
  std::uint8_t ot_running;
  std::uint8_t ot_pid_known;
  std::uint8_t ot_service_known;
  std::uint8_t mail_immune;  // bit 0: User3, bit 1: User4
  Red red;
  Edition edition;
};
static_assert(std::is_trivially_copyable_v<TrueState>);

/// One byte for each session of the episode, in order of creation; entry i has id i + 1 (id 0 is red's foothold).
using Session = std::uint8_t;
inline constexpr Session kSessionHost = 0x0F;
inline constexpr Session kSessionAlive = 0x10;
inline constexpr Session kSessionPrivileged = 0x20;
inline constexpr Session kSessionSeen = 0x40;
inline constexpr Session kSessionSsh = 0x80;
/// At most one session is opened in a step, so a log as long as the horizon never overflows.
using SessionLog = std::span<Session>;

/// A game with its parts; what the rules work on.
struct Table {
  Game& game;
  TrueState& truth;
  SessionLog log;
};

}  // namespace cagepool
