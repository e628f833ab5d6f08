#include "core/trace.hpp"

#include <stdexcept>
#include <vector>

#include "core/observe.hpp"

namespace cagepool {
namespace {

/// The seam of random.hpp, fed from one row of a recording.
class FedDraws {
 public:
  FedDraws(const TraceInputs& inputs, std::size_t row) : inputs_(inputs), row_(row) {}

  int green() const {
    const int host = inputs_.green_host[row_];
    constexpr Mask kGreenTargets = kEnterpriseServers | kUserTargets | bit(kUser0);
    if (host != -1) require(host, kGreenTargets, "green_host", "hosts that green scans");
    return host;
  }
  int target(Mask candidates) const {
    return require(inputs_.red_target[row_], candidates, "red_target", "hosts that red may pick");
  }
  int exploit(Ports options) const {
    Mask ids = 0;
    for (int rank = 0; rank < kExploits; ++rank) {
      if (options & (1 << rank)) ids |= bit(kExploitOfRank[static_cast<std::size_t>(rank)]);
    }
    const int id =
        require(inputs_.exploit[row_], ids, "exploit", "exploits that red knows a port for");
    return kRankOfExploit[static_cast<std::size_t>(id)];
  }
  bool detected() const {
    return require(inputs_.detected[row_], 0b11, "detected", "outcomes of detection") != 0;
  }
  int session(int count) const {
    const auto sessions = static_cast<Mask>((1u << std::min(count, 15)) - 1);
    picked_ = require(inputs_.esc_pick[row_], sessions, "esc_pick", "sessions on the host");
    return picked_;
  }
  int picked() const { return picked_; }

 private:
  int require(int pick, Mask candidates, const char* field, const char* what) const {
    if (pick >= 0 && pick < 16 && (candidates & bit(pick)) != 0) return pick;
    std::string list;
    for (int i = 0; i < 16; ++i) {
      if (candidates & bit(i)) list += (list.empty() ? "" : ", ") + std::to_string(i);
    }
    throw std::invalid_argument(std::string(field) + " of episode " +
                                std::to_string(row_ / inputs_.steps) + ", step " +
                                std::to_string(row_ % inputs_.steps) + " must be among the " +
                                what + " (" + list + "), got " + std::to_string(pick));
  }

  const TraceInputs& inputs_;
  std::size_t row_;
  mutable int picked_ = -1;
};

void check(const TraceInputs& inputs) {
  const auto check_all = [](auto values, int limit, const char* name, std::size_t steps) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] >= 0 && values[i] < limit) continue;
      const std::string step = steps == 0 ? "" : ", step " + std::to_string(i % steps);
      throw std::invalid_argument(std::string(name) + " of episode " +
                                  std::to_string(steps == 0 ? i : i / steps) + step +
                                  " must be below " + std::to_string(limit) + ", got " +
                                  std::to_string(static_cast<int>(values[i])));
    }
  };
  check_all(inputs.red, static_cast<int>(Red::kGiven), "ep_red", 0);
  check_all(inputs.green, 2, "ep_green", 0);
  check_all(inputs.edition, 2, "ep_edition", 0);
  check_all(inputs.blue_action, kActions, "blue_action", inputs.steps);
}

}  // namespace

void describe(const Game& game, const TrueState& truth, TraceRow& row) {
  for (int host = 0; host < kHosts; ++host) {
    const auto h = static_cast<std::size_t>(host);
    const auto count = [](Byte sessions) {
      return static_cast<std::int8_t>(std::min<int>(sessions, 127));
    };
    row.s_priv[h] = count(truth.privileged[h]);
    row.s_user_seen[h] = count(truth.user_seen[h]);
    row.s_user_unseen[h] = count(truth.user_unseen[h]);
    row.s_decoys[h] = truth.decoys[h];
    row.s_malware[h] = static_cast<std::int8_t>(truth.malware[h]);
    row.s_known_ip[h] = (game.known_ip >> host) & 1;
    row.s_known_host[h] = (game.known_host >> host) & 1;
    unsigned ports = game.red_ports[h] != 0 ? 256u : 0u;
    for (std::size_t id = 0; id < kExploits; ++id) {
      ports |= static_cast<unsigned>((game.red_ports[h] >> kRankOfExploit[id]) & 1) << id;
    }
    row.s_red_ports[h] = static_cast<std::uint16_t>(ports);
  }
  for (int net = 0; net < kSubnets; ++net)
    row.s_known_net[static_cast<std::size_t>(net)] = (game.known_nets >> net) & 1;
  row.s_ot = {game.outage_tenths == 0, game.ot_pid_known, game.ot_service_known};
  row.s_bline_pos =
      game.red == Red::kBLine ? static_cast<std::int8_t>(game.position) : std::int8_t{-1};
  row.s_meander = {game.scanned, game.exploited, game.escalated, game.mapped};
}

void replay(const TraceInputs& inputs, std::span<TraceRow> rows) {
  check(inputs);
  Game game{};
  TrueState truth{};
  std::vector<Session> log(inputs.steps);
  const Store store{&game, &truth, log.data(), log.size()};
  const Slot slot{store, 0};
  for (std::size_t episode = 0; episode < inputs.episodes; ++episode) {
    clear(slot, 0, 0, static_cast<Red>(inputs.red[episode]),
          static_cast<Edition>(inputs.edition[episode]), inputs.green[episode] != 0);
    for (std::size_t step = 0; step < inputs.steps; ++step) {
      const std::size_t index = episode * inputs.steps + step;
      const FedDraws draws(inputs, index);
      const Step played = play(slot, inputs.blue_action[index], RedAction{}, draws, NoJudge{});
      TraceRow& row = rows[index];
      observe(played.observation, row.obs.data());
      row.reward_tenths = static_cast<std::int16_t>(played.reward_tenths);
      row.blue_success = static_cast<std::int8_t>(played.moves.blue_success);
      row.green_host = played.moves.green_host;
      row.red_kind = static_cast<std::int8_t>(played.moves.red_kind);
      row.red_target = played.moves.red_target;
      row.red_success = static_cast<std::int8_t>(played.moves.red_success);
      row.exploit = played.moves.exploit;
      row.detected = played.moves.detected;
      row.esc_pick = static_cast<std::int8_t>(draws.picked());
      row.unused = 0;
      describe(game, truth, row);
    }
  }
}

}  // namespace cagepool
