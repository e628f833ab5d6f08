#include "policy/belief_features.hpp"

#include <cstring>
#include <stdexcept>

namespace cagepool {
namespace {

/// Ports, beside those on which a host listens anyway, that decoys can open there.
constexpr Ports possible_decoy_ports(int host) {
  unsigned decoys = 0;
  for (const BlueAction& action : kBlueActions) {
    if (action.kind == BlueKind::kDecoy && int{action.host} == host) decoys |= action.decoy_bit;
  }
  return static_cast<Ports>(kPortsOfDecoys[decoys] &
                            ~unsigned{kHostFacts[static_cast<std::size_t>(host)].listening});
}

constexpr auto make_decoy_ports() {
  std::array<DecoyPort, kDecoyPortCount> ports{};
  std::size_t next = 0;
  for (int host = 0; host < kHostCount; ++host) {
    for (int rank = 0; rank < kExploitCount; ++rank) {
      if (possible_decoy_ports(host) & (1 << rank))
        ports.at(next++) = {static_cast<std::uint8_t>(host), static_cast<std::uint8_t>(rank)};
    }
  }
  if (next != kDecoyPortCount) throw std::logic_error("kDecoyPortCount is wrong");
  return ports;
}

constexpr std::array<DecoyPort, kDecoyPortCount> kDecoyPortList = make_decoy_ports();

/// Index in the list by host and rank.
constexpr auto kDecoyPortIndex = [] {
  std::array<std::array<std::uint8_t, kExploitCount>, kHostCount> table{};
  std::uint8_t next = 0;
  for (const DecoyPort& port : kDecoyPortList) table[port.host][port.rank] = next++;
  return table;
}();

/// Draw source that keeps the candidates of red's target.
class TargetCandidates {
 public:
  int red_target(Mask candidates) const {
    candidates_ = candidates;
    return std::countr_zero(candidates);
  }
  /// The hosts among which red draws, or the only one.
  Mask hosts(int target) const { return candidates_ != 0 ? candidates_ : bit(target); }

 private:
  mutable Mask candidates_ = 0;
};

/// Add a weight to the values of a set.
template <class Values, class Value>
inline void add_to(Values& values, unsigned set, Value weight) {
  for (; set != 0; set &= set - 1)
    values[static_cast<std::size_t>(std::countr_zero(set))] += weight;
}

template <class Value>
inline void add_knowledge(const Game& game, Value weight, BeliefRow<Value>& row) {
  for (std::size_t host = 0; host < kHostCount; ++host) {
    const unsigned ports = game.red_ports[host];
    if (ports == 0) continue;
    row.scanned[host] += weight;
    for (unsigned left = ports & ~unsigned{kHostFacts[host].listening}; left != 0; left &= left - 1)
      row.decoy_ports[kDecoyPortIndex[host][static_cast<std::size_t>(std::countr_zero(left))]] +=
          weight;
  }
}

template <class Value>
inline void add_next_action(const Game& game, Value weight, BeliefRow<Value>& row) {
  Game after = game;
  const TargetCandidates draws;
  const RedAction action = choose_red_action(CompiledScenario{}, after, {}, draws);
  row.next_kind[static_cast<std::size_t>(action.kind)] += weight;
  auto* const targets = action.kind == RedKind::kScan       ? &row.next_scan
                        : action.kind == RedKind::kExploit  ? &row.next_exploit
                        : action.kind == RedKind::kEscalate ? &row.next_escalate
                                                            : nullptr;
  if (targets == nullptr) return;
  const Mask hosts = draws.hosts(action.target);
  add_to(*targets, hosts, weight / static_cast<Value>(std::popcount(hosts)));
}

template <class Value>
inline void add_b_line(const Game& game, Value weight, BeliefRow<Value>& row) {
  row.b_line_position[next_b_line_position(game)] += weight;
  const bool is_drawn = game.user_pick != kNoHost;
  add_to(row.b_line_user, is_drawn ? 1u << game.user_pick : 15u,
         is_drawn ? weight : weight / static_cast<Value>(kUserHost.size()));
}

}  // namespace

const std::array<DecoyPort, kDecoyPortCount>& decoy_port_list() { return kDecoyPortList; }

template <class Value>
BeliefRow<Value> belief_row(std::span<const Hypothesis> hypotheses) {
  BeliefRow<Value> row{};
  row.no_red_fits[0] = hypotheses.empty() ? Value{1} : Value{0};
  for (const auto& [game, probability] : hypotheses) {
    const auto weight = static_cast<Value>(probability);
    row.reds[static_cast<std::size_t>(game.red)] += weight;
    add_to(row.privileged, game.privileged, weight);
    add_to(row.user_seen, game.user_seen, weight);
    add_to(row.user_unseen, game.user_unseen, weight);
    row.outage[0] += game.outage_tenths != 0 ? weight : Value{0};
    add_knowledge(game, weight, row);
    add_next_action(game, weight, row);
    add_to(row.meander_exploited, game.exploited, weight);
    add_to(row.meander_escalated, game.escalated, weight);
    if (game.red == Red::kBLine) add_b_line(game, weight, row);
  }
  return row;
}

template BeliefRow<float> belief_row(std::span<const Hypothesis> hypotheses);
template BeliefRow<double> belief_row(std::span<const Hypothesis> hypotheses);

void write_belief_features(const BeliefFilter& filter, std::span<const std::int64_t> ids,
                           std::span<float> features, std::size_t stride, std::size_t column) {
  float* out = features.data() + column;
  for (const std::int64_t id : ids) {
    const BeliefRow<float> row = belief_row<float>(filter.hypotheses(static_cast<std::size_t>(id)));
    std::memcpy(out, &row, sizeof row);
    out += stride;
  }
}

}  // namespace cagepool
