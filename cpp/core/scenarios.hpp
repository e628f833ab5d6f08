#pragma once
// The two kinds of scenarios that the rules are compiled for: `CompiledScenario`, Scenario2 with
// tables that are constants, and `TableScenario`, any scenario, with tables that are data. Both
// answer the same questions; a rule is a template over them.

#include <span>

#include "core/game.hpp"

namespace cagepool {

/// Arrays with the parts of many games. A step reads the game always and the other parts only when
/// needed.
template <class Scenario>
struct BasicGameStore {
  typename Scenario::Game* games;
  typename Scenario::TrueState* true_states;
  typename Scenario::Session* session_logs;
  std::size_t session_capacity;              // per game
  typename Scenario::Scenarios scenarios{};  // tables of all scenarios of the store
};

/// One game of a store.
template <class Scenario>
struct BasicSlot {
  using Log = std::span<typename Scenario::Session>;

  const BasicGameStore<Scenario>& store;
  std::size_t id;

  typename Scenario::Game& game() const { return store.games[id]; }
  typename Scenario::TrueState& true_state() const { return store.true_states[id]; }
  /// The sessions of the episode so far. A step opens at most one, so the capacity is the horizon.
  Log session_log() const {
    return {store.session_logs + id * store.session_capacity, game().sessions - 1u};
  }
  Scenario scenario() const { return Scenario::of(store.scenarios, game()); }
};

/// Scenario2. All members are constants, so that the compiler sees them.
struct CompiledScenario {
  using Mask = cagepool::Mask;
  using Game = cagepool::Game;
  using TrueState = cagepool::TrueState;
  using Table = std::uint64_t;
  using Session = cagepool::Session;
  using Bits = SessionBits<Session, 4>;
  using Action = std::uint8_t;  // index of a blue or red action
  using Blue = BlueAction;
  struct Scenarios {};
  using Slot = BasicSlot<CompiledScenario>;

  static constexpr bool kIsTable = false;
  static constexpr std::size_t kHostLimit = kHostCount;

  static CompiledScenario of(Scenarios, const Game&) { return {}; }
  static constexpr Mask bit(int host) { return cagepool::bit(host); }
  static constexpr int host_count() { return kHostCount; }
  static constexpr int subnet_count() { return kSubnetCount; }
  static constexpr Mask hosts() { return kAllHosts; }
  static constexpr int entry() { return kUser0; }
  static constexpr Mask initial_ip() { return cagepool::bit(kUser0); }
  static constexpr unsigned initial_nets() { return cagepool::bit(kUserNet); }

  // Order of play, and where blue's agents are.
  static constexpr bool blue_after_red() { return false; }
  static constexpr bool blue_after_green() { return false; }
  static constexpr bool has_agent(int) { return true; }
  static constexpr bool is_monitored(int) { return true; }
  static constexpr int green_host(std::size_t index) { return kGreenHosts[index]; }
  static const BlueAction& blue_action(std::size_t index) { return kBlueActions[index]; }

  // Services.
  static constexpr Ports listening(std::size_t host) { return kHostFacts[host].listening; }
  static constexpr Ports user_level(std::size_t host) { return kHostFacts[host].user_level; }
  static constexpr Ports privileged(std::size_t host) { return kHostFacts[host].privileged; }
  static constexpr Ports resists(std::size_t host) { return kHostFacts[host].resists; }
  static constexpr int other_ports(std::size_t host) { return kHostFacts[host].other_ports; }
  static Ports ports_of(unsigned decoys) { return kPortsOfDecoys[decoys & 255u]; }
  static constexpr unsigned kMostVsftpd = 0xFF;

  // Routes. They take the game: most questions need not read where red's sessions are.
  static bool reaches(const Game& game, int host) {
    return ((kOperational >> host) & 1) == 0 || (hosts_with_red(game) & kEnterpriseServers) != 0;
  }
  static bool reaches_subnet(const Game& game, int subnet) {
    return subnet != kOperationalNet || reaches(game, kOpServer0);
  }
  static constexpr Mask subnet_hosts(std::size_t subnet) { return kSubnetHosts[subnet]; }
  static constexpr Mask revealed_hosts(std::size_t host) { return kHostFacts[host].revealed_hosts; }
  static constexpr unsigned revealed_nets(std::size_t host) {
    return cagepool::bit(kHostFacts[host].subnet);
  }
  static constexpr bool reveals_ot(int host) { return host == kOpServer0; }
  /// Every host listens on an exploit port, so red knows ports of the hosts that it has scanned.
  static bool knows_ports(const Game& game, std::size_t host) { return game.red_ports[host] != 0; }
  static void learn_ports(Game&, int) {}

