#include "compliance.hpp"

#include <bit>
#include <cmath>

namespace cagepool {
namespace {

constexpr std::uint8_t kUserType = 4;

/// The nibbles of blue's table that belong to a set of hosts.
constexpr std::uint64_t nibbles(Mask hosts) {
  std::uint64_t bits = 0;
  for (int host = 0; host < kHosts; ++host)
    bits |= std::uint64_t{(hosts >> host) & 1u} * 15u << (4 * host);
  return bits;
}

struct TypeHosts {
  Mask hosts;
  std::uint64_t table;
};
using TypeTable = std::array<TypeHosts, kTypes>;
constexpr TypeTable make_types(Definition definition) {
  TypeTable types{};
  for (std::size_t type = 0; type < kTypes; ++type) {
    const bool with_user0 = definition == Definition::kSeed && type == kUserType;
    const Mask hosts = with_user0 ? kTypeHosts[type] | bit(kUser0) : kTypeHosts[type];
    types[type] = {hosts, nibbles(hosts)};
  }
  return types;
}
constexpr TypeTable kByHost = make_types(Definition::kHost);
constexpr TypeTable kBySeed = make_types(Definition::kSeed);

/// Positions of the order whose type has a threatened host, as bits. Without a branch: no guess
/// would be a good one.
unsigned threatened_positions(const Game& game, const Order& order, const TypeTable& types,
                              Knowledge knowledge) {
  const Mask held = game.privileged | game.user_seen | game.user_unseen;
  unsigned positions = 0;
  for (unsigned i = 0; i < kTypes; ++i) {
    const TypeHosts& type = types[order[i]];
    const bool threatened =
        knowledge == Knowledge::kTrue ? (held & type.hosts) != 0 : (game.memory & type.table) != 0;
    positions |= unsigned{threatened} << i;
  }
  return positions;
}

bool is_threatened(const Game& game, Mask host, Knowledge knowledge) {
  if (knowledge == Knowledge::kTrue)
    return ((game.privileged | game.user_seen | game.user_unseen) & host) != 0;
  return ((game.memory >> (4 * std::countr_zero(host))) & 15u) != 0;
}

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
      per_grid(1.0 / grid) {}

double judge_fix(const Game& game, Mask target, const Order& order, const ComplianceRule& rule,
                 Counters& counters) {
  const bool seed = rule.definition == Definition::kSeed;
  const TypeTable& types = seed ? kBySeed : kByHost;
  const unsigned positions = threatened_positions(game, order, types, rule.knowledge);
  const bool quiet = positions == 0;
  const std::uint8_t top = order[quiet ? 0 : static_cast<std::size_t>(std::countr_zero(positions))];
  const bool of_top_type = !quiet & ((types[top].hosts & target) != 0);
  const bool compliant =
      seed ? quiet | of_top_type : of_top_type & is_threatened(game, target, rule.knowledge);
  const double before = scaled_compliance(counters, rule);
  ++counters.fixes;
  counters.compliant += compliant;
  counters.violations += !quiet & !compliant;
  counters.wasted += quiet | (!seed & (target == bit(kUser0)));
  return scaled_compliance(counters, rule) - before;
}

}  // namespace cagepool
