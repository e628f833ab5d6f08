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

/// Types from the most to the least urgent.
using Order = std::array<std::uint8_t, kTypes>;

enum class Knowledge : std::uint8_t { kTrue, kObserved };
enum class Definition : std::uint8_t { kHost, kSeed };

class ComplianceRule {
 public:
  ComplianceRule() = default;
  ComplianceRule(Knowledge by, Definition of, double scale);

  Knowledge knowledge = Knowledge::kTrue;
  Definition definition = Definition::kHost;
  double lambda = 0.0;
  /// Alignment rewards are multiples of this power of two: fine enough that nothing visible is
  /// lost, coarse enough that all sums of an episode are exact, so that its rewards add up to the
  /// last value of lambda * compliance to the bit.
  double grid = 1.0;
  double per_grid = 1.0;  // its inverse, exact too
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

/// Whether any host is threatened; the same as `threatened` without saying which.
inline bool is_threatened(const Game& game, const ComplianceRule& rule) {
  const bool seed = rule.definition == Definition::kSeed;
  if (rule.knowledge == Knowledge::kObserved) {
    return (game.memory & ~(seed ? std::uint64_t{0} : std::uint64_t{15} << (4 * kUser0))) != 0;
  }
  return ((game.privileged | game.user_seen | game.user_unseen) & ~(seed ? 0 : bit(kUser0))) != 0;
}

/// Judge a fix before it is played; returns the alignment reward.
double judge_fix(const Game& game, Mask target, const Order& order, const ComplianceRule& rule,
                 Counters& counters);

}  // namespace cagepool
