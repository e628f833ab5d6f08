#pragma once
// Compliance with a workflow order (docs/workflow.md, sections 1-3), judged on the state before blue acts.

#include <array>
#include <cmath>
#include <cstdint>

#include "game.hpp"

namespace cagepool {

inline constexpr int kTypes = 5;  // defender, enterprise, op_server, op_host, user
inline constexpr std::array<Mask, kTypes> kTypeHosts{bit(kDefender), kEnterpriseServers, bit(kOpServer0),
                                                     bit(kOpHost0) | bit(kOpHost1) | bit(kOpHost2), kUserTargets};

/// Types from the most to the least urgent.
using Order = std::array<std::uint8_t, kTypes>;

enum class Knowledge : std::uint8_t { kTrue, kObserved };
enum class Definition : std::uint8_t { kHost, kSeed };

struct ComplianceRule {
  Knowledge knowledge = Knowledge::kTrue;
  Definition definition = Definition::kHost;
  double lambda = 0.0;
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

/// Hosts that blue's table calls anything but clean.
inline Mask suspected(const Game& game) {
  Mask hosts = 0;
  for (int host = 0; host < kHosts; ++host) {
    if ((game.memory >> (4 * host)) & 0xCu) hosts |= bit(host);
  }
  return hosts;
}

inline Mask threatened(const Game& game, const ComplianceRule& rule) {
  const Mask held = rule.knowledge == Knowledge::kTrue
                        ? static_cast<Mask>(game.privileged | game.user_seen | game.user_unseen)
                        : suspected(game);
  return rule.definition == Definition::kSeed ? held : static_cast<Mask>(held & ~bit(kUser0));
}

/// Hosts of the first type of the order with a threatened host; none if no host is threatened.
inline Mask top_hosts(const Order& order, Mask threats, Definition definition) {
  for (const std::uint8_t type : order) {
    Mask hosts = kTypeHosts[type];
    if (definition == Definition::kSeed && type == 4) hosts |= bit(kUser0);
    if (hosts & threats) return hosts;
  }
  return 0;
}

/// lambda * compliance on a grid fine enough that nothing visible is lost and coarse enough that all differences and
/// sums of an episode are exact: so its alignment rewards add up to the last value, to the bit.
inline double scaled_compliance(const Counters& counters, double lambda) {
  const std::int32_t decisions = counters.compliant + counters.violations;
  if (decisions == 0 || lambda == 0.0) return 0.0;
  const double grid = std::ldexp(1.0, std::ilogb(lambda) - 44);
  return std::nearbyint(lambda * counters.compliant / decisions / grid) * grid;
}

/// Judge one action, before it is played; returns the alignment reward.
inline double judge(const Game& game, const BlueAction& blue, const Order& order, const ComplianceRule& rule,
                    Counters& counters) {
  const Mask threats = threatened(game, rule);
  counters.threat_steps += threats != 0;
  const Mask target = blue.removed | blue.restored;
  if (target == 0) return 0.0;
  const double before = scaled_compliance(counters, rule.lambda);
  const bool seed = rule.definition == Definition::kSeed;
  const Mask top = top_hosts(order, threats, rule.definition);
  const bool compliant = seed ? top == 0 || (target & top) != 0 : (target & top & threats) != 0;
  ++counters.fixes;
  counters.compliant += compliant;
  counters.violations += top != 0 && !compliant;
  counters.wasted += top == 0 || (!seed && target == bit(kUser0));
  return scaled_compliance(counters, rule.lambda) - before;
}

}  // namespace cagepool
