#pragma once
// Compliance of blue's fixes (Remove, Restore) with a workflow order (docs/workflow.md, sections
// 1-3). A fix is scored on the state before it is played.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/scenarios.hpp"

namespace cagepool {

inline constexpr std::size_t kUserType = 4;
inline constexpr std::array<Mask, kTypeCount> kTypeHosts{
    bit(kDefender), kEnterpriseServers, bit(kOpServer0),
    bit(kOpHost0) | bit(kOpHost1) | bit(kOpHost2), kUserTargets};

/// Index of a workflow order among all permutations of the host types, in lexicographic order.
using Order = std::uint8_t;
inline constexpr int kOrderCount = 120;

/// The threatened type that an order puts first, [order][threatened types as bits]; kTypeCount: no
/// type is threatened.
using FirstTypes = std::array<std::array<Byte, 1 << kTypeCount>, kOrderCount>;
constexpr FirstTypes make_first_types() {
  FirstTypes table{};
  std::array<Byte, kTypeCount> order{0, 1, 2, 3, 4};
  for (auto& by_threats : table) {
    for (unsigned threats = 0; threats < 1 << kTypeCount; ++threats) {
      const auto first = std::ranges::find_if(
          order, [threats](Byte type) { return ((threats >> type) & 1u) != 0; });
      by_threats[threats] = first != order.end() ? *first : Byte{kTypeCount};
    }
    std::ranges::next_permutation(order);
  }
  return table;
}
inline constexpr FirstTypes kFirstTypes = make_first_types();

/// Hosts of the threatened type that an order puts first, [order][threatened types as bits]; in the
/// older definition all hosts if no type is threatened.
using PriorityHosts = std::array<std::array<Mask, 1 << kTypeCount>, kOrderCount>;

/// Which hosts count as threatened: those with a red session, or those that blue's table calls
/// anything but clean.
enum class Knowledge : std::uint8_t { kTrue, kObserved };
/// How a fix is scored: per host, or by the older definition (docs/workflow.md, section 2).
enum class Definition : std::uint8_t { kHost, kFixType };

struct ComplianceRule {
  /// @param lambda Weight of the alignment reward.
  static ComplianceRule make(Knowledge knowledge, Definition definition, double lambda);

