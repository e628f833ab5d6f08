#pragma once
// A batch: many games that are stepped together and write to memory of the caller.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/kernel.hpp"
#include "core/snapshot.hpp"
#include "core/thread_pool.hpp"
#include "core/trace.hpp"

namespace cagepool {

/// The scenarios of a batch, and the actions of its players by index.
template <class Scenario>
struct BatchScenarios;

template <>
struct BatchScenarios<CompiledScenario> {
  static std::size_t slots() { return kHostCount; }
  static bool draws_scenarios() { return false; }
  static CompiledScenario::Scenarios view() { return {}; }
  static std::span<const RedAction> red_actions() { return kRedActions; }
  static void assign(std::size_t /*id*/, Game& /*game*/) {}
};

template <>
struct BatchScenarios<TableScenario> {
  std::vector<ScenarioTables> tables;
  std::vector<LayoutAction> actions;
  std::size_t slot_count;
  bool is_drawn;  // a scenario for every episode
  std::vector<RedAction> red_action_table;

  std::size_t slots() const { return slot_count; }
  bool draws_scenarios() const { return is_drawn; }
  TableScenario::Scenarios view() const { return {tables, actions}; }
  std::span<const RedAction> red_actions() const { return red_action_table; }
  /// Scenario of a game that keeps its own.
  void assign(std::size_t id, WideGame& game) const {
    game.scenario = static_cast<std::uint32_t>(id % tables.size());
  }
};

/// Check the tables and make the actions of both players. Red has an Impact on each host that runs
/// the OTService in one of the scenarios.
///
/// @param kinds `kind_bit` of blue's kinds of actions, in the order of their indices.
/// @param slots Number of hosts in observations and in blue's actions.
BatchScenarios<TableScenario> make_scenarios(std::vector<ScenarioTables> tables,
                                             std::span<const std::uint8_t> kinds, std::size_t slots,
                                             bool draws_scenarios);

/// The games of a batch, and how they were at the end of their last episode (with
/// Autoreset::kSameStep; else the last two are empty).
template <class Scenario>
struct BasicBatchStates {
  std::span<const typename Scenario::Game> games;
  std::span<const typename Scenario::TrueState> true_states;
  std::span<const typename Scenario::Game> final_games;
  std::span<const typename Scenario::TrueState> final_true_states;
};
using BatchStates = BasicBatchStates<CompiledScenario>;

/// Steps ranges of the games of a batch; threads may step different ranges at the same time.
template <class Scenario>
class BasicBatchStepper {
 public:
  explicit BasicBatchStepper(const BasicStepArgs<Scenario>& args)
      : args_(args), kernel_(kernel_for(args.batch)) {}

  const BasicOutputs<Scenario>& outputs() const { return args_.batch.out; }
  const typename Scenario::Game& game(std::size_t id) const { return args_.batch.store.games[id]; }

  /// Play one action in the games from `begin` to `end`; `actions` has those of all games.
  void step(std::span<const typename Scenario::Action> actions, std::size_t begin,
            std::size_t end) const {
    BasicStepArgs<Scenario> args = args_;
    args.actions = actions.data();
    kernel_(args, begin, end);
  }

 private:
  BasicStepArgs<Scenario> args_;
  BasicKernel<Scenario> kernel_;
};
using BatchStepper = BasicBatchStepper<CompiledScenario>;

/// One thread at a time may use a batch: a call during another one throws std::runtime_error.
template <class Scenario>
class BasicBatch {
 public:
  BasicBatch(BatchScenarios<Scenario> scenarios, std::vector<GameConfig> configs,
             const BasicOutputs<Scenario>& outputs, Autoreset autoreset, ComplianceRule rule,
             int threads);

  std::size_t games() const { return configs_.size(); }
  int threads() const { return thread_pool_ ? thread_pool_->threads() : 1; }

  /// Start new episodes; with `seeds`, the first ones of new random streams.
  void reset(std::span<const std::int64_t> ids,
             std::optional<std::span<const std::uint64_t>> seeds);
  /// Switch games to new random streams from their current step on.
  void reseed(std::span<const std::int64_t> ids, std::span<const std::uint64_t> seeds);
  /// Play one action in every game, or in the games `ids`. Returns how many episodes ended.
  std::size_t step(std::span<const std::int64_t> actions, std::span<const std::int64_t> red_actions,
                   std::optional<std::span<const std::int64_t>> ids);
  /// Call `play`, which steps every game `steps` times. Throws std::invalid_argument before the
  /// first step if an episode would end with them, if the caller plays red, or if observations are
  /// bytes.
  void step_in_parts(std::size_t steps,
                     const std::function<void(const BasicBatchStepper<Scenario>&)>& play);
  /// Write observations to another array from now on.
  void redirect_observations(const Observations<Scenario>& observations);

  std::vector<std::uint8_t> save(std::int64_t id);
  /// Replace games by snapshots; nothing changes if any snapshot is refused.
  void restore(std::span<const std::int64_t> ids, std::span<const Blob> blobs);

  typename Scenario::Game game(std::int64_t id);
  /// Call `read` with all games; none is stepped meanwhile.
  void read_states(const std::function<void(const BasicBatchStates<Scenario>&)>& read);
  /// The sessions of the episode so far.
  std::vector<typename Scenario::Session> session_log(std::int64_t id);
  /// Write the state of every game, one row per game; only fields named `s_*` are written.
  void write_trace_rows(std::span<TraceRow> rows);
  const BatchScenarios<Scenario>& scenarios() const { return scenarios_; }

 private:
  BasicBatchView<Scenario> view();
  std::size_t checked_id(std::int64_t id) const;
  std::span<const std::int64_t> copy_ids(std::span<const std::int64_t> ids);
  BasicStepArgs<Scenario> copy_step_args(std::span<const std::int64_t> actions,
                                         std::span<const std::int64_t> red_actions,
                                         std::optional<std::span<const std::int64_t>> ids);
  void copy_orders(std::optional<std::span<const std::int64_t>> ids);
  void check_phases(std::span<const std::int64_t> ids) const;

  BatchScenarios<Scenario> scenarios_;
  std::vector<GameConfig> configs_;
  std::vector<typename Scenario::Game> games_;
  std::vector<typename Scenario::Game> final_games_;
  std::size_t session_capacity_;
  std::vector<typename Scenario::Session> session_logs_;
  std::vector<std::int64_t> all_ids_;
  // Arguments of the current call, copied before they are checked: the caller's arrays may change
  // during the call.
  std::vector<std::int64_t> ids_;
  std::vector<typename Scenario::Action> actions_;
  std::vector<typename Scenario::Action> red_actions_;
  std::vector<Order> orders_;
  std::vector<std::uint8_t> is_named_;  // scratch of copy_ids, one flag per game
  BasicOutputs<Scenario> out_;
  Autoreset autoreset_;
  ComplianceRule rule_;
  bool takes_red_actions_;
  std::size_t unstarted_;  // number of games that were never reset
  std::unique_ptr<ThreadPool, ThreadPoolDeleter> thread_pool_;
  std::atomic<std::uint64_t> caller_ = 0;  // process generation of the call under way, or 0
};
using Batch = BasicBatch<CompiledScenario>;

}  // namespace cagepool
