#pragma once
// Scenario2 of CAGE Challenge 2: hosts, subnets, exploits, decoys (docs/rules.md, section 1).
//
// In comments of the core, "rules 7.4" is a section of docs/rules.md, Q1, Q2 and so on are quirks
// of CybORG in section 13, and L1 and L2 are the differences between the editions in section 16.

#include <array>
#include <bit>
#include <cstdint>

namespace cagepool {

inline constexpr int kHostCount = 13;
inline constexpr int kSubnetCount = 3;
inline constexpr int kExploitCount = 8;
inline constexpr int kDecoyCount = 8;
inline constexpr int kObservationSize = 4 * kHostCount;
inline constexpr int kTypeCount = 5;  // defender, enterprise, op_server, op_host, user

/// An 8-bit unsigned integer that, unlike std::uint8_t, aliases no other type: after a write of a
/// Byte the compiler need not reload values of other types.
using Byte = char8_t;
/// A set of hosts (or of subnets): bit i is index i.
using Mask = std::uint16_t;
/// A set of exploit ports. Bits are in order of exploit weight (rules 1.4): red prefers the exploit
/// of the highest bit. Every host listens on at least one of the eight ports, so an empty set means
/// that red never scanned the host.
using Ports = Byte;

enum Host : std::uint8_t {
  kDefender,
  kEnterprise0,
  kEnterprise1,
  kEnterprise2,
  kOpHost0,
  kOpHost1,
  kOpHost2,
  kOpServer0,
  kUser0,
  kUser1,
  kUser2,
  kUser3,
  kUser4,
};

enum Subnet : std::uint8_t { kEnterpriseNet, kOperationalNet, kUserNet };

enum class Edition : std::uint8_t { k21, kLeaderboard };

/// Agents of red: those of the challenge, others, and the caller.
enum class Red : std::uint8_t { kBLine, kMeander, kSleep, kGiven };
/// Their names in Python's enum, in the same order.
inline constexpr std::array kRedNames{"B_LINE", "MEANDER", "SLEEP", "GIVEN"};
inline constexpr int kRedCount = static_cast<int>(kRedNames.size());

enum class RedKind : std::uint8_t { kSleep, kSweep, kScan, kExploit, kEscalate, kImpact };

enum class Success : std::int8_t { kUnknown = -1, kFalse = 0, kTrue = 1 };

constexpr Mask bit(int index) { return static_cast<Mask>(1u << index); }

// Exploit ports, lowest weight first.
inline constexpr Ports kSsh = 1 << 0;       // 22, SSHBruteForce
inline constexpr Ports kRdp = 1 << 1;       // 3389, BlueKeep
inline constexpr Ports kSmb = 1 << 2;       // 139, EternalBlue
inline constexpr Ports kHttp = 1 << 3;      // 80, HTTPRFI
inline constexpr Ports kHttps = 1 << 4;     // 443, HTTPSRFI
inline constexpr Ports kDatabase = 1 << 5;  // 3390, SQLInjection; User4 only, beside 80 and 443
inline constexpr Ports kMail = 1 << 6;      // 25, HarakaRCE
inline constexpr Ports kFtp = 1 << 7;       // 21, FTPDirectoryTraversal

/// Exploit id of rules 1.4 by bit of `Ports` (its rank), and the inverse.
inline constexpr std::array<std::int8_t, kExploitCount> kExploitOfRank{4, 1, 0, 2, 3, 5, 6, 7};
inline constexpr std::array<std::uint8_t, kExploitCount> kRankOfExploit{2, 1, 3, 4, 0, 5, 6, 7};

/// Port that each decoy opens, and port that must be free before the decoy can be placed (rules
/// 1.5). The two differ for Vsftpd only (Q1).
inline constexpr std::array<Ports, kDecoyCount> kDecoyPort{kHttp, kFtp, kMail,  kSmb,
                                                           kSsh,  kRdp, kHttps, kHttp};
inline constexpr std::array<Ports, kDecoyCount> kDecoyFreePort{kHttp, kFtp, kMail,  kSmb,
                                                               kSsh,  kRdp, kHttps, kFtp};

constexpr std::array<Ports, 256> make_ports_of_decoys() {
  std::array<Ports, 256> table{};
  for (unsigned decoys = 0; decoys < 256; ++decoys) {
    for (unsigned id = 0; id < kDecoyCount; ++id) {
      if ((decoys >> id) & 1u) table[decoys] |= kDecoyPort[id];
    }
  }
  return table;
}
/// Ports that a set of decoys opens.
inline constexpr std::array<Ports, 256> kPortsOfDecoys = make_ports_of_decoys();

struct HostFacts {
  Ports listening;           // genuine listening exploit ports
  std::uint8_t other_ports;  // number of distinct listening ports that no exploit uses
  Ports user_level;          // genuine services that yield a user account
  Ports privileged;          // genuine services that yield root or SYSTEM
  Ports resists;             // genuine services that yield no account
  bool windows;
  Subnet subnet;
  Mask revealed_hosts;  // hosts whose address an escalation on this host reveals, itself included
};

inline constexpr Ports kWebServer = kSsh | kRdp | kSmb | kHttp | kHttps;
inline constexpr std::array<HostFacts, kHostCount> kHostFacts{{
    {kSsh, 2, 0, 0, kSsh, false, kEnterpriseNet, bit(kDefender)},
    {kSsh, 0, kSsh, 0, 0, false, kEnterpriseNet, bit(kEnterprise0)},
    {kWebServer, 2, kHttp | kHttps | kSsh, kRdp, 0, true, kEnterpriseNet, bit(kEnterprise1)},
    {kWebServer, 2, kHttp | kHttps | kSsh, kRdp, 0, true, kEnterpriseNet,
     bit(kEnterprise2) | bit(kOpServer0)},
    {kSsh, 0, kSsh, 0, 0, false, kOperationalNet, bit(kOpHost0)},
    {kSsh, 0, kSsh, 0, 0, false, kOperationalNet, bit(kOpHost1)},
    {kSsh, 0, kSsh, 0, 0, false, kOperationalNet, bit(kOpHost2)},
    {kSsh, 0, kSsh, 0, 0, false, kOperationalNet, bit(kOpServer0)},
    {kSsh | kFtp, 0, kSsh, kFtp, 0, true, kUserNet, bit(kUser0)},
    {kSsh | kFtp, 0, kSsh, kFtp, 0, true, kUserNet, bit(kUser1) | bit(kEnterprise1)},
    {kSmb | kRdp, 2, kRdp, kSmb, 0, true, kUserNet, bit(kUser2) | bit(kEnterprise1)},
    {kHttp | kRdp | kHttps | kMail, 0, kHttp | kHttps, kMail, 0, false, kUserNet,
     bit(kUser3) | bit(kEnterprise0)},
    {kSsh | kHttp | kDatabase | kHttps | kMail, 0, kSsh | kHttp | kHttps, kDatabase | kMail, 0,
     false, kUserNet, bit(kUser4) | bit(kEnterprise0)},
}};

inline constexpr Mask kAllHosts = (1 << kHostCount) - 1;
inline constexpr Mask kEnterpriseServers =
    bit(kEnterprise0) | bit(kEnterprise1) | bit(kEnterprise2);
inline constexpr Mask kOperational =
    bit(kOpHost0) | bit(kOpHost1) | bit(kOpHost2) | bit(kOpServer0);
inline constexpr Mask kUserTargets = bit(kUser1) | bit(kUser2) | bit(kUser3) | bit(kUser4);
/// Hosts that green scans (rules 4.2).
inline constexpr std::array<std::int8_t, 8> kGreenHosts{
    kEnterprise0, kEnterprise1, kEnterprise2, kUser0, kUser1, kUser2, kUser3, kUser4};
/// Hosts that cost 1.0 per step with a privileged red session, and hosts that cost 0.1 (rules 9).
inline constexpr Mask kHighValueHosts = kEnterpriseServers | bit(kOpServer0);
inline constexpr Mask kLowValueHosts = kAllHosts & ~kHighValueHosts & ~bit(kUser0);
inline constexpr std::array<Mask, kSubnetCount> kSubnetHosts{
    kEnterpriseServers | bit(kDefender), kOperational, kUserTargets | bit(kUser0)};

/// Decoys that Misinform may place, in its order: SSHD, Apache, a false Smss, Tomcat and a false
/// Svchost (docs/scenarios.md, 1.5). The false ones open a port and trap nothing.
inline constexpr std::uint16_t kFalseSmss = 1u << 14;
inline constexpr std::uint16_t kFalseSvchost = 1u << 15;
struct MisinformDecoy {
  std::int8_t id;  // in traces
  std::uint16_t bit;
  Ports port;
};
inline constexpr std::array<MisinformDecoy, 5> kMisinformDecoys{{{4, 1u << 4, kSsh},
                                                                 {0, 1u << 0, kHttp},
                                                                 {8, kFalseSmss, kSmb},
                                                                 {6, 1u << 6, kHttps},
                                                                 {9, kFalseSvchost, kRdp}}};

inline constexpr int kRestoreTenths = 10;
inline constexpr int kOutageTenths = 100;

}  // namespace cagepool
