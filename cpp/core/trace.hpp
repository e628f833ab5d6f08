#pragma once
// Replay of recorded games (docs/traces.md): the random draws come from the recording, everything
// else from the rules.

#include <span>

#include "core/scenarios.hpp"

namespace cagepool {

/// Settings of one recorded episode.
struct TraceEpisode {
  std::int8_t red;
  std::int8_t green;
  std::int8_t edition;
};

/// Blue's action, the random draws and, if the caller played red, red's action of one recorded
/// step.
struct TraceInput {
  std::uint16_t blue_action;
  std::int8_t green_host;
  std::int8_t red_target;
  std::int8_t exploit;
  std::int8_t detected;
  std::int8_t esc_pick;
  std::int8_t decoy_pick;
  std::int8_t red_kind;  // kInvalidRedKind: CybORG refused the action
  std::int8_t unused;
};
inline constexpr std::int8_t kInvalidRedKind = static_cast<std::int8_t>(RedKind::kImpact) + 1;

/// One replayed step and the state after it, under the field names of a trace. Arrays have the
/// hosts, slots or subnets of the scenario first.
struct TraceRow {
  std::array<std::uint8_t, 4 * kMaxHosts> obs;
  std::array<std::uint16_t, kMaxHosts> s_decoys;
  std::array<std::uint16_t, kMaxHosts> s_red_ports;
  std::array<std::uint8_t, 4 * kMaxHosts> s_meander;  // four lists of hosts
  std::int16_t reward_tenths;
  std::array<std::int8_t, kMaxHosts> s_priv;
  std::array<std::int8_t, kMaxHosts> s_user_seen;
  std::array<std::int8_t, kMaxHosts> s_user_unseen;
  std::array<std::int8_t, kMaxHosts> s_malware;
  std::array<std::int8_t, kMaxHosts> s_known_ip;
  std::array<std::int8_t, kMaxHosts> s_known_host;
  std::array<std::int8_t, kMaxHosts> s_ot_running;
  std::array<std::int8_t, kMaxHosts> s_ot_pid_known;
  std::array<std::int8_t, kMaxSubnets> s_known_net;
  std::int8_t s_ot_known;
  std::int8_t s_bline_pos;
  std::int8_t blue_success;
  std::int8_t green_host;
  std::int8_t decoy_pick;
  std::int8_t red_kind;
  std::int8_t red_target;
  std::int8_t red_success;
  std::int8_t exploit;
  std::int8_t detected;
  std::int8_t esc_pick;
  std::int8_t unused;
};

/// Replay episodes of equal length. `inputs` and `rows` are (episode, step) in row-major order.
///
/// @param scenarios The scenario, for TableScenario, with blue's actions by index.
///
/// Throws std::invalid_argument, with episode and step, if a draw is not among its candidates.
template <class Scenario>
void replay(const typename Scenario::Scenarios& scenarios, std::span<const TraceEpisode> episodes,
            std::span<const TraceInput> inputs, std::span<TraceRow> rows);

/// Write the fields `s_*` of a row from the state of a game.
template <class Scenario>
void write_state(BasicSlot<Scenario> slot, TraceRow& row);

}  // namespace cagepool
