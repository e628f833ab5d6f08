#include "core/snapshot_check.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/red.hpp"
#include "core/sessions.hpp"

namespace cagepool {
namespace {

// A snapshot may come from a stranger: its checksum shows damage, not intent. The checks below
// accept what a game can reach, as far as a single state shows it. The rules rely on this: they use
// fields as indices and shifts without a check, and no counter overflows in the rest of the game.

template <class Struct>
bool same_bytes(const Struct& a, const Struct& b) {
  return std::memcmp(&a, &b, sizeof(Struct)) == 0;
}

template <class Enum>
bool is_within(Enum value, Enum first, Enum last) {
  const auto number = static_cast<int>(value);
  return number >= static_cast<int>(first) && number <= static_cast<int>(last);
}

/// Whether the byte of a bool is 0 or 1; a damaged one may hold other values.
bool is_flag(const bool& value) { return *reinterpret_cast<const std::uint8_t*>(&value) <= 1; }

constexpr unsigned kVsftpd = 1u << (kDecoyCount - 1);  // the only decoy that can be placed twice

/// Decoys that can ever be placed on a host, as bits.
unsigned possible_decoys(const CompiledScenario& /*scenario*/, std::size_t host) {
  static constexpr std::array<Byte, kHostCount> kPossible = [] {
    std::array<Byte, kHostCount> decoys{};
    for (const BlueAction& action : kBlueActions) decoys[action.host] |= action.decoy_bit;
    return decoys;
  }();
  return kPossible[host];
}
unsigned possible_decoys(const TableScenario& scenario, std::size_t host) {
  const ScenarioTables& tables = scenario.tables();
  const bool windows = ((tables.windows >> host) & 1u) != 0;
  if (((tables.agents >> host) & 1u) == 0) return 0;
  unsigned decoys = 0;
  for (int decoy = 0; decoy < kDecoyCount; ++decoy) {
    const bool has_action = ((tables.blue_kinds >> kind_bit(BlueKind::kDecoy, decoy)) & 1u) != 0;
    const Ports port = kDecoyFreePort[static_cast<std::size_t>(decoy)];
    if (has_action && fits_system(decoy, windows) && (scenario.listening(host) & port) == 0)
      decoys |= 1u << decoy;
  }
  if (((tables.blue_kinds >> kind_bit(BlueKind::kMisinform, 0)) & 1u) == 0) return decoys;
  const unsigned choices = scenario.misinform_choices(host, 0);
  for (std::size_t i = 0; i < kMisinformDecoys.size(); ++i) {
    if ((choices >> i) & 1u) decoys |= kMisinformDecoys[i].bit;
  }
  return decoys;
}

/// The exported state that follows from the game beside its sessions.
void derive_services(const CompiledScenario& /*scenario*/, const Game& game, TrueState& state) {
  state.ot_running = {};
  state.ot_pid_known = {};
  state.mail_immune = {};
  state.ot_running[kOpServer0] = game.outage_tenths == 0;
  state.ot_pid_known[kOpServer0] = game.ot_pid_known;
  for (const Host host : {kUser3, kUser4})
    state.mail_immune[host] = CompiledScenario::is_mail_immune(game, host);
  state.scenario = 0;
}
void derive_services(const TableScenario& scenario, const WideGame& game, WideTrueState& state) {
  for (std::size_t host = 0; host < kMaxHosts; ++host) {
    const auto is_in = [host](WideMask hosts) { return static_cast<Byte>((hosts >> host) & 1u); };
    state.ot_running[host] = is_in(scenario.tables().ot & ~game.ot_stopped);
    state.ot_pid_known[host] = is_in(game.ot_pid_known);
    state.mail_immune[host] = is_in(game.mail_immune);
  }
  state.scenario = static_cast<std::uint16_t>(game.scenario);
}

template <class Scenario>
void derive_state(const typename Scenario::Scenarios& scenarios,
                  BasicSnapshot<Scenario>& snapshot) {
  auto& game = snapshot.game;
  auto& state = snapshot.true_state;
  const BasicGameStore<Scenario> store{&game, &state, snapshot.session_log.data(),
                                       snapshot.session_log.size(), scenarios};
  const BasicSlot<Scenario> slot{store, 0};
  const Scenario scenario = slot.scenario();
  for (int host = 0; host < scenario.host_count(); ++host) {
    const auto h = static_cast<std::size_t>(host);
    recount_sessions(slot, host);
    state.malware[h] = (game.malware >> host) & 1;
    state.compromised[h] = static_cast<Byte>(compromised(game, host));
  }
  derive_services(scenario, game, state);
  state.ot_service_known = game.ot_service_known;
  state.red = game.red;
  state.edition = game.edition;
}

/// Whether all flags and enumerations of a game have values of their types.
template <class AnyGame>
bool has_valid_values(const AnyGame& game) {
  return is_within(game.phase, Phase::kUnstarted, Phase::kOver) &&
         is_within(game.red, Red::kBLine, Red::kGiven) && game.edition <= Edition::kLeaderboard &&
         is_within(game.last_success, Success::kUnknown, Success::kTrue) &&
         is_flag(game.ot_service_known) && is_flag(game.last_scan_empty) &&
         is_flag(game.reached_12) && is_flag(game.green);
}

/// The scenario of a snapshot.
CompiledScenario scenario_of(const CompiledScenario::Scenarios& /*scenarios*/,
                             const Snapshot& /*snapshot*/) {
  return {};
}
TableScenario scenario_of(const TableScenario::Scenarios& scenarios,
                          const BasicSnapshot<TableScenario>& snapshot) {
  return TableScenario::of(scenarios, snapshot.game);
}

/// The checks of a snapshot, which need its scenario.
template <class Scenario>
class SnapshotCheck {
 public:
  SnapshotCheck(const typename Scenario::Scenarios& scenarios,
                const BasicSnapshot<Scenario>& snapshot)
      : scenarios_(scenarios),
        scenario_(scenario_of(scenarios, snapshot)),
        snapshot_(snapshot),
        game_(snapshot.game) {}

