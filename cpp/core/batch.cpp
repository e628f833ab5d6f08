#include "core/batch.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/call_guard.hpp"

namespace cagepool {
namespace {

// Games per chunk of work: few enough to balance the threads, and enough to make the cost of taking
// a chunk negligible.
constexpr std::size_t kChunk = 256;

void check_count(const char* name, std::size_t given, std::size_t games) {
  if (given == games) return;
  throw std::invalid_argument("there must be one " + std::string(name) + " per game, got " +
                              std::to_string(given) + " for " + std::to_string(games) + " games");
}

std::size_t longest_horizon(const std::vector<GameConfig>& configs) {
  std::size_t horizon = 0;
  for (const GameConfig& config : configs) horizon = std::max<std::size_t>(horizon, config.horizon);
  return horizon;
}

void check_configs(const std::vector<GameConfig>& configs) {
  if (configs.empty()) throw std::invalid_argument("a batch must have at least 1 game, got 0");
  for (std::size_t id = 0; id < configs.size(); ++id) {
    const GameConfig& config = configs[id];
    const auto check = [id](bool holds, const char* name, const char* rule, unsigned value) {
      if (holds) return;
      throw std::invalid_argument(std::string("the ") + name + " of game " + std::to_string(id) +
                                  " must be " + rule + ", got " + std::to_string(value));
    };
    check(config.horizon != 0, "horizon", "at least 1", config.horizon);
    check(config.reds != 0 && config.reds < 1u << kRedCount, "reds", "a set of known agents",
          config.reds);
    check(config.edition <= Edition::kLeaderboard, "edition", "0 or 1",
          static_cast<unsigned>(config.edition));
    check(config.green <= 1, "green", "0 or 1", config.green);
    check(std::ranges::is_sorted(config.red_shares), "red shares", "cumulative",
          config.red_shares.back());
  }
}

void check_order(std::size_t id, Order order) {
  if (order < kOrderCount) return;
  throw std::invalid_argument("the order of game " + std::to_string(id) + " must be below " +
                              std::to_string(kOrderCount) + ", got " + std::to_string(order));
}

/// Copy actions in their narrow type. Each is read once, since the caller's array may change
/// meanwhile; throws std::out_of_range if one is not below `limit`.
///
/// @param ids Games of the actions, for the message.
template <class Action>
void copy_actions(std::span<const std::int64_t> given, std::span<const std::int64_t> ids,
                  std::size_t limit, const char* name, std::vector<Action>& copy) {
  copy.resize(given.size());
  Action* const out = copy.data();
  std::array<std::int64_t, kChunk> block;
  for (std::size_t begin = 0; begin < given.size(); begin += kChunk) {
    const std::size_t count = std::min(kChunk, given.size() - begin);
    std::memcpy(block.data(), &given[begin], count * sizeof(std::int64_t));
    // Without a branch per action; the action is searched for only if one is out of range.
    std::uint64_t bits = 0;
    Action largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto narrow = static_cast<Action>(block[i]);
      bits |= static_cast<std::uint64_t>(block[i]);
      largest = std::max(largest, narrow);
      out[begin + i] = narrow;
    }
    if (bits <= std::numeric_limits<Action>::max() && largest < limit) continue;
    for (std::size_t i = 0; i < count; ++i) {
      if (block[i] >= 0 && std::cmp_less(block[i], limit)) continue;
      throw std::out_of_range("the " + std::string(name) + " of game " +
                              std::to_string(ids[begin + i]) + " must be below " +
                              std::to_string(limit) + ", got " + std::to_string(block[i]));
    }
  }
}

template <class Outputs>
void check_outputs(const Outputs& out, std::size_t games, Autoreset autoreset) {
  for_each_output<Outputs>([&](const auto& field) {
    const bool is_present =
        field.condition == OutputCondition::kAlways ||
        (field.condition == OutputCondition::kSameStepReset && autoreset == Autoreset::kSameStep) ||
        (field.condition == OutputCondition::kOrder && out.tracks_compliance());
    const std::size_t wanted = is_present ? games : 0;
    const std::size_t size = (out.*field.array).size();
    if (size == wanted) return;
    throw std::invalid_argument(std::string(field.name) + " must have " + std::to_string(wanted) +
                                " rows, got " + std::to_string(size));
  });
  const auto& finals = out.final_observations;
  if (finals.size() != 0 && (finals.is_bytes() != out.observations.is_bytes() ||
                             finals.column_count != out.observations.column_count))
    throw std::invalid_argument("final_observations must have type and columns of observations");
  for (std::size_t id = 0; id < out.orders.size(); ++id) check_order(id, out.orders[id]);
}

template <class Scenario>
void check_columns(const Observations<Scenario>& observations, std::size_t slots) {
  if (observations.column_count == 4 * slots) return;
  throw std::invalid_argument("observations must have " + std::to_string(4 * slots) +
                              " columns, got " + std::to_string(observations.column_count));
}

void check_reds(const BatchScenarios<CompiledScenario>&, const std::vector<GameConfig>&) {}
void check_reds(const BatchScenarios<TableScenario>& scenarios,
                const std::vector<GameConfig>& configs) {
  for (std::size_t id = 0; id < configs.size(); ++id) {
    for (std::size_t i = 0; i < scenarios.tables.size(); ++i) {
      if (!scenarios.draws_scenarios() && i != id % scenarios.tables.size()) continue;
      if ((configs[id].reds & ~scenarios.tables[i].playable_reds) == 0) continue;
      throw std::invalid_argument("the reds of game " + std::to_string(id) +
                                  " must be able to play scenario " + std::to_string(i));
    }
  }
}

}  // namespace

