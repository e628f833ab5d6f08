#pragma once
// The members of the structs that cross as bytes, so that Python need not retype them.

#include <cstddef>
#include <tuple>
#include <vector>

#include "core/trace.hpp"

namespace cagepool {

/// Name, NumPy type, offset and count of one member of a struct.
using Field = std::tuple<const char*, const char*, std::size_t, std::size_t>;

inline std::vector<Field> true_state_fields() {
  return {{"decoys", "u2", offsetof(TrueState, decoys), kHosts},
          {"access", "u1", offsetof(TrueState, access), kHosts},
          {"privileged", "u1", offsetof(TrueState, privileged), kHosts},
          {"user_seen", "u1", offsetof(TrueState, user_seen), kHosts},
          {"user_unseen", "u1", offsetof(TrueState, user_unseen), kHosts},
          {"malware", "u1", offsetof(TrueState, malware), kHosts},
          {"compromised", "u1", offsetof(TrueState, compromised), kHosts},
          {"ot_running", "u1", offsetof(TrueState, ot_running), 1},
          {"ot_pid_known", "u1", offsetof(TrueState, ot_pid_known), 1},
          {"ot_service_known", "u1", offsetof(TrueState, ot_service_known), 1},
          {"mail_immune", "u1", offsetof(TrueState, mail_immune), 1},
          {"red", "u1", offsetof(TrueState, red), 1},
          {"edition", "u1", offsetof(TrueState, edition), 1}};
}

inline std::vector<Field> moves_fields() {
  return {{"blue_action", "u1", offsetof(Moves, blue_action), 1},
          {"blue_success", "i1", offsetof(Moves, blue_success), 1},
          {"red_kind", "i1", offsetof(Moves, red_kind), 1},
          {"red_target", "i1", offsetof(Moves, red_target), 1},
          {"red_success", "i1", offsetof(Moves, red_success), 1},
          {"exploit", "i1", offsetof(Moves, exploit), 1},
          {"detected", "i1", offsetof(Moves, detected), 1},
          {"green_host", "i1", offsetof(Moves, green_host), 1}};
}

inline std::vector<Field> trace_fields() {
  return {{"obs", "u1", offsetof(TraceRow, obs), kObservationSize},
          {"s_decoys", "u2", offsetof(TraceRow, s_decoys), kHosts},
          {"s_red_ports", "u2", offsetof(TraceRow, s_red_ports), kHosts},
          {"s_meander", "u2", offsetof(TraceRow, s_meander), 4},
          {"reward_tenths", "i2", offsetof(TraceRow, reward_tenths), 1},
          {"s_priv", "i1", offsetof(TraceRow, s_priv), kHosts},
          {"s_user_seen", "i1", offsetof(TraceRow, s_user_seen), kHosts},
          {"s_user_unseen", "i1", offsetof(TraceRow, s_user_unseen), kHosts},
          {"s_malware", "i1", offsetof(TraceRow, s_malware), kHosts},
          {"s_known_ip", "i1", offsetof(TraceRow, s_known_ip), kHosts},
          {"s_known_host", "i1", offsetof(TraceRow, s_known_host), kHosts},
          {"s_known_net", "i1", offsetof(TraceRow, s_known_net), kSubnets},
          {"s_ot", "i1", offsetof(TraceRow, s_ot), 3},
          {"s_bline_pos", "i1", offsetof(TraceRow, s_bline_pos), 1},
          {"blue_success", "i1", offsetof(TraceRow, blue_success), 1},
          {"green_host", "i1", offsetof(TraceRow, green_host), 1},
          {"red_kind", "i1", offsetof(TraceRow, red_kind), 1},
          {"red_target", "i1", offsetof(TraceRow, red_target), 1},
          {"red_success", "i1", offsetof(TraceRow, red_success), 1},
          {"exploit", "i1", offsetof(TraceRow, exploit), 1},
          {"detected", "i1", offsetof(TraceRow, detected), 1},
          {"esc_pick", "i1", offsetof(TraceRow, esc_pick), 1}};
}

}  // namespace cagepool