  /// Throw std::invalid_argument unless a game can reach this state.
  void check() const {
    require(has_valid_settings(), "settings");
    require(has_valid_moves(), "moves");
    require(has_valid_sums(), "sums");
    if (game_.phase == Phase::kUnstarted)
      return require(is_unstarted(), "state before the first reset");
    require(has_valid_enums(), "values");
    require(has_valid_time(), "time or number of sessions");
    require(has_valid_knowledge(), "knowledge of red");
    require(has_valid_services(), "knowledge of red");
    require(has_valid_red(), "state of the red agent");
    require(has_valid_observation(), "observation");
    require(has_valid_decoys(), "decoys");
    require(has_valid_sessions(), "sessions");
  }

 private:
  using Game = typename Scenario::Game;
  using Mask = typename Scenario::Mask;

  static void require(bool is_valid, const char* part) {
    if (is_valid) return;
    throw std::invalid_argument(
        std::string("a snapshot must hold a possible game, got one with impossible ") + part);
  }

  bool has_valid_settings() const {
    const GameConfig& config = snapshot_.config;
    return config.reds != 0 && config.reds < 1 << kRedCount && config.horizon != 0 &&
           config.edition <= Edition::kLeaderboard && config.green <= 1 &&
           config.unused == GameConfig{}.unused && std::ranges::is_sorted(config.red_shares);
  }

  /// A game that was never reset has only a random stream.
  bool is_unstarted() const {
    BasicSnapshot<Scenario> unstarted{};
    unstarted.game.key = game_.key;
    if constexpr (Scenario::kIsTable) {
      unstarted.game.scenario = game_.scenario;
      unstarted.true_state.scenario = snapshot_.true_state.scenario;
    }
    return same_bytes(unstarted.game, game_) &&
           same_bytes(unstarted.true_state, snapshot_.true_state) && snapshot_.session_log.empty();
  }

  /// A game before its first step is as `initialize_game` makes it.
  bool is_initial() const {
    BasicSnapshot<Scenario> initial{};
    if constexpr (Scenario::kIsTable) initial.game.scenario = game_.scenario;
    const BasicGameStore<Scenario> store{&initial.game, &initial.true_state, nullptr, 0,
                                         scenarios_};
    initialize_game(BasicSlot<Scenario>{store, 0}, game_.key, game_.horizon, game_.red,
                    game_.edition, game_.green);
    return same_bytes(initial.game, game_) && same_bytes(initial.true_state, snapshot_.true_state);
  }

  /// Whether step, horizon and number of sessions agree. The first step opens no session, since red
  /// knows no port, and each later step at most one: with the longest horizon, the number of
  /// sessions just fits its type.
  bool has_valid_time() const {
    const std::size_t sessions = snapshot_.session_log.size();
    const bool is_over = game_.phase == Phase::kOver;
    return game_.sessions == sessions + 1 && sessions <= std::max<std::size_t>(game_.step, 1) - 1 &&
           (is_over ? game_.step == game_.horizon : game_.step < game_.horizon) &&
           (game_.step != 0 || is_initial());
  }

  bool has_valid_enums() const {
    const GameConfig& config = snapshot_.config;
    const Mask hosts = hosts_with_red(game_);
    return has_valid_values(game_) && (hosts & ~scenario_.hosts()) == 0 &&
           game_.phase != Phase::kUnstarted && game_.horizon == config.horizon &&
           (config.reds & bit(static_cast<int>(game_.red))) != 0 &&
           game_.edition == config.edition && game_.green == (config.green != 0) &&
           has_valid_unused();
  }
  bool has_valid_unused() const {
    if constexpr (!Scenario::kIsTable) {
      if (game_.unused != Game{}.unused) return false;
    }
    return snapshot_.true_state.unused == typename Scenario::TrueState{}.unused;
  }