BatchScenarios<TableScenario> make_scenarios(std::vector<ScenarioTables> tables,
                                             std::span<const std::uint8_t> kinds, std::size_t slots,
                                             bool draws_scenarios) {
  check_tables(tables);
  if (slots < 1 || slots > kMaxHosts) {
    throw std::invalid_argument("slots must be from 1 to " + std::to_string(kMaxHosts) + ", got " +
                                std::to_string(slots));
  }
  BatchScenarios<TableScenario> scenarios{std::move(tables), {}, slots, draws_scenarios, {{}}};
  for (const std::uint8_t kind : kinds) {
    const int decoy = kind - kind_bit(BlueKind::kDecoy, 0);
    if (decoy >= kDecoyCount || (decoy < 0 && kind > static_cast<int>(BlueKind::kMisinform)))
      throw std::invalid_argument("there is no kind of action " + std::to_string(kind));
    const auto blue_kind = decoy >= 0 ? BlueKind::kDecoy : static_cast<BlueKind>(kind);
    const std::size_t count = blue_kind <= BlueKind::kMonitor ? 1 : slots;
    for (std::size_t slot = 0; slot < count; ++slot) {
      scenarios.actions.push_back({.kind = blue_kind,
                                   .slot = static_cast<Byte>(slot),
                                   .decoy = static_cast<Byte>(std::max(decoy, 0))});
    }
  }
  const auto largest = [&scenarios](Byte ScenarioTables::* count) {
    return int{std::ranges::max(scenarios.tables, {}, count).*count};
  };
  for (int net = 0; net < largest(&ScenarioTables::subnet_count); ++net)
    scenarios.red_action_table.push_back({RedKind::kSweep, static_cast<std::int8_t>(net)});
  const int hosts = largest(&ScenarioTables::host_count);
  for (const RedKind kind : {RedKind::kScan, RedKind::kExploit, RedKind::kEscalate}) {
    for (int host = 0; host < hosts; ++host)
      scenarios.red_action_table.push_back({kind, static_cast<std::int8_t>(host)});
  }
  WideMask ot = 0;
  for (const ScenarioTables& table : scenarios.tables) ot |= table.ot;
  for (int host = 0; host < hosts; ++host) {
    if (((ot >> host) & 1u) != 0)
      scenarios.red_action_table.push_back({RedKind::kImpact, static_cast<std::int8_t>(host)});
  }
  return scenarios;
}

