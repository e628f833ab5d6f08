#pragma once
// Compliance with a workflow order (docs/workflow.md, sections 1-3), judged on the state before
// blue acts.

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/game.hpp"

namespace cagepool {

inline constexpr int kTypes = 5;  // defender, enterprise, op_server, op_host, user
inline constexpr std::size_t kUserType = 4;
inline constexpr std::array<Mask, kTypes> kTypeHosts{
    bit(kDefender), kEnterpriseServers, bit(kOpServer0),
    bit(kOpHost0) | bit(kOpHost1) | bit(kOpHost2), kUserTargets};

/// Number of an order among all permutations of the types, in lexicographic order.
using Order = std::uint8_t;
inline constexpr int kOrders = 120;

/// The hosts whose fix complies, by the order and by the types of hosts that are threatened.
using TopHosts = std::array<std::array<Mask, 1 << kTypes>, kOrders>;

enum class Knowledge : std::uint8_t { kTrue, kObserved };
enum class Definition : std::uint8_t { kHost, kSeed };

class ComplianceRule {
 public:
  ComplianceRule(Knowledge by, Definition of, double scale);

  Knowledge knowledge;
  Definition definition;
  double lambda;
  /// Alignment rewards are multiples of this power of two: fine enough that nothing visible is
  /// lost, coarse enough that all sums of an episode are exact, so that its rewards add up to the
  /// last value of lambda * compliance to the bit.
  double grid;
  double per_grid;      // its inverse, exact too
  Mask hosts;           // those that can be threatened
  std::uint64_t table;  // their part of blue's table
  const TopHosts* tops;
};

struct Counters {
  std::int32_t compliant;
  std::int32_t violations;
  std::int32_t wasted;
  std::int32_t fixes;
  std::int32_t threat_steps;
};
inline constexpr int kCounters = 5;
static_assert(sizeof(Counters) == kCounters * sizeof(std::int32_t));

/// The types, as bits, of each set of the hosts before User0.
inline constexpr std::array<Byte, 1 << kUser0> kTypesOf = [] {
  std::array<Byte, 1 << kUser0> table{};
  for (unsigned hosts = 0; hosts < table.size(); ++hosts) {
    for (std::size_t type = 0; type < kUserType; ++type) {
      if (hosts & kTypeHosts[type]) table[hosts] |= static_cast<Byte>(1u << type);
    }
  }
  return table;
}();

/// The types, as bits, of a set of hosts.
inline unsigned types_of(Mask hosts) {
  return kTypesOf[hosts & (kTypesOf.size() - 1)] | (unsigned{hosts >= bit(kUser0)} << kUserType);
}

/// Hosts that red holds, or that blue's table calls anything but clean, among those that count.
template <Knowledge kKnowledge>
inline Mask threatened(const Game& game, const ComplianceRule& rule) {
  if constexpr (kKnowledge == Knowledge::kTrue) return held_by_red(game) & rule.hosts;
  Mask hosts = 0;
  for (int host = 0; host < kHosts; ++host) {
    hosts |= static_cast<Mask>(unsigned{((game.memory >> (4 * host)) & 15u) != 0} << host);
  }
  return hosts & rule.hosts;
}

/// Whether there is any.
template <Knowledge kKnowledge>
inline bool is_threatened(const Game& game, const ComplianceRule& rule) {
  if constexpr (kKnowledge == Knowledge::kTrue) return threatened<kKnowledge>(game, rule) != 0;
  return (game.memory & rule.table) != 0;
}

/// lambda * compliance, on the grid. Without branches: nothing tells how the next fix will end.
inline double scaled_compliance(const Counters& counters, const ComplianceRule& rule) {
  const std::int32_t decisions = std::max(1, counters.compliant + counters.violations);
  constexpr double kWhole = 0x1p52;  // adding and taking it away rounds to a whole number
  return (rule.lambda * counters.compliant / decisions * rule.per_grid + kWhole - kWhole) *
         rule.grid;
}

/// Judge a fix before it is played; returns the alignment reward. Here for the kernels to inline:
/// a call would cost a random blue, which fixes in every fifth step, as much as the judging.
template <Knowledge kKnowledge>
inline double judge_fix(const Game& game, Mask target, Order order, const ComplianceRule& rule,
                        Counters& counters) {
  const bool seed = rule.definition == Definition::kSeed;
  const Mask hosts = threatened<kKnowledge>(game, rule);
  const Mask top = (*rule.tops)[order][types_of(hosts)];
  const bool quiet = hosts == 0;
  const bool compliant = seed ? quiet | ((target & top) != 0) : (target & top & hosts) != 0;
  const Counters before = counters;
  ++counters.fixes;
  counters.compliant += compliant;
  counters.violations += !quiet & !compliant;
  counters.wasted += quiet | (!seed & (target == bit(kUser0)));
  if (rule.lambda == 0.0) return 0.0;
  return scaled_compliance(counters, rule) - scaled_compliance(before, rule);
}

}  // namespace cagepool