  bool has_valid_decoys() const {
    for (std::size_t host = 0; host < Scenario::kHostLimit; ++host) {
      const unsigned decoys = snapshot_.true_state.decoys[host];
      const unsigned duplicates = (decoys >> 8) & Scenario::kMostVsftpd;
      const unsigned kinds = decoys & ~(Scenario::kMostVsftpd << 8);
      if ((kinds & ~possible_decoys(scenario_, host)) != 0) return false;
      if (duplicates != 0 && ((decoys & kVsftpd) == 0 || duplicates >= game_.step)) return false;
    }
    return true;
  }

  /// Whether red knows what it knew at the start, nothing that does not exist, and of a host either
  /// no port or all genuine ones, perhaps with those of decoys.
  bool has_valid_knowledge() const {
    const Mask hosts = game_.malware | game_.known_ip | game_.known_host;
    const Mask initial_ip = scenario_.initial_ip();
    const unsigned initial_nets = scenario_.initial_nets();
    if ((hosts & ~scenario_.hosts()) != 0 || game_.known_nets >> scenario_.subnet_count() != 0)
      return false;
    if ((game_.known_ip & initial_ip) != initial_ip ||
        (game_.known_host & scenario_.bit(scenario_.entry())) == 0 ||
        (game_.known_nets & initial_nets) != initial_nets)
      return false;
    for (std::size_t host = 0; host < Scenario::kHostLimit; ++host) {
      const unsigned ports = game_.red_ports[host];
      const unsigned genuine = scenario_.listening(host);
      const unsigned possible = genuine | scenario_.ports_of(possible_decoys(scenario_, host));
      if (!scenario_.knows_ports(game_, host) && ports != 0) return false;
      if (scenario_.knows_ports(game_, host) &&
          ((ports & genuine) != genuine || (ports & ~possible) != 0))
        return false;
    }
    return true;
  }

  /// Whether OTService, mail services and penalties can be as they are.
  bool has_valid_services() const {
    const bool is_leaderboard = game_.edition == Edition::kLeaderboard;
    if (game_.mail_immune != 0 && !is_leaderboard) return false;
    if constexpr (Scenario::kIsTable) {
      const ScenarioTables& tables = scenario_.tables();
      const auto sum = [](WideMask hosts, const auto& values) {
        int total = 0;
        for (; hosts != 0; hosts &= hosts - 1)
          total += values[static_cast<std::size_t>(std::countr_zero(hosts))];
        return total;
      };
      return (game_.mail_immune & ~tables.mail) == 0 &&
             ((game_.ot_stopped | game_.ot_pid_known) & ~tables.ot) == 0 &&
             (game_.ports_known & ~tables.hosts) == 0 &&
             game_.outage_tenths == sum(game_.ot_stopped, tables.availability_tenths) &&
             game_.loss_tenths == sum(game_.privileged, tables.confidentiality_tenths);
    } else {
      return game_.mail_immune < 4 &&
             (game_.outage_tenths == 0 || game_.outage_tenths == kOutageTenths);
    }
  }

  bool is_valid_pick() const {
    if constexpr (Scenario::kIsTable)
      return game_.user_pick < kMaxHosts &&
             (scenario_.b_line_users() & scenario_.bit(game_.user_pick)) != 0;
    else
      return game_.user_pick < kUserHost.size();
  }

  /// Whether each red agent has a state of its own only. B_lineAgent draws its user host when it
  /// leaves position 0.
  bool has_valid_red() const {
    const Mask lists = game_.scanned | game_.exploited | game_.escalated | game_.mapped |
                       game_.last_exploit | game_.last_host;
    const bool is_meander = game_.red == Red::kMeander;
    const bool is_b_line = game_.red == Red::kBLine;
    if ((lists & ~(is_meander ? scenario_.hosts() : Mask{0})) != 0) return false;
    if ((game_.swept & ~(is_meander ? unsigned{game_.known_nets} : 0u)) != 0) return false;
    if (is_b_line && game_.position != 0)
      return game_.position < kBLineSteps.size() && is_valid_pick();
    return game_.position == 0 && game_.user_pick == kNoHost && !game_.reached_12;
  }

