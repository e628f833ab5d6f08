#pragma once
// Members of the structs that Python reads or writes as NumPy structured arrays. Types, offsets and
// sizes come from the structs themselves.

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/buffers.hpp"
#include "core/episode.hpp"
#include "core/trace.hpp"
#include "policy/belief_features.hpp"
#include "policy/encoder.hpp"

namespace cagepool {

/// Name, NumPy type, offset and number of values of one member.
using Field = std::tuple<const char*, std::string, std::size_t, std::size_t>;

template <class Struct, class Member>
Field field(const char* name, Member Struct::* member) {
  static constexpr Struct kInstance{};
  const auto offset = reinterpret_cast<const char*>(&(kInstance.*member)) -
                      reinterpret_cast<const char*>(&kInstance);
  return {name, numpy_type<typename RowType<Member>::Scalar>(), static_cast<std::size_t>(offset),
          RowType<Member>::kColumns};
}

/// A session of red in its log.
struct SessionRow {
  std::uint8_t host;
  std::uint8_t alive;
  std::uint8_t privileged;
  std::uint8_t seen;
  std::uint8_t ssh;
  std::int8_t exploit;  // that opened it; -1: the log does not say it
};

template <class Scenario>
SessionRow session_row(typename Scenario::Session session) {
  using Bits = typename Scenario::Bits;
  const auto has = [session](auto flag) { return std::uint8_t{(session & flag) != 0}; };
  const int exploit = [session] {
    if constexpr (Bits::kHasExploit) return (session >> Bits::kExploitShift) & 7;
    return -1;
  }();
  return {.host = static_cast<std::uint8_t>(session & Bits::kHost),
          .alive = has(Bits::kAlive),
          .privileged = has(Bits::kPrivileged),
          .seen = has(Bits::kSeen),
          .ssh = has(Bits::kSsh),
          .exploit = static_cast<std::int8_t>(exploit)};
}

/// Size in bytes and members of a struct.
using StructLayout = std::tuple<std::size_t, std::vector<Field>>;

inline std::vector<Field> game_config_fields() {
  return {field("seed", &GameConfig::seed),
          field("next_episode", &GameConfig::next_episode),
          field("horizon", &GameConfig::horizon),
          field("reds", &GameConfig::reds),
          field("edition", &GameConfig::edition),
          field("green", &GameConfig::green),
          field("red_shares", &GameConfig::red_shares)};
}

inline std::vector<Field> game_fields() {
  return {field("key", &Game::key),
          field("blue_table", &Game::blue_table),
          field("observation", &Game::observation),
          field("return_tenths", &Game::return_tenths),
          field("step", &Game::step),
          field("horizon", &Game::horizon),
          field("sessions", &Game::sessions),
          field("privileged", &Game::privileged),
          field("user_seen", &Game::user_seen),
          field("user_unseen", &Game::user_unseen),
          field("malware", &Game::malware),
          field("known_ip", &Game::known_ip),
          field("known_host", &Game::known_host),
          field("scanned", &Game::scanned),
          field("exploited", &Game::exploited),
          field("escalated", &Game::escalated),
          field("mapped", &Game::mapped),
          field("last_exploit", &Game::last_exploit),
          field("last_host", &Game::last_host),
          field("known_nets", &Game::known_nets),
          field("outage_tenths", &Game::outage_tenths),
          field("ot_pid_known", &Game::ot_pid_known),
          field("ot_service_known", &Game::ot_service_known),
          field("last_scan_empty", &Game::last_scan_empty),
          field("last_success", &Game::last_success),
          field("red", &Game::red),
          field("edition", &Game::edition),
          field("green", &Game::green),
          field("phase", &Game::phase),
          field("mail_immune", &Game::mail_immune),
          field("position", &Game::position),
          field("user_pick", &Game::user_pick),
          field("reached_12", &Game::reached_12),
          field("swept", &Game::swept),
          field("red_ports", &Game::red_ports)};
}

template <class State>
std::vector<Field> true_state_fields() {
  return {field("decoys", &State::decoys),
          field("access", &State::access),
          field("privileged", &State::privileged),
          field("user_seen", &State::user_seen),
          field("user_unseen", &State::user_unseen),
          field("malware", &State::malware),
          field("compromised", &State::compromised),
          field("ot_running", &State::ot_running),
          field("ot_pid_known", &State::ot_pid_known),
          field("mail_immune", &State::mail_immune),
          field("ot_service_known", &State::ot_service_known),
          field("red", &State::red),
          field("edition", &State::edition),
          field("scenario", &State::scenario)};
}

inline std::vector<Field> moves_fields() {
  // The outcomes are the first member of Moves.
  return {
      field("blue_action", &Moves::blue_action),    field("blue_success", &Outcomes::blue_success),
      field("red_kind", &Outcomes::red_kind),       field("red_target", &Outcomes::red_target),
      field("red_success", &Outcomes::red_success), field("exploit", &Outcomes::exploit),
      field("detected", &Outcomes::detected),       field("green_host", &Outcomes::green_host),
      field("decoy_pick", &Outcomes::decoy_pick)};
}

inline std::vector<Field> trace_episode_fields() {
  return {field("red", &TraceEpisode::red), field("green", &TraceEpisode::green),
          field("edition", &TraceEpisode::edition)};
}

inline std::vector<Field> trace_input_fields() {
  return {
      field("blue_action", &TraceInput::blue_action), field("green_host", &TraceInput::green_host),
      field("red_target", &TraceInput::red_target),   field("exploit", &TraceInput::exploit),
      field("detected", &TraceInput::detected),       field("esc_pick", &TraceInput::esc_pick),
      field("decoy_pick", &TraceInput::decoy_pick),   field("red_kind", &TraceInput::red_kind)};
}

inline std::vector<Field> trace_row_fields() {
  using Row = TraceRow;
  return {field("obs", &Row::obs),
          field("s_decoys", &Row::s_decoys),
          field("s_red_ports", &Row::s_red_ports),
          field("s_meander", &Row::s_meander),
          field("reward_tenths", &Row::reward_tenths),
          field("s_priv", &Row::s_priv),
          field("s_user_seen", &Row::s_user_seen),
          field("s_user_unseen", &Row::s_user_unseen),
          field("s_malware", &Row::s_malware),
          field("s_known_ip", &Row::s_known_ip),
          field("s_known_host", &Row::s_known_host),
          field("s_ot_running", &Row::s_ot_running),
          field("s_ot_pid_known", &Row::s_ot_pid_known),
          field("s_known_net", &Row::s_known_net),
          field("s_ot_known", &Row::s_ot_known),
          field("s_bline_pos", &Row::s_bline_pos),
          field("blue_success", &Row::blue_success),
          field("green_host", &Row::green_host),
          field("decoy_pick", &Row::decoy_pick),
          field("red_kind", &Row::red_kind),
          field("red_target", &Row::red_target),
          field("red_success", &Row::red_success),
          field("exploit", &Row::exploit),
          field("detected", &Row::detected),
          field("esc_pick", &Row::esc_pick)};
}

inline std::vector<Field> session_fields() {
  using Row = SessionRow;
  return {
      field("host", &Row::host), field("alive", &Row::alive), field("privileged", &Row::privileged),
      field("seen", &Row::seen), field("ssh", &Row::ssh),     field("exploit", &Row::exploit)};
}

/// Tables of a scenario. The services of hosts and the targets of B_lineAgent are rows of bytes.
inline std::vector<Field> scenario_fields() {
  using Tables = ScenarioTables;
  return {field("hosts", &Tables::hosts),
          field("agents", &Tables::agents),
          field("monitored", &Tables::monitored),
          field("open_hosts", &Tables::open_hosts),
          field("gated_hosts", &Tables::gated_hosts),
          field("gate", &Tables::gate),
          field("meander_op", &Tables::meander_op),
          field("meander_ent", &Tables::meander_ent),
          field("impact_host", &Tables::impact_host),
          field("b_line_users", &Tables::b_line_users),
          field("open_nets", &Tables::open_nets),
          field("gated_nets", &Tables::gated_nets),
          field("blue_kinds", &Tables::blue_kinds),
          field("host_count", &Tables::host_count),
          field("subnet_count", &Tables::subnet_count),
          field("entry", &Tables::entry),
          field("playable_reds", &Tables::playable_reds),
          field("blue_after_red", &Tables::blue_after_red),
          field("blue_after_green", &Tables::blue_after_green),
          field("same_slots", &Tables::same_slots),
          field("green_hosts", &Tables::green_hosts),
          field("windows", &Tables::windows),
          field("mail", &Tables::mail),
          field("ot", &Tables::ot),
          field("reveals_ot", &Tables::reveals_ot),
          field("initial_ip", &Tables::initial_ip),
          field("initial_nets", &Tables::initial_nets),
          field("services", &Tables::services),
          field("b_line_targets", &Tables::b_line_targets),
          field("revealed_hosts", &Tables::revealed_hosts),
          field("revealed_nets", &Tables::revealed_nets),
          field("confidentiality_tenths", &Tables::confidentiality_tenths),
          field("availability_tenths", &Tables::availability_tenths),
          field("subnet_hosts", &Tables::subnet_hosts),
          field("type_hosts", &Tables::type_hosts),
          field("slot_of_host", &Tables::slot_of_host),
          field("host_of_slot", &Tables::host_of_slot),
          field("hash", &Tables::hash)};
}

inline std::vector<Field> belief_fields() {
  using Row = BeliefRow<double>;
  return {field("privileged", &Row::privileged),
          field("user_seen", &Row::user_seen),
          field("user_unseen", &Row::user_unseen),
          field("scanned", &Row::scanned),
          field("decoy_ports", &Row::decoy_ports),
          field("b_line_position", &Row::b_line_position),
          field("b_line_user", &Row::b_line_user),
          field("next_kind", &Row::next_kind),
          field("next_scan", &Row::next_scan),
          field("next_exploit", &Row::next_exploit),
          field("next_escalate", &Row::next_escalate),
          field("meander_exploited", &Row::meander_exploited),
          field("meander_escalated", &Row::meander_escalated),
          field("reds", &Row::reds),
          field("outage", &Row::outage),
          field("no_red_fits", &Row::no_red_fits)};
}

inline std::vector<Field> belief_state_fields() {
  return {field("log_evidence", &BeliefState::log_evidence),
          field("dropped_mass", &BeliefState::dropped_mass),
          field("dropped", &BeliefState::dropped),
          field("observation", &BeliefState::observation),
          field("step", &BeliefState::step),
          field("count", &BeliefState::count),
          field("decoys", &BeliefState::decoys)};
}

inline std::vector<Field> history_fields() {
  return {field("scanned", &History::scanned),
          field("exploited", &History::exploited),
          field("latest", &History::latest),
          field("restored", &History::restored),
          field("step", &History::step),
          field("scenario", &History::scenario),
          field("last_kind", &History::last_kind),
          field("last_slot", &History::last_slot),
          field("order", &History::order),
          field("decoys", &History::decoys),
          field("misinforms", &History::misinforms)};
}

/// Layouts by the names that Python uses.
inline std::map<std::string, StructLayout> struct_layouts() {
  return {{"game_config", {sizeof(GameConfig), game_config_fields()}},
          {"game", {sizeof(Game), game_fields()}},
          {"true_state", {sizeof(WideTrueState), true_state_fields<WideTrueState>()}},
          {"cage2_true_state", {sizeof(TrueState), true_state_fields<TrueState>()}},
          {"moves", {sizeof(Moves), moves_fields()}},
          {"trace_episode", {sizeof(TraceEpisode), trace_episode_fields()}},
          {"trace_input", {sizeof(TraceInput), trace_input_fields()}},
          {"trace_row", {sizeof(TraceRow), trace_row_fields()}},
          {"session", {sizeof(SessionRow), session_fields()}},
          {"scenario", {sizeof(ScenarioTables), scenario_fields()}},
          {"belief", {sizeof(BeliefRow<double>), belief_fields()}},
          {"belief_state", {sizeof(BeliefState), belief_state_fields()}},
          {"history", {sizeof(History), history_fields()}}};
}

}  // namespace cagepool