template <class Scenario>
BasicBatch<Scenario>::BasicBatch(BatchScenarios<Scenario> scenarios,
                                 std::vector<GameConfig> configs,
                                 const BasicOutputs<Scenario>& outputs, Autoreset autoreset,
                                 ComplianceRule rule, int threads)
    : scenarios_(std::move(scenarios)),
      configs_(std::move(configs)),
      out_(outputs),
      autoreset_(autoreset),
      rule_(rule) {
  check_configs(configs_);
  check_columns(out_.observations, scenarios_.slots());
  check_reds(scenarios_, configs_);
  check_outputs(out_, configs_.size(), autoreset_);
  if (threads < 1)
    throw std::invalid_argument("threads must be at least 1, got " + std::to_string(threads));
  games_.resize(configs_.size());
  for (std::size_t id = 0; id < games_.size(); ++id) scenarios_.assign(id, games_[id]);
  if (autoreset_ == Autoreset::kSameStep) final_games_.resize(configs_.size());
  is_named_.resize(configs_.size());
  all_ids_.resize(configs_.size());
  std::iota(all_ids_.begin(), all_ids_.end(), 0);
  unstarted_ = configs_.size();
  session_capacity_ = longest_horizon(configs_);
  session_logs_.resize(configs_.size() * session_capacity_);
  takes_red_actions_ = std::ranges::any_of(
      configs_, [](const GameConfig& config) { return (config.reds & kGivenRed) != 0; });
  // More threads than chunks would never find work.
  const std::size_t chunks = (configs_.size() + kChunk - 1) / kChunk;
  threads = static_cast<int>(std::min(static_cast<std::size_t>(threads), chunks));
  if (threads > 1) thread_pool_.reset(std::make_unique<ThreadPool>(threads).release());
}

template <class Scenario>
BasicBatchView<Scenario> BasicBatch<Scenario>::view() {
  return {.store = {games_.data(), out_.true_state.data(), session_logs_.data(), session_capacity_,
                    scenarios_.view()},
          .configs = configs_.data(),
          .final_games = final_games_.data(),
          .autoreset = autoreset_,
          .rule = rule_,
          .takes_red_actions = takes_red_actions_,
          .draws_scenarios = scenarios_.draws_scenarios(),
          .out = out_};
}

template <class Scenario>
std::size_t BasicBatch<Scenario>::checked_id(std::int64_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= games()) {
    throw std::out_of_range("a game's index must be below " + std::to_string(games()) + ", got " +
                            std::to_string(id));
  }
  return static_cast<std::size_t>(id);
}

template <class Scenario>
std::span<const std::int64_t> BasicBatch<Scenario>::copy_ids(std::span<const std::int64_t> ids) {
  // One id more than there are games is enough to find one that is wrong or named twice.
  const std::span<const std::int64_t> copied = ids.first(std::min(ids.size(), games() + 1));
  ids_.assign(copied.begin(), copied.end());
  for (const std::int64_t id : ids_) checked_id(id);
  std::int64_t duplicate = -1;
  for (const std::int64_t id : ids_) {
    std::uint8_t& is_named = is_named_[static_cast<std::size_t>(id)];
    if (is_named) duplicate = id;
    is_named = 1;
  }
  for (const std::int64_t id : ids_) is_named_[static_cast<std::size_t>(id)] = 0;
  if (duplicate >= 0)
    throw std::invalid_argument("each game may be named once, got " + std::to_string(duplicate) +
                                " twice");
  return ids_;
}

template <class Scenario>
void BasicBatch<Scenario>::reset(std::span<const std::int64_t> ids,
                                 std::optional<std::span<const std::uint64_t>> seeds) {
  const CallGuard guard(caller_, "batch");
  if (seeds) check_count("seed", seeds->size(), ids.size());
  ids = copy_ids(ids);
  const BasicBatchView<Scenario> batch = view();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(ids[i]);
    if (games_[id].phase == Phase::kUnstarted) --unstarted_;
    if (seeds) {
      configs_[id].seed = (*seeds)[i];
      configs_[id].next_episode = 0;
    }
    reset_game(batch, id);
  }
}