  // Red agents.
  static constexpr Mask meander_op() { return kOperational; }
  static constexpr Mask meander_ent() { return kEnterpriseServers; }
  static constexpr Mask impact_host() { return cagepool::bit(kOpServer0); }
  /// Host of an Impact by the target of the action, which is a constant here.
  static constexpr int impact_target(int /*host*/) { return kOpServer0; }
  static constexpr Mask b_line_users() { return kUserTargets; }
  static constexpr Byte user_pick(int host) { return static_cast<Byte>(host - kUser1); }

  // OTService, mail service, reward.
  static constexpr bool runs_ot(int host) { return host == kOpServer0; }
  /// No branch on state that differs from game to game. An outage continues (Q3, Q5).
  static void stop_ot(Slot slot, int /*host*/) {
    Game& game = slot.game();
    game.outage_tenths =
        static_cast<Byte>(game.outage_tenths | (kOutageTenths * game.ot_pid_known));
    slot.true_state().ot_running[kOpServer0] = game.outage_tenths == 0;
  }
  static void restart_ot(Slot slot, int /*host*/) {
    slot.game().outage_tenths = 0;
    slot.game().ot_pid_known = false;  // Q2
    slot.true_state().ot_running[kOpServer0] = 1;
    slot.true_state().ot_pid_known[kOpServer0] = 0;
  }
  static constexpr bool runs_mail(int host) { return host >= kUser3; }
  static bool is_mail_immune(const Game& game, int host) {
    return ((unsigned{game.mail_immune} << kUser3) & cagepool::bit(host)) != 0;
  }
  static void set_mail_immune(Slot slot, int host) {
    Game& game = slot.game();
    game.mail_immune = static_cast<Byte>(game.mail_immune | cagepool::bit(host - kUser3));
    slot.true_state().mail_immune[static_cast<std::size_t>(host)] = 1;
  }
  static void count_privileged(Game&, int /*host*/, bool /*before*/, bool /*after*/) {}
  /// Penalty of a step for hosts with a privileged red session and for the stopped OTService (rules
  /// 9).
  static int penalty_tenths(const Game& game) {
    const unsigned hosts = game.privileged;
    return 10 * std::popcount(hosts & kHighValueHosts) + std::popcount(hosts & kLowValueHosts) +
           game.outage_tenths;
  }
};

/// Blue's actions by index, in slots; see `Layout` in Python.
using ActionLayout = std::span<const LayoutAction>;

/// Any scenario of up to 64 hosts and 16 subnets.
class TableScenario {
 public:
  using Mask = WideMask;
  using Game = WideGame;
  using TrueState = WideTrueState;
  using Table = WideTable;
  using Session = WideSession;
  using Bits = SessionBits<Session, 6>;
  using Action = std::uint16_t;
  using Blue = BasicBlueAction<WideMask, std::uint16_t>;
  struct Scenarios {
    std::span<const ScenarioTables> tables;
    ActionLayout actions;
  };
  using Slot = BasicSlot<TableScenario>;

  static constexpr bool kIsTable = true;
  static constexpr std::size_t kHostLimit = kMaxHosts;

  TableScenario(const ScenarioTables& tables, ActionLayout actions)
      : tables_(&tables), actions_(actions) {}
  static TableScenario of(const Scenarios& scenarios, const Game& game) {
    return {scenarios.tables[game.scenario], scenarios.actions};
  }

  const ScenarioTables& tables() const { return *tables_; }
  static constexpr Mask bit(int host) { return Mask{1} << host; }
  int host_count() const { return tables_->host_count; }
  int subnet_count() const { return tables_->subnet_count; }
  Mask hosts() const { return tables_->hosts; }
  int entry() const { return tables_->entry; }
  Mask initial_ip() const { return tables_->initial_ip; }
  unsigned initial_nets() const { return static_cast<unsigned>(tables_->initial_nets); }

