#include "core/game.hpp"

namespace cagepool {

void initialize_game(Slot slot, std::uint64_t key, std::uint16_t horizon, Red red, Edition edition,
                     bool green) {
  Game& game = slot.game();
  game = Game{};
  game.key = key;
  game.horizon = horizon;
  game.red = red;
  game.edition = edition;
  game.green = green;
  game.phase = Phase::kRunning;
  game.sessions = 1;
  game.privileged = bit(kUser0);
  game.known_ip = bit(kUser0);
  game.known_host = bit(kUser0);
  game.known_nets = static_cast<Byte>(bit(kUserNet));
  game.ot_pid_known = true;
  game.last_success = Success::kUnknown;
  game.user_pick = kNoHost;

  TrueState& true_state = slot.true_state();
  true_state = TrueState{};
  true_state.access[kUser0] = 2;
  true_state.privileged[kUser0] = 1;
  true_state.ot_running = 1;
  true_state.ot_pid_known = 1;
  true_state.red = red;
  true_state.edition = edition;
}

}  // namespace cagepool