template <class Scenario>
void BasicBatch<Scenario>::reseed(std::span<const std::int64_t> ids,
                                  std::span<const std::uint64_t> seeds) {
  const CallGuard guard(caller_, "batch");
  check_count("seed", seeds.size(), ids.size());
  ids = copy_ids(ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(ids[i]);
    configs_[id].seed = seeds[i];
    configs_[id].next_episode = 1;
    games_[id].key = episode_key(seeds[i], 0);
  }
}

template <class Scenario>
BasicStepArgs<Scenario> BasicBatch<Scenario>::copy_step_args(
    std::span<const std::int64_t> actions, std::span<const std::int64_t> red_actions,
    std::optional<std::span<const std::int64_t>> ids) {
  const std::span<const std::int64_t> games = ids ? copy_ids(*ids) : all_ids_;
  check_count("action", actions.size(), games.size());
  copy_actions(actions, games, action_count(scenarios_.view()), "action", actions_);
  if (takes_red_actions_ && red_actions.empty() && !games.empty()) {
    throw std::invalid_argument("red_actions must be given, since the caller plays red");
  }
  if (!takes_red_actions_ && !red_actions.empty()) {
    throw std::invalid_argument(
        "red_actions may be given only if red is `given`; no game's red is");
  }
  if (takes_red_actions_) {
    check_count("red action", red_actions.size(), games.size());
    copy_actions(red_actions, games, scenarios_.red_actions().size(), "red action", red_actions_);
  }
  if (out_.tracks_compliance()) copy_orders(ids ? std::optional(games) : std::nullopt);
  if (unstarted_ != 0 || autoreset_ == Autoreset::kDisabled) check_phases(games);
  return {.batch = view(),
          .ids = games.data(),
          .actions = actions_.data(),
          .red_actions = takes_red_actions_ ? red_actions_.data() : nullptr,
          .red_action_table = scenarios_.red_actions().data(),
          .orders = orders_.data()};
}

template <class Scenario>
void BasicBatch<Scenario>::copy_orders(std::optional<std::span<const std::int64_t>> ids) {
  orders_.resize(ids ? ids->size() : games());
  if (!ids) std::ranges::copy(out_.orders, orders_.begin());
  for (std::size_t i = 0; ids && i < orders_.size(); ++i)
    orders_[i] = out_.orders[static_cast<std::size_t>((*ids)[i])];
  if (orders_.empty() || std::ranges::max(orders_) < kOrderCount) return;
  for (std::size_t i = 0; i < orders_.size(); ++i)
    check_order(ids ? static_cast<std::size_t>((*ids)[i]) : i, orders_[i]);
}

template <class Scenario>
void BasicBatch<Scenario>::check_phases(std::span<const std::int64_t> ids) const {
  for (const std::int64_t id : ids) {
    const Phase phase = games_[static_cast<std::size_t>(id)].phase;
    if (phase == Phase::kUnstarted) {
      throw std::runtime_error("reset must come before step; game " + std::to_string(id) +
                               " has not been reset");
    }
    if (phase == Phase::kOver && autoreset_ == Autoreset::kDisabled) {
      throw std::runtime_error("game " + std::to_string(id) +
                               " is over; reset it before the next step");
    }
  }
}

template <class Scenario>
std::size_t BasicBatch<Scenario>::step(std::span<const std::int64_t> actions,
                                       std::span<const std::int64_t> red_actions,
                                       std::optional<std::span<const std::int64_t>> ids) {
  const CallGuard guard(caller_, "batch");
  const BasicStepArgs<Scenario> args = copy_step_args(actions, red_actions, ids);
  const BasicKernel<Scenario> kernel = kernel_for(args.batch);
  const std::size_t count = actions.size();
  if (!thread_pool_ || count <= kChunk || !thread_pool_->is_of_this_process())
    return kernel(args, 0, count);
  std::atomic<std::size_t> ended = 0;
  thread_pool_->run((count + kChunk - 1) / kChunk, [&](std::size_t chunk) {
    ended += kernel(args, chunk * kChunk, std::min(count, (chunk + 1) * kChunk));
  });
  return ended;
}

