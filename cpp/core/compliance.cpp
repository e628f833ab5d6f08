#include "compliance.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cagepool {
namespace {

constexpr std::size_t kNoType = kTypes;
constexpr std::size_t kUserType = 4;

/// The nibbles of blue's table that belong to a set of hosts.
constexpr std::uint64_t nibbles(Mask hosts) {
  std::uint64_t bits = 0;
  for (int host = 0; host < kHosts; ++host) {
    bits |= std::uint64_t{(hosts >> host) & 1u} * 15u << (4 * host);
  }
  return bits;
}

/// Hosts of each type, and none of no type; User0 is a user in the older definition only.
struct Types {
  std::array<Mask, kTypes + 1> hosts;
};
constexpr Types make_types(Definition definition) {
  Types types{};
  std::ranges::copy(kTypeHosts, types.hosts.begin());
  if (definition == Definition::kSeed) types.hosts[kUserType] |= bit(kUser0);
  return types;
}
constexpr std::array<Types, 2> kTypesBy{make_types(Definition::kHost),
                                        make_types(Definition::kSeed)};

/// The types, as bits, of each set of the hosts before User0.
constexpr std::array<Byte, 1 << kUser0> make_types_of() {
  std::array<Byte, 1 << kUser0> table{};
  for (unsigned hosts = 0; hosts < table.size(); ++hosts) {
    for (std::size_t type = 0; type < kUserType; ++type) {
      if (hosts & kTypeHosts[type]) table[hosts] |= static_cast<Byte>(1u << type);
    }
  }
  return table;
}
constexpr std::array<Byte, 1 << kUser0> kTypesOf = make_types_of();

/// The types, as bits, of a set of hosts.
unsigned types_of(Mask hosts) {
  return kTypesOf[hosts & (kTypesOf.size() - 1)] | (unsigned{hosts >= bit(kUser0)} << kUserType);
}

/// Hosts that blue's table calls anything but clean.
Mask suspected(const Game& game) {
  Mask hosts = 0;
  for (int host = 0; host < kHosts; ++host) {
    hosts |= static_cast<Mask>(unsigned{((game.memory >> (4 * host)) & 15u) != 0} << host);
  }
  return hosts;
}

/// The first of the threatened types in each order, by the set of them.
using TopTypes = std::array<std::array<Byte, 1 << kTypes>, kOrders>;
constexpr TopTypes make_top_types() {
  TopTypes table{};
  std::array<std::size_t, kTypes> order{0, 1, 2, 3, 4};
  for (auto& by_threats : table) {
    for (unsigned threats = 0; threats < 1 << kTypes; ++threats) {
      const auto top = std::ranges::find_if(
          order, [threats](std::size_t type) { return ((threats >> type) & 1u) != 0; });
      by_threats[threats] = static_cast<Byte>(top == order.end() ? kNoType : *top);
    }
    std::ranges::next_permutation(order);
  }
  return table;
}
constexpr TopTypes kTopTypes = make_top_types();

double scaled_compliance(const Counters& counters, const ComplianceRule& rule) {
  const std::int32_t decisions = counters.compliant + counters.violations;
  if (decisions == 0 || rule.lambda == 0.0) return 0.0;
  constexpr double kWhole = 0x1p52;  // adding and taking it away rounds to a whole number
  return (rule.lambda * counters.compliant / decisions * rule.per_grid + kWhole - kWhole) *
         rule.grid;
}

}  // namespace

ComplianceRule::ComplianceRule(Knowledge by, Definition of, double scale)
    : knowledge(by),
      definition(of),
      lambda(scale),
      grid(scale > 0.0 ? std::ldexp(1.0, std::ilogb(scale) - 44) : 1.0),
      per_grid(1.0 / grid),
      hosts(of == Definition::kSeed ? kAllHosts : static_cast<Mask>(kAllHosts & ~bit(kUser0))),
      sessions(by == Knowledge::kTrue ? hosts : Mask{0}),
      table(by == Knowledge::kObserved ? nibbles(hosts) : 0) {}

double judge_fix(const Game& game, Mask target, Order order, const ComplianceRule& rule,
                 Counters& counters) {
  const bool seed = rule.definition == Definition::kSeed;
  const Types& types = kTypesBy[static_cast<std::size_t>(rule.definition)];
  const Mask threats = rule.knowledge == Knowledge::kTrue ? held_by_red(game) : suspected(game);
  const Mask hosts = threats & rule.hosts;
  const Mask top = types.hosts[kTopTypes[order][types_of(hosts)]];
  const bool quiet = hosts == 0;
  const bool compliant = seed ? quiet | ((target & top) != 0) : (target & top & hosts) != 0;
  const double before = scaled_compliance(counters, rule);
  ++counters.fixes;
  counters.compliant += compliant;
  counters.violations += !quiet & !compliant;
  counters.wasted += quiet | (!seed & (target == bit(kUser0)));
  return scaled_compliance(counters, rule) - before;
}

}  // namespace cagepool
