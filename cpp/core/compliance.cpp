#include "core/compliance.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cagepool {
namespace {

/// Bits of blue's table that belong to a set of hosts.
constexpr std::uint64_t table_bits_of(Mask hosts) {
  std::uint64_t bits = 0;
  for (int host = 0; host < kHostCount; ++host) {
    bits |= std::uint64_t{(hosts >> host) & 1u} * 15u << (4 * host);
  }
  return bits;
}

/// Hosts of the first threatened type, by order. User0 is a user host in the older definition only.
constexpr PriorityHosts make_priority_hosts(Definition definition, const FirstTypes& first_types) {
  const bool by_fix_type = definition == Definition::kFixType;
  std::array<Mask, kTypeCount + 1> hosts{};
  std::ranges::copy(kTypeHosts, hosts.begin());
  if (by_fix_type) hosts[kUserType] |= bit(kUser0);
  hosts[kTypeCount] = by_fix_type ? kAllHosts : Mask{0};
  PriorityHosts table{};
  for (std::size_t order = 0; order < table.size(); ++order) {
    for (std::size_t threats = 0; threats < table[order].size(); ++threats)
      table[order][threats] = hosts[first_types[order][threats]];
  }
  return table;
}
constexpr PriorityHosts kPriorityHosts = make_priority_hosts(Definition::kHost, kFirstTypes);
constexpr PriorityHosts kFixTypePriorityHosts =
    make_priority_hosts(Definition::kFixType, kFirstTypes);

}  // namespace

ComplianceRule ComplianceRule::make(Knowledge knowledge, Definition definition, double lambda) {
  const bool by_fix_type = definition == Definition::kFixType;
  const double grid = lambda > 0.0 ? std::ldexp(1.0, std::ilogb(lambda) - 44) : 1.0;
  const Mask hosts = by_fix_type ? kAllHosts : static_cast<Mask>(kAllHosts & ~bit(kUser0));
  return {.knowledge = knowledge,
          .definition = definition,
          .lambda = lambda,
          .grid = grid,
          .inverse_grid = 1.0 / grid,
          .hosts = hosts,
          .session_masks = std::bit_cast<std::uint64_t>(RedMasks{hosts, hosts, hosts, 0}),
          .table_bits = table_bits_of(hosts),
          .exempt = by_fix_type ? kAllHosts : Mask{0},
          .always_wasted = by_fix_type ? Mask{0} : bit(kUser0),
          .priority_hosts = by_fix_type ? &kFixTypePriorityHosts : &kPriorityHosts};
}

}  // namespace cagepool