  Knowledge knowledge;
  Definition definition;
  double lambda;
  /// Power of two of which all alignment rewards are multiples. Small enough to lose no visible
  /// digit; large enough that all sums of an episode are exact, so that the rewards of an episode
  /// add up to its last lambda * compliance to the bit.
  double grid;
  double inverse_grid;          // exact too
  Mask hosts;                   // hosts that can be threatened
  std::uint64_t session_masks;  // their bits in `RedMasks`
  std::uint64_t table_bits;     // their bits of blue's table
  Mask exempt;                  // hosts that comply without a session of red on them
  Mask always_wasted;           // hosts whose fix is always wasted
  const PriorityHosts* priority_hosts;
};

struct Counters {
  std::int32_t compliant;
  std::int32_t violations;
  std::int32_t wasted;
  std::int32_t fixes;
  std::int32_t threat_steps;
};
inline constexpr int kCounterCount = 5;
static_assert(sizeof(Counters) == kCounterCount * sizeof(std::int32_t));

/// Types, as bits, of each set of the hosts before User0.
inline constexpr std::array<Byte, 1 << kUser0> kTypesOfHosts = [] {
  std::array<Byte, 1 << kUser0> table{};
  for (unsigned hosts = 0; hosts < table.size(); ++hosts) {
    for (std::size_t type = 0; type < kUserType; ++type) {
      if (hosts & kTypeHosts[type]) table[hosts] |= static_cast<Byte>(1u << type);
    }
  }
  return table;
}();

/// Types, as bits, of a set of hosts.
inline unsigned types_of(Mask hosts) {
  return kTypesOfHosts[hosts & (kTypesOfHosts.size() - 1)] |
         (unsigned{hosts >= bit(kUser0)} << kUserType);
}

/// The masks of hosts in `Game` that begin with `privileged`; the last one is of no interest here.
using RedMasks = std::array<Mask, 4>;
static_assert(offsetof(Game, user_unseen) == offsetof(Game, privileged) + 2 * sizeof(Mask));
static_assert(offsetof(Game, privileged) + sizeof(RedMasks) <= sizeof(Game));

/// The masks as one word: whether any of them has a bit is one test.
inline std::uint64_t red_masks(const Game& game) {
  std::uint64_t masks = 0;
  std::memcpy(&masks, reinterpret_cast<const char*>(&game) + offsetof(Game, privileged),
              sizeof(masks));
  return masks;
}

/// Hosts that are threatened.
template <Knowledge kKnowledge>
inline Mask threatened_hosts(const CompiledScenario& /*scenario*/, const Game& game,
                             const ComplianceRule& rule) {
  if constexpr (kKnowledge == Knowledge::kTrue) return hosts_with_red(game) & rule.hosts;
  Mask hosts = 0;
  for (int host = 0; host < kHostCount; ++host) {
    hosts |= static_cast<Mask>(unsigned{((game.blue_table >> (4 * host)) & 15u) != 0} << host);
  }
  return hosts & rule.hosts;
}

/// Hosts of any scenario that have a type; others are never threatened.
inline WideMask typed_hosts(const TableScenario& scenario) {
  WideMask hosts = 0;
  for (const WideMask of_type : scenario.tables().type_hosts) hosts |= of_type;
  return hosts;
}

template <Knowledge kKnowledge>
inline WideMask threatened_hosts(const TableScenario& scenario, const WideGame& game,
                                 const ComplianceRule& /*rule*/) {
  const WideMask typed = typed_hosts(scenario);
  if constexpr (kKnowledge == Knowledge::kTrue) return hosts_with_red(game) & typed;
  WideMask hosts = 0;
  for (int host = 0; host < scenario.host_count(); ++host)
    hosts |= WideMask{compromised(game, host) != kNotCompromised} << host;
  return hosts & typed;
}

/// Whether any host is threatened.
template <Knowledge kKnowledge>
inline bool is_threatened(const CompiledScenario& /*scenario*/, const Game& game,
                          const ComplianceRule& rule) {
  if constexpr (kKnowledge == Knowledge::kTrue) return (red_masks(game) & rule.session_masks) != 0;
  return (game.blue_table & rule.table_bits) != 0;
}
template <Knowledge kKnowledge>
inline bool is_threatened(const TableScenario& scenario, const WideGame& game,
                          const ComplianceRule& rule) {
  return threatened_hosts<kKnowledge>(scenario, game, rule) != 0;
}

/// Hosts that an order puts first if these hosts are threatened.
inline Mask priority_hosts(const CompiledScenario& /*scenario*/, const ComplianceRule& rule,
                           Order order, Mask threatened) {
  return (*rule.priority_hosts)[order][types_of(threatened)];
}
inline WideMask priority_hosts(const TableScenario& scenario, const ComplianceRule& rule,
                               Order order, WideMask threatened) {
  const auto& type_hosts = scenario.tables().type_hosts;
  unsigned types = 0;
  for (std::size_t type = 0; type < type_hosts.size(); ++type)
    types |= unsigned{(threatened & type_hosts[type]) != 0} << type;
  const std::size_t first = kFirstTypes[order][types];
  if (first != type_hosts.size()) return type_hosts[first];
  return rule.definition == Definition::kFixType ? scenario.hosts() : 0;
}

/// Hosts that comply without a session of red on them, and hosts whose fix is always wasted.
inline Mask exempt_hosts(const CompiledScenario& /*scenario*/, const ComplianceRule& rule) {
  return rule.exempt;
}
inline WideMask exempt_hosts(const TableScenario& scenario, const ComplianceRule& rule) {
  return rule.definition == Definition::kFixType ? scenario.hosts() : 0;
}
inline Mask wasted_hosts(const CompiledScenario& /*scenario*/, const ComplianceRule& rule) {
  return rule.always_wasted;
}
inline WideMask wasted_hosts(const TableScenario& scenario, const ComplianceRule& /*rule*/) {
  return ~typed_hosts(scenario);
}

/// lambda * compliance, rounded to the grid. Without branches: outcomes of fixes are hard to
/// predict.
inline double scaled_compliance(const Counters& counters, const ComplianceRule& rule) {
  const std::int32_t decisions = std::max(1, counters.compliant + counters.violations);
  constexpr double kWhole = 0x1p52;  // adding and subtracting it rounds to a whole number
  return (rule.lambda * counters.compliant / decisions * rule.inverse_grid + kWhole - kWhole) *
         rule.grid;
}

/// What one fix adds to the counters, by [compliant + 2 * no host is threatened + 4 * always
/// wasted].
inline constexpr std::array<Counters, 8> kFixCounts = [] {
  std::array<Counters, 8> table{};
  for (unsigned outcome = 0; outcome < table.size(); ++outcome) {
    const bool compliant = (outcome & 1u) != 0;
    const bool no_threat = (outcome & 2u) != 0;
    const bool always_wasted = (outcome & 4u) != 0;
    table[outcome] = {.compliant = compliant,
                      .violations = !no_threat && !compliant,
                      .wasted = no_threat || always_wasted,
                      .fixes = 1,
                      .threat_steps = 0};
  }
  return table;
}();

/// Count a fix of host `target`, before it is played; returns its alignment reward. Inline: a
/// random blue fixes a host in every fifth step, and a call would cost as much as the body.
template <Knowledge kKnowledge, class Scenario>
inline double score_fix(const Scenario& scenario, const typename Scenario::Game& game,
                        typename Scenario::Mask target, Order order, const ComplianceRule& rule,
                        Counters& counters) {
  const auto hosts = threatened_hosts<kKnowledge>(scenario, game, rule);
  const auto priority = priority_hosts(scenario, rule, order, hosts);
  const bool compliant = (target & priority & (hosts | exempt_hosts(scenario, rule))) != 0;
  const bool always_wasted = (target & wasted_hosts(scenario, rule)) != 0;
  const Counters& added =
      kFixCounts[unsigned{compliant} | unsigned{hosts == 0} << 1 | unsigned{always_wasted} << 2];
  const Counters before = counters;
  counters.compliant += added.compliant;
  counters.violations += added.violations;
  counters.wasted += added.wasted;
  counters.fixes += added.fixes;
  if (rule.lambda == 0.0) return 0.0;
  return scaled_compliance(counters, rule) - scaled_compliance(before, rule);
}

}  // namespace cagepool