  bool blue_after_red() const { return tables_->blue_after_red != 0; }
  bool blue_after_green() const { return tables_->blue_after_green != 0; }
  bool has_agent(int host) const { return (tables_->agents & bit(host)) != 0; }
  bool is_monitored(int host) const { return (tables_->monitored & bit(host)) != 0; }
  int green_host(std::size_t index) const { return tables_->green_hosts[index]; }
  /// The action with this index; of a kind or on a slot that the scenario lacks, one without
  /// effect.
  Blue blue_action(std::size_t index) const {
    const LayoutAction& action = actions_[index];
    const Byte host = tables_->host_of_slot[action.slot];
    const int kind = kind_bit(action.kind, action.decoy);
    const bool has_host = action.kind > BlueKind::kMonitor;
    if ((has_host && host == kNoHost) || ((tables_->blue_kinds >> kind) & 1u) == 0) [[unlikely]]
      return {.default_success = Success::kUnknown};
    Blue blue{.kind = action.kind, .default_success = Success::kTrue, .decoy = action.decoy};
    if (!has_host) {
      if (action.kind == BlueKind::kSleep) blue.default_success = Success::kUnknown;
      return blue;
    }
    blue.host = host;
    const bool is_decoy = action.kind == BlueKind::kDecoy || action.kind == BlueKind::kMisinform;
    if (is_decoy || !has_agent(host)) blue.default_success = Success::kFalse;
    if (action.kind == BlueKind::kDecoy) set_decoy(blue);
    if (action.kind == BlueKind::kAnalyse && has_agent(host)) blue.analyse_host = bit(host);
    if (action.kind == BlueKind::kRemove) blue.remove_host = bit(host);
    if (action.kind == BlueKind::kRestore) {
      blue.restore_host = bit(host);
      blue.cost = kRestoreTenths;
    }
    return blue;
  }
  /// Decoys of `kMisinformDecoys`, as bits, whose port is free.
  unsigned misinform_choices(std::size_t host, unsigned decoys) const {
    if (!has_agent(static_cast<int>(host))) return 0;
    const Ports taken = listening(host) | ports_of(decoys);
    unsigned choices = 0;
    for (std::size_t i = 0; i < kMisinformDecoys.size(); ++i)
      choices |= unsigned{(taken & kMisinformDecoys[i].port) == 0} << i;
    return choices;
  }

  Ports listening(std::size_t host) const { return tables_->services[host].listening; }
  Ports user_level(std::size_t host) const { return tables_->services[host].user_level; }
  Ports privileged(std::size_t host) const { return tables_->services[host].privileged; }
  Ports resists(std::size_t host) const { return tables_->services[host].resists; }
  int other_ports(std::size_t host) const { return tables_->services[host].other_ports; }
  static Ports ports_of(unsigned decoys) {
    const unsigned false_ports =
        ((decoys & kFalseSmss) != 0 ? kSmb : 0u) | ((decoys & kFalseSvchost) != 0 ? kRdp : 0u);
    return static_cast<Ports>(kPortsOfDecoys[decoys & 255u] | false_ports);
  }
  static constexpr unsigned kMostVsftpd = 0x3F;
  /// Listening ports of a host with repetitions, with those of its decoys.
  int port_entries(std::size_t host, unsigned decoys) const {
    const auto further_vsftpd = static_cast<int>((decoys >> 8) & kMostVsftpd);
    return tables_->services[host].entries + std::popcount(decoys & 0xC0FFu) + further_vsftpd;
  }

  bool reaches(const Game& game, int host) const {
    const bool is_open = (hosts_with_red(game) & tables_->gate) != 0;
    const Mask reached = tables_->open_hosts | (is_open ? tables_->gated_hosts : 0);
    return (reached & bit(host)) != 0;
  }
  bool reaches_subnet(const Game& game, int subnet) const {
    const bool is_open = (hosts_with_red(game) & tables_->gate) != 0;
    const unsigned reached = tables_->open_nets | (is_open ? tables_->gated_nets : 0u);
    return ((reached >> subnet) & 1u) != 0;
  }
  Mask subnet_hosts(std::size_t subnet) const { return tables_->subnet_hosts[subnet]; }
  Mask revealed_hosts(std::size_t host) const { return tables_->revealed_hosts[host]; }
  unsigned revealed_nets(std::size_t host) const { return tables_->revealed_nets[host]; }
  bool reveals_ot(int host) const { return (tables_->reveals_ot & bit(host)) != 0; }
  static bool knows_ports(const Game& game, std::size_t host) {
    return ((game.ports_known >> host) & 1u) != 0;
  }
  static void learn_ports(Game& game, int host) { game.ports_known |= bit(host); }

