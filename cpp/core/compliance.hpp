#pragma once
// Compliance with a workflow order (docs/workflow.md, sections 1-3), judged on the state before
// blue acts.

#include <array>
#include <cstdint>

#include "game.hpp"

namespace cagepool {

inline constexpr int kTypes = 5;  // defender, enterprise, op_server, op_host, user
inline constexpr std::array<Mask, kTypes> kTypeHosts{
    bit(kDefender), kEnterpriseServers, bit(kOpServer0),
    bit(kOpHost0) | bit(kOpHost1) | bit(kOpHost2), kUserTargets};

/// Number of an order among all permutations of the types, in lexicographic order.
using Order = std::uint8_t;
inline constexpr int kOrders = 120;

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
  double per_grid;  // its inverse, exact too
  Mask hosts;       // those that can be threatened
  // Where a threat shows: in red's sessions or in blue's table, by the kind of knowledge.
  Mask sessions;
  std::uint64_t table;
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

inline bool is_threatened(const Game& game, const ComplianceRule& rule) {
  return ((held_by_red(game) & rule.sessions) | (game.memory & rule.table)) != 0;
}

/// Judge a fix before it is played; returns the alignment reward.
double judge_fix(const Game& game, Mask target, Order order, const ComplianceRule& rule,
                 Counters& counters);

}  // namespace cagepool
