#pragma once
// Replay of recorded games (docs/traces.md): the random draws come from the recording, everything
// else from the rules.

#include <span>

#include "core/game.hpp"

namespace cagepool {

/// Settings of one recorded episode.
struct TraceEpisode {
  std::int8_t red;
  std::int8_t green;
  std::int8_t edition;
};

/// Blue's action and the random draws of one recorded step.
struct TraceInput {
  std::uint8_t blue_action;
  std::int8_t green_host;
  std::int8_t red_target;
  std::int8_t exploit;
  std::int8_t detected;
  std::int8_t esc_pick;
};

/// One replayed step and the state after it, under the field names of a trace.
struct TraceRow {
  std::array<std::uint8_t, kObservationSize> obs;
  std::array<std::uint16_t, kHostCount> s_decoys;
  std::array<std::uint16_t, kHostCount> s_red_ports;
  std::array<std::uint16_t, 4> s_meander;
  std::int16_t reward_tenths;
  std::array<std::int8_t, kHostCount> s_priv;
  std::array<std::int8_t, kHostCount> s_user_seen;
  std::array<std::int8_t, kHostCount> s_user_unseen;
  std::array<std::int8_t, kHostCount> s_malware;
  std::array<std::int8_t, kHostCount> s_known_ip;
  std::array<std::int8_t, kHostCount> s_known_host;
  std::array<std::int8_t, kSubnetCount> s_known_net;
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

/// Replay episodes of equal length. `inputs` and `rows` are (episode, step) in row-major order.
///
/// Throws std::invalid_argument, with episode and step, if a draw is not among its candidates.
void replay(std::span<const TraceEpisode> episodes, std::span<const TraceInput> inputs,
            std::span<TraceRow> rows);

/// Write the fields `s_*` of a row from the state of a game.
void write_state(const Game& game, const TrueState& true_state, TraceRow& row);

}  // namespace cagepool
