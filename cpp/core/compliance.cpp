#include "core/compliance.hpp"

#include <algorithm>
#include <cmath>

namespace cagepool {
namespace {

/// The nibbles of blue's table that belong to a set of hosts.
constexpr std::uint64_t nibbles(Mask hosts) {
  std::uint64_t bits = 0;
  for (int host = 0; host < kHosts; ++host) {
    bits |= std::uint64_t{(hosts >> host) & 1u} * 15u << (4 * host);
  }
  return bits;
}

/// The hosts of the first of the threatened types in each order; User0 is a user in the older
/// definition only.
constexpr TopHosts make_top_hosts(Definition definition) {
  std::array<Mask, kTypes> hosts = kTypeHosts;
  if (definition == Definition::kSeed) hosts[kUserType] |= bit(kUser0);
  TopHosts table{};
  std::array<std::size_t, kTypes> order{0, 1, 2, 3, 4};
  for (auto& by_threats : table) {
    for (unsigned threats = 0; threats < 1 << kTypes; ++threats) {
      const auto top = std::ranges::find_if(
          order, [threats](std::size_t type) { return ((threats >> type) & 1u) != 0; });
      by_threats[threats] = top == order.end() ? Mask{0} : hosts[*top];
    }
    std::ranges::next_permutation(order);
  }
  return table;
}
constexpr TopHosts kTopHosts = make_top_hosts(Definition::kHost);
constexpr TopHosts kTopHostsBySeed = make_top_hosts(Definition::kSeed);

}  // namespace

ComplianceRule::ComplianceRule(Knowledge by, Definition of, double scale)
    : knowledge(by),
      definition(of),
      lambda(scale),
      grid(scale > 0.0 ? std::ldexp(1.0, std::ilogb(scale) - 44) : 1.0),
      per_grid(1.0 / grid),
      hosts(of == Definition::kSeed ? kAllHosts : static_cast<Mask>(kAllHosts & ~bit(kUser0))),
      table(nibbles(hosts)),
      tops(of == Definition::kSeed ? &kTopHostsBySeed : &kTopHosts) {}

}  // namespace cagepool