  Mask meander_op() const { return tables_->meander_op; }
  Mask meander_ent() const { return tables_->meander_ent; }
  Mask impact_host() const { return tables_->impact_host; }
  static constexpr int impact_target(int host) { return host; }
  Mask b_line_users() const { return tables_->b_line_users; }
  static constexpr Byte user_pick(int host) { return static_cast<Byte>(host); }

  bool runs_ot(int host) const { return (tables_->ot & bit(host)) != 0; }
  void stop_ot(Slot slot, int host) const {
    Game& game = slot.game();
    if ((game.ot_pid_known & ~game.ot_stopped & bit(host)) == 0) return;
    const auto h = static_cast<std::size_t>(host);
    game.ot_stopped |= bit(host);
    game.outage_tenths =
        static_cast<std::int16_t>(game.outage_tenths + tables_->availability_tenths[h]);
    slot.true_state().ot_running[h] = 0;
  }
  void restart_ot(Slot slot, int host) const {
    Game& game = slot.game();
    const auto h = static_cast<std::size_t>(host);
    if ((game.ot_stopped & bit(host)) != 0) {
      game.outage_tenths =
          static_cast<std::int16_t>(game.outage_tenths - tables_->availability_tenths[h]);
    }
    game.ot_stopped &= ~bit(host);
    game.ot_pid_known &= ~bit(host);
    slot.true_state().ot_running[h] = 1;
    slot.true_state().ot_pid_known[h] = 0;
  }
  bool runs_mail(int host) const { return (tables_->mail & bit(host)) != 0; }
  static bool is_mail_immune(const Game& game, int host) {
    return (game.mail_immune & bit(host)) != 0;
  }
  static void set_mail_immune(Slot slot, int host) {
    slot.game().mail_immune |= bit(host);
    slot.true_state().mail_immune[static_cast<std::size_t>(host)] = 1;
  }
  void count_privileged(Game& game, int host, bool before, bool after) const {
    const int value = tables_->confidentiality_tenths[static_cast<std::size_t>(host)];
    game.loss_tenths =
        static_cast<std::int16_t>(game.loss_tenths + value * (int{after} - int{before}));
  }
  static int penalty_tenths(const Game& game) { return game.loss_tenths + game.outage_tenths; }

 private:
  /// Make the action place its decoy if the host can take it.
  void set_decoy(Blue& blue) const {
    blue.free_port = kDecoyFreePort[blue.decoy];
    const bool windows = (tables_->windows & bit(blue.host)) != 0;
    const bool possible = has_agent(blue.host) && fits_system(blue.decoy, windows) &&
                          (listening(blue.host) & blue.free_port) == 0;
    blue.decoy_bit = static_cast<std::uint16_t>(possible ? 1u << blue.decoy : 0u);
  }

  const ScenarioTables* tables_;
  ActionLayout actions_;
};

/// Number of blue's actions.
inline std::size_t action_count(const CompiledScenario::Scenarios&) { return kActionCount; }
inline std::size_t action_count(const TableScenario::Scenarios& scenarios) {
  return scenarios.actions.size();
}

using GameStore = BasicGameStore<CompiledScenario>;
using Slot = BasicSlot<CompiledScenario>;
using SessionLog = Slot::Log;

/// Set a game to its initial state (rules 3.3).
template <class Scenario>
void initialize_game(BasicSlot<Scenario> slot, std::uint64_t key, std::uint16_t horizon, Red red,
                     Edition edition, bool green);
inline void initialize_game(Slot slot, std::uint64_t key, std::uint16_t horizon, Red red,
                            Edition edition, bool green) {
  initialize_game<CompiledScenario>(slot, key, horizon, red, edition, green);
}

/// Ports on which a host listens, decoys included.
template <class Scenario>
inline Ports listening_ports(BasicSlot<Scenario> slot, std::size_t host) {
  const Scenario scenario = slot.scenario();
  return scenario.listening(host) | scenario.ports_of(slot.true_state().decoys[host]);
}

template <class Scenario>
inline void set_compromised(BasicSlot<Scenario> slot, int host, unsigned level) {
  auto& table = slot.game().blue_table;
  const int shift = nibble_shift(table, host) + 2;
  std::uint64_t& word = table_word(table, host);
  word = (word & ~(std::uint64_t{3} << shift)) | (std::uint64_t{level} << shift);
  slot.true_state().compromised[static_cast<std::size_t>(host)] = static_cast<Byte>(level);
}

}  // namespace cagepool
