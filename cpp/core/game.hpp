#pragma once
// State of one game (docs/rules.md, section 3), in three parts: `Game`, which every step reads;
// `TrueState`, which is exported to Python; the log of red's sessions. The last two change only
// when a host changes. `WideGame` and `WideTrueState` have room for any scenario.

#include <algorithm>
#include <span>
#include <type_traits>

#include "core/actions.hpp"
#include "core/scenario_tables.hpp"

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

/// Sessions of red and beliefs of blue, one value per host, and the state of services.
///
/// @tparam kHosts Hosts for which there is room.
template <std::size_t kHosts>
struct BasicTrueState {
  template <class Value>
  using PerHost = std::array<Value, kHosts>;

  // Bit i: decoy i; from bit 8 on, the number of further Vsftpd. In a game with Misinform, that
  // number has 6 bits, and kFalseSmss and kFalseSvchost follow.
  PerHost<std::uint16_t> decoys;
  std::uint16_t scenario;  // index in the batch
  PerHost<Byte> access;    // 0 none, 1 user, 2 privileged
  PerHost<Byte> privileged;
  PerHost<Byte> user_seen;
  PerHost<Byte> user_unseen;
  PerHost<Byte> malware;
  PerHost<Byte> compromised;   // blue's table: 0 no, 1 unknown, 2 user, 3 privileged
  PerHost<Byte> ot_running;    // 0 on hosts without OTService
  PerHost<Byte> ot_pid_known;  // Impact can stop the OTService
  PerHost<Byte> mail_immune;
  Byte ot_service_known;
  Red red;
  Edition edition;
  std::array<Byte, 2 - (9 * kHosts + 3) % 2> unused;  // so that there is no padding
};
using TrueState = BasicTrueState<kHostCount>;
static_assert(std::is_trivially_copyable_v<TrueState>);

/// One byte per session of the episode, in order of creation; entry i has id i + 1 (id 0 is red's
/// foothold).
using Session = Byte;
using WideSession = std::uint16_t;

/// Flags of a session in the log.
template <class Word, int kHostBits>
struct SessionBits {
  static constexpr Word kHost = (1u << kHostBits) - 1;
  static constexpr Word kAlive = 1u << kHostBits;
  static constexpr Word kPrivileged = 2u << kHostBits;
  static constexpr Word kSeen = 4u << kHostBits;
  static constexpr Word kSsh = 8u << kHostBits;
  static constexpr int kExploitShift = kHostBits + 4;  // where the word has room for the exploit
  static constexpr bool kHasExploit = 8 * sizeof(Word) >= kExploitShift + 3;
};

/// Blue's table of any scenario: one nibble per host.
using WideTable = std::array<std::uint64_t, kMaxHosts / 16>;

/// `Game` of any scenario. Members of the same name have the same meaning.
struct WideGame {
  std::uint64_t key;
  WideTable blue_table;
  WideTable observation;
  std::int32_t return_tenths;
  std::uint32_t scenario;  // index in the batch; stays over episodes
  std::uint16_t step;
  std::uint16_t horizon;
  std::uint16_t sessions;
  std::uint16_t known_nets;
  std::uint16_t swept;
  std::int16_t loss_tenths;    // confidentiality of the hosts of `privileged`
  std::int16_t outage_tenths;  // availability of the hosts of `ot_stopped`
  Success last_success;
  Red red;
  Edition edition;
  Phase phase;
  Byte position;
  Byte user_pick;  // host; kNoHost before the draw
  bool green;
  bool ot_service_known;
  bool last_scan_empty;
  bool reached_12;

  WideMask privileged;
  WideMask user_seen;
  WideMask user_unseen;
  WideMask malware;
  WideMask known_ip;
  WideMask known_host;
  WideMask scanned;
  WideMask exploited;
  WideMask escalated;
  WideMask mapped;
  WideMask last_exploit;
  WideMask last_host;
  WideMask ports_known;   // hosts whose ports red has seen; some have no exploit port
  WideMask ot_stopped;    // hosts whose OTService red has stopped
  WideMask ot_pid_known;  // hosts whose OTService can be stopped
  WideMask mail_immune;
  std::array<Ports, kMaxHosts> red_ports;
};
static_assert(std::is_trivially_copyable_v<WideGame>);

using WideTrueState = BasicTrueState<kMaxHosts>;
static_assert(std::is_trivially_copyable_v<WideTrueState>);

// Levels of `compromised` in blue's table.
inline constexpr unsigned kNotCompromised = 0;
inline constexpr unsigned kUnknownAccess = 1;
inline constexpr unsigned kUserAccess = 2;
inline constexpr unsigned kPrivilegedAccess = 3;

/// The word of a table that has the nibble of a host, and the position of the nibble in it.
inline std::uint64_t& table_word(std::uint64_t& table, int /*host*/) { return table; }
inline std::uint64_t table_word(const std::uint64_t& table, int /*host*/) { return table; }
inline std::uint64_t& table_word(WideTable& table, int host) {
  return table[static_cast<std::size_t>(host) / 16];
}
inline std::uint64_t table_word(const WideTable& table, int host) {
  return table[static_cast<std::size_t>(host) / 16];
}
inline int nibble_shift(const std::uint64_t& /*table*/, int host) { return 4 * host; }
inline int nibble_shift(const WideTable& /*table*/, int host) { return 4 * (host % 16); }

template <class AnyGame>
inline unsigned compromised(const AnyGame& game, int host) {
  const auto& table = game.blue_table;
  return (table_word(table, host) >> (nibble_shift(table, host) + 2)) & 3u;
}

/// Hosts on which red has a session.
template <class AnyGame>
inline auto hosts_with_red(const AnyGame& game) {
  using HostMask = decltype(game.privileged);
  return static_cast<HostMask>(game.privileged | game.user_seen | game.user_unseen);
}

}  // namespace cagepool
