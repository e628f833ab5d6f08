#pragma once
// Recorded games played again: the random picks come from the recording, all else from the rules.

#include <span>
#include <string>

#include "core/step.hpp"

namespace cagepool {

/// The inputs of a trace, (episode) or (episode, step) in row-major order (docs/traces.md).
struct TraceInputs {
  std::size_t episodes;
  std::size_t steps;
  std::span<const std::int8_t> red;
  std::span<const std::int8_t> green;
  std::span<const std::int8_t> edition;
  std::span<const std::uint8_t> blue_action;
  std::span<const std::int8_t> green_host;
  std::span<const std::int8_t> red_target;
  std::span<const std::int8_t> exploit;
  std::span<const std::int8_t> detected;
  std::span<const std::int8_t> esc_pick;
};

/// One step of a replay, the state at its end included; the fields of a trace under their names.
struct TraceRow {
  std::array<std::uint8_t, kObservationSize> obs;
  std::array<std::uint16_t, kHosts> s_decoys;
  std::array<std::uint16_t, kHosts> s_red_ports;
  std::array<std::uint16_t, 4> s_meander;
  std::int16_t reward_tenths;
  std::array<std::int8_t, kHosts> s_priv;
  std::array<std::int8_t, kHosts> s_user_seen;
  std::array<std::int8_t, kHosts> s_user_unseen;
  std::array<std::int8_t, kHosts> s_malware;
  std::array<std::int8_t, kHosts> s_known_ip;
  std::array<std::int8_t, kHosts> s_known_host;
  std::array<std::int8_t, kSubnets> s_known_net;
  std::array<std::int8_t, 3> s_ot;
  std::int8_t s_bline_pos;
  std::int8_t blue_success;
  std::int8_t green_host;
  std::int8_t red_kind;
  std::int8_t red_target;
  std::int8_t red_success;
  std::int8_t exploit;
  std::int8_t detected;
  std::int8_t esc_pick;
  std::int8_t unused;
};

/// Throws std::invalid_argument, naming episode and step, for a pick that is not among the
/// candidates.
void replay(const TraceInputs& inputs, std::span<TraceRow> rows);

/// Fill in what the state of one game shows, at the end of a step.
void describe(const Game& game, const TrueState& truth, TraceRow& row);

}  // namespace cagepool
