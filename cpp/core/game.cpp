#include "core/game.hpp"

#include "core/scenarios.hpp"

namespace cagepool {
namespace {

/// State of the OTService and of the session 0 of red, beside the parts that all scenarios share.
void initialize_hosts(const CompiledScenario& /*scenario*/, Game& game, TrueState& true_state) {
  game.ot_pid_known = true;
  true_state.ot_running[kOpServer0] = 1;
  true_state.ot_pid_known[kOpServer0] = 1;
}

void initialize_hosts(const TableScenario& scenario, WideGame& game, WideTrueState& true_state) {
  game.ot_pid_known = scenario.tables().ot;
  for (int host = 0; host < scenario.host_count(); ++host) {
    const bool runs_ot = scenario.runs_ot(host);
    true_state.ot_running[static_cast<std::size_t>(host)] = runs_ot;
    true_state.ot_pid_known[static_cast<std::size_t>(host)] = runs_ot;
  }
  true_state.scenario = static_cast<std::uint16_t>(game.scenario);
}

void clear_game(Game& game) { game = Game{}; }
void clear_game(WideGame& game) {
  const std::uint32_t scenario = game.scenario;
  game = WideGame{};
  game.scenario = scenario;
}

}  // namespace

template <class Scenario>
void initialize_game(BasicSlot<Scenario> slot, std::uint64_t key, std::uint16_t horizon, Red red,
                     Edition edition, bool green) {
  const Scenario scenario = slot.scenario();
  const int entry = scenario.entry();
  auto& game = slot.game();
  clear_game(game);
  game.key = key;
  game.horizon = horizon;
  game.red = red;
  game.edition = edition;
  game.green = green;
  game.phase = Phase::kRunning;
  game.sessions = 1;
  game.privileged = scenario.bit(entry);
  game.known_ip = scenario.initial_ip();
  game.known_host = scenario.bit(entry);
  game.known_nets = static_cast<decltype(game.known_nets)>(scenario.initial_nets());
  game.last_success = Success::kUnknown;
  game.user_pick = kNoHost;
  scenario.count_privileged(game, entry, false, true);

  auto& true_state = slot.true_state();
  true_state = {};
  true_state.access[static_cast<std::size_t>(entry)] = 2;
  true_state.privileged[static_cast<std::size_t>(entry)] = 1;
  true_state.red = red;
  true_state.edition = edition;
  initialize_hosts(scenario, game, true_state);
}

template void initialize_game(BasicSlot<CompiledScenario>, std::uint64_t, std::uint16_t, Red,
                              Edition, bool);
template void initialize_game(BasicSlot<TableScenario>, std::uint64_t, std::uint16_t, Red, Edition,
                              bool);

}  // namespace cagepool