  /// Whether the observation is blue's table with the activity (none, scan or exploit) of at most
  /// two hosts: one of red's, one of green's.
  bool has_valid_observation() const {
    constexpr std::uint64_t kLow = 0x1111111111111111;  // one bit per host
    int active = 0;
    for (int host = 0; host < static_cast<int>(Scenario::kHostLimit); host += 16) {
      const std::uint64_t observation = table_word(game_.observation, host);
      const std::uint64_t table = table_word(game_.blue_table, host);
      const std::uint64_t first = observation & kLow;
      const std::uint64_t second = (observation >> 1) & kLow;
      const int hosts = std::clamp(scenario_.host_count() - host, 0, 16);
      const std::uint64_t own =
          hosts == 16 ? ~std::uint64_t{0} : (std::uint64_t{1} << 4 * hosts) - 1;
      if ((observation & ~(kLow * 3)) != table || (table & ~(kLow * 12)) != 0 ||
          (second & ~first) != 0 || (observation & ~own) != 0)
        return false;
      active += std::popcount(first);
    }
    return active <= 2;
  }

  /// Whether masks, counts and the exported state follow from the session log and the game.
  bool has_valid_sessions() const {
    const auto is_on_host = [this](auto session) {
      return (session & Scenario::Bits::kHost) < scenario_.host_count();
    };
    if (!std::ranges::all_of(snapshot_.session_log, is_on_host)) return false;
    BasicSnapshot<Scenario> derived = snapshot_;
    derive_state(scenarios_, derived);
    return same_bytes(derived.game, game_) && same_bytes(derived.true_state, snapshot_.true_state);
  }

  /// Most tenths that a step can cost.
  int step_limit() const {
    if constexpr (Scenario::kIsTable) {
      const ScenarioTables& tables = scenario_.tables();
      int total = kRestoreTenths;
      for (const std::int16_t value : tables.confidentiality_tenths) total += value;
      for (const std::int16_t value : tables.availability_tenths) total += value;
      return total;
    } else {
      return 200;
    }
  }

  /// Whether the steps played can give these counts and sums.
  bool has_valid_sums() const {
    const Counters& counters = snapshot_.counters;
    const std::int32_t steps = game_.step;
    const auto is_count = [](std::int32_t count, std::int32_t limit) {
      return count >= 0 && count <= limit;
    };
    const Order order = snapshot_.order;
    if (order == kNoOrder && !same_bytes(counters, Counters{})) return false;
    return (order < kOrderCount || order == kNoOrder) && game_.return_tenths <= 0 &&
           game_.return_tenths >= -step_limit() * steps && is_count(counters.fixes, steps) &&
           is_count(counters.threat_steps, steps) && is_count(counters.wasted, counters.fixes) &&
           is_count(counters.compliant, counters.fixes) &&
           is_count(counters.violations, counters.fixes - counters.compliant);
  }

  /// Moves of the last step, which after a reset in the same step belong to the episode before, in
  /// another scenario perhaps.
  bool has_valid_moves() const {
    const auto& moves = snapshot_.moves;
    const auto is_draw = [](int value, std::size_t limit) {
      return value >= -1 && std::cmp_less(value, limit);
    };
    const std::size_t hosts = Scenario::kHostLimit;
    const std::size_t subnets = Scenario::kIsTable ? kMaxSubnets : std::size_t{kSubnetCount};
    const bool is_sweep = moves.red_kind == RedKind::kSweep;
    return is_within(moves.blue_success, Success::kUnknown, Success::kTrue) &&
           is_within(moves.red_kind, RedKind::kSleep, RedKind::kImpact) &&
           is_within(moves.red_success, Success::kUnknown, Success::kTrue) &&
           is_draw(moves.red_target, is_sweep ? subnets : hosts) &&
           is_draw(moves.exploit, kExploitCount) && is_draw(moves.detected, 2) &&
           is_draw(moves.green_host, hosts) && is_draw(moves.decoy_pick, 10) &&
           moves.blue_action < action_count(scenarios_);
  }

  const typename Scenario::Scenarios& scenarios_;
  Scenario scenario_;
  const BasicSnapshot<Scenario>& snapshot_;
  const Game& game_;
};

}  // namespace

bool has_valid_values(const Game& game) {
  return has_valid_values<Game>(game) && is_flag(game.ot_pid_known) &&
         (hosts_with_red(game) & ~kAllHosts) == 0;
}

void check_possible(const Snapshot& snapshot) {
  check_snapshot(CompiledScenario::Scenarios{}, snapshot);
}

void derive_true_state(Snapshot& snapshot) { derive_state<CompiledScenario>({}, snapshot); }

void check_snapshot(const CompiledScenario::Scenarios& scenarios, const Snapshot& snapshot) {
  SnapshotCheck<CompiledScenario>(scenarios, snapshot).check();
}
void check_snapshot(const TableScenario::Scenarios& scenarios,
                    const BasicSnapshot<TableScenario>& snapshot) {
  SnapshotCheck<TableScenario>(scenarios, snapshot).check();
}

}  // namespace cagepool
