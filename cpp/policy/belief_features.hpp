#pragma once
// The exact belief as input of a network, and as named probabilities for analysts.

#include <span>

#include "core/belief.hpp"
#include "core/red.hpp"

namespace cagepool {

/// Ports that decoys can open on hosts that do not listen on them anyway.
struct DecoyPort {
  std::uint8_t host;
  std::uint8_t rank;  // bit of `Ports`
};
inline constexpr std::size_t kDecoyPortCount = 33;
const std::array<DecoyPort, kDecoyPortCount>& decoy_port_list();

/// Probabilities of one game's belief; all but the last are 0 if no red fits. A row of features is
/// this struct of floats.
template <class Value>
struct BeliefRow {
  template <std::size_t kSize>
  using Values = std::array<Value, kSize>;

  // By host: red has a privileged session; else a user-level one that Remove ends; else one that
  // Remove does not end.
  Values<kHostCount> privileged;
  Values<kHostCount> user_seen;
  Values<kHostCount> user_unseen;
  Values<kHostCount> scanned;                  // red knows ports of the host
  Values<kDecoyPortCount> decoy_ports;         // red believes the port of decoy_port_list() open
  Values<kBLineSteps.size()> b_line_position;  // red is B_lineAgent and plays this position next
  Values<kUserHost.size()> b_line_user;  // red is B_lineAgent and draws, or drew, User1..User4
  Values<6> next_kind;                   // RedKind of red's next action
  Values<kHostCount> next_scan;          // red's next action is a scan of the host
  Values<kHostCount> next_exploit;
  Values<kHostCount> next_escalate;
  Values<kHostCount> meander_exploited;  // red is RedMeanderAgent and has the host in this list
  Values<kHostCount> meander_escalated;
  Values<kBelievableReds> reds;  // posterior of each red agent
  Values<1> outage;              // the OTService is stopped
  Values<1> no_red_fits;
};

inline constexpr std::size_t kBeliefFeatures = sizeof(BeliefRow<float>) / sizeof(float);
static_assert(sizeof(BeliefRow<double>) == kBeliefFeatures * sizeof(double));

/// Probabilities of a belief; without hypotheses no red fits.
template <class Value>
BeliefRow<Value> belief_row(std::span<const Hypothesis> hypotheses);

extern template BeliefRow<float> belief_row(std::span<const Hypothesis> hypotheses);
extern template BeliefRow<double> belief_row(std::span<const Hypothesis> hypotheses);

/// Write the features of the games `ids`, kBeliefFeatures each, to `features`: row i of `stride`
/// floats belongs to ids[i], and its belief begins at `column`.
void write_belief_features(const BeliefFilter& filter, std::span<const std::int64_t> ids,
                           std::span<float> features, std::size_t stride, std::size_t column);

}  // namespace cagepool