template <class Scenario>
void BasicBatch<Scenario>::step_in_parts(
    std::size_t steps, const std::function<void(const BasicBatchStepper<Scenario>&)>& play) {
  const CallGuard guard(caller_, "batch");
  if (takes_red_actions_ || out_.observations.is_bytes())
    throw std::invalid_argument("games that play on need a red agent and float32 observations");
  check_phases(all_ids_);
  for (std::size_t id = 0; id < games(); ++id) {
    if (games_[id].phase == Phase::kRunning && games_[id].step + steps < games_[id].horizon)
      continue;
    throw std::invalid_argument("no episode may end within " + std::to_string(steps) +
                                " steps; that of game " + std::to_string(id) + " does");
  }
  if (out_.tracks_compliance()) copy_orders(std::nullopt);
  play(BasicBatchStepper<Scenario>({.batch = view(),
                                    .ids = all_ids_.data(),
                                    .actions = nullptr,
                                    .red_actions = nullptr,
                                    .red_action_table = nullptr,
                                    .orders = orders_.data()}));
}

template <class Scenario>
void BasicBatch<Scenario>::redirect_observations(const Observations<Scenario>& observations) {
  const CallGuard guard(caller_, "batch");
  if (observations.size() != out_.observations.size() ||
      observations.is_bytes() != out_.observations.is_bytes() ||
      observations.column_count != out_.observations.column_count) {
    throw std::invalid_argument("observations must have the size and type of those they replace");
  }
  out_.observations = observations;
}

template <class Scenario>
std::vector<std::uint8_t> BasicBatch<Scenario>::save(std::int64_t id) {
  const CallGuard guard(caller_, "batch");
  const std::size_t game = checked_id(id);
  if (out_.tracks_compliance()) check_order(game, out_.orders[game]);
  return save_game(view(), game);
}

template <class Scenario>
void BasicBatch<Scenario>::restore(std::span<const std::int64_t> ids, std::span<const Blob> blobs) {
  const CallGuard guard(caller_, "batch");
  check_count("snapshot", blobs.size(), ids.size());
  ids = copy_ids(ids);
  const BasicBatchView<Scenario> batch = view();
  std::vector<BasicSnapshot<Scenario>> snapshots;  // all are read before any game changes
  for (const Blob blob : blobs) snapshots.push_back(read_snapshot(batch, blob));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::size_t>(ids[i]);
    unstarted_ -= games_[id].phase == Phase::kUnstarted;
    restore_game(batch, id, snapshots[i]);
    unstarted_ += games_[id].phase == Phase::kUnstarted;
  }
}

template <class Scenario>
typename Scenario::Game BasicBatch<Scenario>::game(std::int64_t id) {
  const CallGuard guard(caller_, "batch");
  return games_[checked_id(id)];
}

template <class Scenario>
void BasicBatch<Scenario>::read_states(
    const std::function<void(const BasicBatchStates<Scenario>&)>& read) {
  const CallGuard guard(caller_, "batch");
  read({games_, out_.true_state, final_games_, out_.final_true_state});
}

template <class Scenario>
std::vector<typename Scenario::Session> BasicBatch<Scenario>::session_log(std::int64_t id) {
  const CallGuard guard(caller_, "batch");
  const std::size_t index = checked_id(id);
  if (games_[index].phase == Phase::kUnstarted) return {};
  const BasicGameStore<Scenario> store = view().store;
  const auto sessions = BasicSlot<Scenario>{store, index}.session_log();
  return {sessions.begin(), sessions.end()};
}

template <class Scenario>
void BasicBatch<Scenario>::write_trace_rows(std::span<TraceRow> rows) {
  const CallGuard guard(caller_, "batch");
  check_count("row", rows.size(), games());
  const BasicGameStore<Scenario> store = view().store;
  for (std::size_t id = 0; id < games(); ++id)
    write_state(BasicSlot<Scenario>{store, id}, rows[id]);
}

template class BasicBatch<CompiledScenario>;
template class BasicBatch<TableScenario>;

}  // namespace cagepool
