#include "core/scenario_tables.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/game.hpp"

namespace cagepool {
namespace {

/// The lowest `count` bits.
constexpr std::uint64_t low_bits(int count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// Whether the targets of B_lineAgent are hosts, and subnets where it sweeps, for the users that it
/// may draw; position 0 is played before the draw.
bool has_valid_b_line(const ScenarioTables& tables) {
  if ((tables.playable_reds & (1u << static_cast<int>(Red::kBLine))) == 0) return true;
  const auto is_below = [](int target, int count) { return target >= 0 && target < count; };
  for (std::size_t user = 0; user < kMaxHosts; ++user) {
    const auto& targets = tables.b_line_targets[user];
    if (!is_below(targets[0], tables.subnet_count)) return false;
    if (((tables.b_line_users >> user) & 1u) == 0) continue;
    for (std::size_t position = 1; position < kBLinePositions; ++position) {
      const int count = position == 7 ? tables.subnet_count : tables.host_count;
      if (!is_below(targets[position], count)) return false;
    }
  }
  return true;
}

bool has_valid_hosts(const ScenarioTables& tables) {
  const WideMask sets = tables.agents | tables.monitored | tables.open_hosts | tables.gated_hosts |
                        tables.gate | tables.meander_op | tables.meander_ent | tables.impact_host |
                        tables.b_line_users | tables.windows | tables.mail | tables.ot |
                        tables.reveals_ot | tables.initial_ip;
  WideMask arrays = 0;
  for (const WideMask hosts : tables.revealed_hosts) arrays |= hosts;
  for (const WideMask hosts : tables.subnet_hosts) arrays |= hosts;
  for (const WideMask hosts : tables.type_hosts) arrays |= hosts;
  return ((sets | arrays) & ~tables.hosts) == 0 && std::popcount(tables.impact_host) <= 1;
}

bool has_valid_subnets(const ScenarioTables& tables) {
  std::uint64_t nets = tables.open_nets | tables.gated_nets | tables.initial_nets;
  for (const std::uint16_t revealed : tables.revealed_nets) nets |= revealed;
  return (nets & ~low_bits(tables.subnet_count)) == 0;
}

bool has_valid_slots(const ScenarioTables& tables) {
  for (std::size_t host = 0; host < tables.host_count; ++host) {
    const std::size_t slot = tables.slot_of_host[host];
    if (slot >= kMaxHosts || tables.host_of_slot[slot] != host) return false;
    if (tables.same_slots != 0 && slot != host) return false;
  }
  return std::ranges::all_of(tables.host_of_slot, [&tables](Byte host) {
    return host == kNoHost || host < tables.host_count;
  });
}

bool has_valid_values(const ScenarioTables& tables) {
  const auto is_value = [](std::int16_t value) { return value >= 0 && value <= 100; };
  const int hosts = tables.host_count;
  const auto is_host = [hosts](int host) { return host >= -1 && host < hosts; };
  return std::ranges::all_of(tables.confidentiality_tenths, is_value) &&
         std::ranges::all_of(tables.availability_tenths, is_value) &&
         std::ranges::all_of(tables.green_hosts, is_host);
}

}  // namespace

void check_tables(std::span<const ScenarioTables> scenarios) {
  if (scenarios.empty())
    throw std::invalid_argument("a batch must have at least 1 scenario, got 0");
  if (scenarios.size() > 1u << 16)
    throw std::invalid_argument("a batch must have at most 65536 scenarios, got " +
                                std::to_string(scenarios.size()));
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const ScenarioTables& tables = scenarios[i];
    const auto check = [i](bool is_valid, const char* part) {
      if (is_valid) return;
      throw std::invalid_argument("the tables of scenario " + std::to_string(i) +
                                  " must be those of a scenario, got impossible " + part);
    };
    check(tables.host_count >= 2 && tables.host_count <= kMaxHosts &&
              tables.hosts == low_bits(tables.host_count) && tables.entry < tables.host_count,
          "hosts");
    check(tables.subnet_count >= 1 && tables.subnet_count <= kMaxSubnets, "subnets");
    check(has_valid_hosts(tables), "sets of hosts");
    check(has_valid_subnets(tables), "sets of subnets");
    check(has_valid_b_line(tables), "targets of B_lineAgent");
    check(has_valid_slots(tables), "slots");
    check(has_valid_values(tables), "values");
  }
}

}  // namespace cagepool
