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

  template <class Scenario>
  int green_host(const Scenario& scenario) const {
    if (input_.green_host == -1) return -1;
    std::uint64_t hosts = 0;
    for (std::size_t i = 0; i < kGreenHosts.size(); ++i) {
      const int host = scenario.green_host(i);
      if (host >= 0) hosts |= std::uint64_t{1} << host;
    }
    return checked(input_.green_host, hosts, "green_host", "hosts that green scans");
  }
  int misinform_decoy(std::uint8_t choices) const {
    std::uint64_t ids = 0;
    int index = 0;
    for (std::size_t i = 0; i < kMisinformDecoys.size(); ++i) {
      const int id = kMisinformDecoys[i].id;
      if ((choices >> i) & 1) ids |= std::uint64_t{1} << id;
      if (id == input_.decoy_pick) index = static_cast<int>(i);
    }
    checked(input_.decoy_pick, ids, "decoy_pick", "decoys that Misinform may place");
    return index;
  }
  int red_target(std::uint64_t candidates) const {
    return checked(input_.red_target, candidates, "red_target", "hosts that red may pick");
  }
  int exploit_rank(Ports options) const {
    std::uint64_t ids = 0;
    for (int rank = 0; rank < kExploitCount; ++rank) {
      if (options & (1 << rank))
        ids |= std::uint64_t{1} << kExploitOfRank[static_cast<std::size_t>(rank)];
    }
    const int id = checked(input_.exploit, ids, "exploit", "exploits that red knows a port for");
    return kRankOfExploit[static_cast<std::size_t>(id)];
  }
  bool is_detected() const {
    return checked(input_.detected, 0b11, "detected", "outcomes of detection") != 0;
  }
  int escalated_session(int count) const {
    const std::uint64_t sessions = (std::uint64_t{1} << std::min(count, 63)) - 1;
    escalated_ = checked(input_.esc_pick, sessions, "esc_pick", "sessions on the host");
    return escalated_;
  }
  /// The session that the step escalated, or -1.
  int last_escalated_session() const { return escalated_; }

 private:
  int checked(int draw, std::uint64_t candidates, const char* field, const char* meaning) const {
    if (draw >= 0 && draw < 64 && ((candidates >> draw) & 1u) != 0) return draw;
    std::string list;
    for (int i = 0; i < 64; ++i) {
      if ((candidates >> i) & 1u) list += (list.empty() ? "" : ", ") + std::to_string(i);
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

void check_episodes(std::span<const TraceEpisode> episodes, unsigned playable_reds) {
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    const std::string where = " of episode " + std::to_string(i);
    check_below(episodes[i].red, kRedCount, "ep_red" + where);
    check_below(episodes[i].green, 2, "ep_green" + where);
    check_below(episodes[i].edition, 2, "ep_edition" + where);
    if (((playable_reds >> episodes[i].red) & 1u) == 0) {
      throw std::invalid_argument("ep_red" + where +
                                  " must be an agent that can play, got number " +
                                  std::to_string(episodes[i].red));
    }
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

void write_outcomes(const Outcomes& moves, TraceRow& row) {
  row.blue_success = static_cast<std::int8_t>(moves.blue_success);
  row.green_host = moves.green_host;
  row.red_kind = static_cast<std::int8_t>(moves.red_kind);
  row.red_target = moves.red_target;
  row.red_success = static_cast<std::int8_t>(moves.red_success);
  row.exploit = moves.exploit;
  row.detected = moves.detected;
  row.decoy_pick = moves.decoy_pick;
}

unsigned playable_reds(const CompiledScenario::Scenarios& /*scenarios*/) {
  return (1u << static_cast<int>(Red::kGiven)) - 1;
}
unsigned playable_reds(const TableScenario::Scenarios& scenarios) {
  return scenarios.tables[0].playable_reds;
}

/// The recorded action of a red agent that the caller played; refused ones do nothing.
template <class Scenario>
RedAction given_action(BasicSlot<Scenario> slot, const TraceInput& input, std::size_t episode,
                       std::size_t step) {
  if (slot.game().red != Red::kGiven || input.red_kind == kInvalidRedKind) return {};
  check_below(input.red_kind, kInvalidRedKind, "red_kind" + step_name(episode, step));
  const auto kind = static_cast<RedKind>(input.red_kind);
  if (kind == RedKind::kSleep) return {};
  const Scenario scenario = slot.scenario();
  const int limit = kind == RedKind::kSweep ? scenario.subnet_count() : scenario.host_count();
  check_below(input.red_target, limit, "red_target" + step_name(episode, step));
  return {kind, input.red_target};
}

/// Write how CybORG reports an action that it refused.
void write_invalid(TraceRow& row) {
  row.red_kind = kInvalidRedKind;
  row.red_success = static_cast<std::int8_t>(Success::kFalse);
}

template <class Scenario>
struct ReplayedGame {
  typename Scenario::Game game{};
  typename Scenario::TrueState true_state{};
  std::vector<typename Scenario::Session> session_log;
};

/// Replay one episode; `number` is its index in the trace.
template <class Scenario>
void replay_episode(const typename Scenario::Scenarios& scenarios, const TraceEpisode& episode,
                    std::size_t number, std::span<const TraceInput> inputs,
                    std::span<TraceRow> rows) {
  ReplayedGame<Scenario> replayed;
  replayed.session_log.resize(inputs.size());
  const BasicGameStore<Scenario> store{&replayed.game, &replayed.true_state,
                                       replayed.session_log.data(), inputs.size(), scenarios};
  const BasicSlot<Scenario> slot{store, 0};
  initialize_game(slot, 0, 0, static_cast<Red>(episode.red), static_cast<Edition>(episode.edition),
                  episode.green != 0);
  const int actions = static_cast<int>(action_count(scenarios));
  for (std::size_t step = 0; step < inputs.size(); ++step) {
    const TraceInput& input = inputs[step];
    const int action = input.blue_action;
    if (action >= actions) check_below(action, actions, "blue_action" + step_name(number, step));
    const RecordedDraws draws(input, number, step);
    const RedAction given = given_action(slot, input, number, step);
    const auto result = play_step(slot, action, given, draws, IgnoreFixes{});
    TraceRow& row = rows[step];
    row = {};
    row.reward_tenths = static_cast<std::int16_t>(result.reward_tenths);
    write_outcomes(result.outcomes, row);
    row.esc_pick = static_cast<std::int8_t>(draws.last_escalated_session());
    const std::size_t columns = 4 * static_cast<std::size_t>(slot.scenario().host_count());
    write_values(slot.scenario(), result.observation, columns, row.obs.data());
    if (replayed.game.red == Red::kGiven && input.red_kind == kInvalidRedKind) write_invalid(row);
    write_state(slot, row);
  }
}

}  // namespace

template <class Scenario>
void write_state(BasicSlot<Scenario> slot, TraceRow& row) {
  const Scenario scenario = slot.scenario();
  const auto& game = slot.game();
  const auto& true_state = slot.true_state();
  const std::array<typename Scenario::Mask, 4> lists{game.scanned, game.exploited, game.escalated,
                                                     game.mapped};
  for (int host = 0; host < scenario.host_count(); ++host) {
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
    unsigned ports = scenario.knows_ports(game, h) ? 256u : 0u;
    for (std::size_t id = 0; id < kExploitCount; ++id) {
      ports |= static_cast<unsigned>((game.red_ports[h] >> kRankOfExploit[id]) & 1) << id;
    }
    row.s_red_ports[h] = static_cast<std::uint16_t>(ports);
    row.s_ot_running[h] = static_cast<std::int8_t>(true_state.ot_running[h]);
    row.s_ot_pid_known[h] = static_cast<std::int8_t>(true_state.ot_pid_known[h]);
    for (std::size_t list = 0; list < lists.size(); ++list)
      row.s_meander[kMaxHosts * list + h] = (lists[list] >> host) & 1u;
  }
  row.s_ot_known = game.ot_service_known;
  for (int net = 0; net < scenario.subnet_count(); ++net)
    row.s_known_net[static_cast<std::size_t>(net)] = (game.known_nets >> net) & 1;
  row.s_bline_pos =
      game.red == Red::kBLine ? static_cast<std::int8_t>(game.position) : std::int8_t{-1};
}

template <class Scenario>
void replay(const typename Scenario::Scenarios& scenarios, std::span<const TraceEpisode> episodes,
            std::span<const TraceInput> inputs, std::span<TraceRow> rows) {
  check_sizes(episodes.size(), inputs.size(), rows.size());
  check_episodes(episodes, playable_reds(scenarios));
  for (std::size_t episode = 0; episode < episodes.size(); ++episode) {
    const std::size_t steps = inputs.size() / episodes.size();
    replay_episode<Scenario>(scenarios, episodes[episode], episode,
                             inputs.subspan(episode * steps, steps),
                             rows.subspan(episode * steps, steps));
  }
}

template void replay<CompiledScenario>(const CompiledScenario::Scenarios&,
                                       std::span<const TraceEpisode>, std::span<const TraceInput>,
                                       std::span<TraceRow>);
template void replay<TableScenario>(const TableScenario::Scenarios&, std::span<const TraceEpisode>,
                                    std::span<const TraceInput>, std::span<TraceRow>);
template void write_state(BasicSlot<CompiledScenario>, TraceRow&);
template void write_state(BasicSlot<TableScenario>, TraceRow&);

}  // namespace cagepool
