#include "core/trace.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "core/observe.hpp"
#include "core/step.hpp"

namespace cagepool {
namespace {

std::string step_name(std::size_t episode, std::size_t step) {
  return " of episode " + std::to_string(episode) + ", step " + std::to_string(step);
}

/// The draws of one recorded step; the counterpart of RandomDraws.
class RecordedDraws {
 public:
  RecordedDraws(const TraceInput& input, std::size_t episode, std::size_t step)
      : input_(input), episode_(episode), step_(step) {}

  int green_host() const {
    constexpr Mask kGreenTargets = kEnterpriseServers | kUserTargets | bit(kUser0);
    if (input_.green_host == -1) return -1;
    return checked(input_.green_host, kGreenTargets, "green_host", "hosts that green scans");
  }
  int red_target(Mask candidates) const {
    return checked(input_.red_target, candidates, "red_target", "hosts that red may pick");
  }
  int exploit_rank(Ports options) const {
    Mask ids = 0;
    for (int rank = 0; rank < kExploitCount; ++rank) {
      if (options & (1 << rank)) ids |= bit(kExploitOfRank[static_cast<std::size_t>(rank)]);
    }
    const int id = checked(input_.exploit, ids, "exploit", "exploits that red knows a port for");
    return kRankOfExploit[static_cast<std::size_t>(id)];
  }
  bool is_detected() const {
    return checked(input_.detected, 0b11, "detected", "outcomes of detection") != 0;
  }
  int escalated_session(int count) const {
    const auto sessions = static_cast<Mask>((1u << std::min(count, 15)) - 1);
    escalated_ = checked(input_.esc_pick, sessions, "esc_pick", "sessions on the host");
    return escalated_;
  }
  /// The session that the step escalated, or -1.
  int last_escalated_session() const { return escalated_; }

 private:
  int checked(int draw, Mask candidates, const char* field, const char* meaning) const {
    if (draw >= 0 && draw < 16 && (candidates & bit(draw)) != 0) return draw;
    std::string list;
    for (int i = 0; i < 16; ++i) {
      if (candidates & bit(i)) list += (list.empty() ? "" : ", ") + std::to_string(i);
    }
    throw std::invalid_argument(field + step_name(episode_, step_) + " must be among the " +
                                meaning + " (" + list + "), got " + std::to_string(draw));
  }

  const TraceInput& input_;
  std::size_t episode_;
  std::size_t step_;
  mutable int escalated_ = -1;
};

void check_below(int value, int limit, const std::string& name) {
  if (value >= 0 && value < limit) return;
  throw std::invalid_argument(name + " must be below " + std::to_string(limit) + ", got " +
                              std::to_string(value));
}

void check_episodes(std::span<const TraceEpisode> episodes) {
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    const std::string where = " of episode " + std::to_string(i);
    check_below(episodes[i].red, static_cast<int>(Red::kGiven), "ep_red" + where);
    check_below(episodes[i].green, 2, "ep_green" + where);
    check_below(episodes[i].edition, 2, "ep_edition" + where);
  }
}

void check_sizes(std::size_t episodes, std::size_t inputs, std::size_t rows) {
  if (inputs == rows && (episodes == 0 ? inputs == 0 : inputs % episodes == 0)) return;
  throw std::invalid_argument(
      "a trace must have one row per input and as many inputs per episode, "
      "got " +
      std::to_string(rows) + " rows and " + std::to_string(inputs) + " inputs for " +
      std::to_string(episodes) + " episodes");
}

void write_moves(const Moves& moves, TraceRow& row) {
  row.blue_success = static_cast<std::int8_t>(moves.blue_success);
  row.green_host = moves.green_host;
  row.red_kind = static_cast<std::int8_t>(moves.red_kind);
  row.red_target = moves.red_target;
  row.red_success = static_cast<std::int8_t>(moves.red_success);
  row.exploit = moves.exploit;
  row.detected = moves.detected;
}

/// Replay one episode; `number` is its index in the trace.
void replay_episode(const TraceEpisode& episode, std::size_t number,
                    std::span<const TraceInput> inputs, std::span<TraceRow> rows) {
  Game game{};
  TrueState true_state{};
  std::vector<Session> session_log(inputs.size());
  const GameStore store{&game, &true_state, session_log.data(), session_log.size()};
  const Slot slot{store, 0};
  initialize_game(slot, 0, 0, static_cast<Red>(episode.red), static_cast<Edition>(episode.edition),
                  episode.green != 0);
  for (std::size_t step = 0; step < inputs.size(); ++step) {
    const int action = inputs[step].blue_action;
    if (action >= kActionCount)
      check_below(action, kActionCount, "blue_action" + step_name(number, step));
    const RecordedDraws draws(inputs[step], number, step);
    const StepResult result = play_step(slot, action, RedAction{}, draws, IgnoreFixes{});
    TraceRow& row = rows[step];
    row = {};
    expand_observation(result.observation, row.obs.data());
    row.reward_tenths = static_cast<std::int16_t>(result.reward_tenths);
    write_moves(result.moves, row);
    row.esc_pick = static_cast<std::int8_t>(draws.last_escalated_session());
    write_state(game, true_state, row);
  }
}

}  // namespace

void write_state(const Game& game, const TrueState& true_state, TraceRow& row) {
  for (int host = 0; host < kHostCount; ++host) {
    const auto h = static_cast<std::size_t>(host);
    const auto count = [](Byte sessions) {
      return static_cast<std::int8_t>(std::min<int>(sessions, 127));
    };
    row.s_priv[h] = count(true_state.privileged[h]);
    row.s_user_seen[h] = count(true_state.user_seen[h]);
    row.s_user_unseen[h] = count(true_state.user_unseen[h]);
    row.s_decoys[h] = true_state.decoys[h];
    row.s_malware[h] = static_cast<std::int8_t>(true_state.malware[h]);
    row.s_known_ip[h] = (game.known_ip >> host) & 1;
    row.s_known_host[h] = (game.known_host >> host) & 1;
    unsigned ports = game.red_ports[h] != 0 ? 256u : 0u;
    for (std::size_t id = 0; id < kExploitCount; ++id) {
      ports |= static_cast<unsigned>((game.red_ports[h] >> kRankOfExploit[id]) & 1) << id;
    }
    row.s_red_ports[h] = static_cast<std::uint16_t>(ports);
  }
  for (int net = 0; net < kSubnetCount; ++net)
    row.s_known_net[static_cast<std::size_t>(net)] = (game.known_nets >> net) & 1;
  row.s_ot = {game.outage_tenths == 0, game.ot_pid_known, game.ot_service_known};
  row.s_bline_pos =
      game.red == Red::kBLine ? static_cast<std::int8_t>(game.position) : std::int8_t{-1};
  row.s_meander = {game.scanned, game.exploited, game.escalated, game.mapped};
}

void replay(std::span<const TraceEpisode> episodes, std::span<const TraceInput> inputs,
            std::span<TraceRow> rows) {
  check_sizes(episodes.size(), inputs.size(), rows.size());
  check_episodes(episodes);
  for (std::size_t episode = 0; episode < episodes.size(); ++episode) {
    const std::size_t steps = inputs.size() / episodes.size();
    replay_episode(episodes[episode], episode, inputs.subspan(episode * steps, steps),
                   rows.subspan(episode * steps, steps));
  }
}

}  // namespace cagepool
