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

/// The networks of a batch, and the actions of its players by index.
template <class Network>
struct BatchNetworks;

template <>
struct BatchNetworks<Cage2> {
  static bool draws_scenarios() { return false; }
  static Cage2::Scenarios scenarios() { return {}; }
  static std::size_t action_count() { return kActionCount; }
  static std::span<const RedAction> red_actions() { return kRedActions; }
  static void assign(std::size_t /*id*/, Game& /*game*/) {}
};

template <>
struct BatchNetworks<TableNetwork> {
  std::vector<ScenarioTables> tables;
  std::vector<LayoutAction> actions;
  std::size_t slots;
  bool is_drawn;  // a network for every episode
  std::vector<RedAction> red_action_table;

  bool draws_scenarios() const { return is_drawn; }
  TableNetwork::Scenarios scenarios() const { return {tables, actions}; }
  std::size_t action_count() const { return actions.size(); }
  std::span<const RedAction> red_actions() const { return red_action_table; }
  /// Network of a game that keeps its own.
  void assign(std::size_t id, WideGame& game) const {
    game.scenario = static_cast<std::uint32_t>(id % tables.size());
  }
};

/// Check the tables and make the actions of both players.
///
/// @param kinds `kind_bit` of blue's kinds of actions, in the order of their indices.
/// @param slots Number of hosts in observations and in blue's actions.
BatchNetworks<TableNetwork> make_networks(std::vector<ScenarioTables> tables,
                                          std::span<const std::uint8_t> kinds, std::size_t slots,
                                          bool draws_scenarios);

/// The games of a batch, and how they were at the end of their last episode (with
/// Autoreset::kSameStep; else the last two are empty).
template <class Network>
struct BasicBatchStates {
  std::span<const typename Network::Game> games;
  std::span<const typename Network::TrueState> true_states;
  std::span<const typename Network::Game> final_games;
  std::span<const typename Network::TrueState> final_true_states;
};
using BatchStates = BasicBatchStates<Cage2>;

/// Steps ranges of the games of a batch; threads may step different ranges at the same time.
template <class Network>
class BasicBatchStepper {
 public:
  explicit BasicBatchStepper(const BasicStepArgs<Network>& args)
      : args_(args), kernel_(kernel_for(args.batch)) {}

  const BasicOutputs<Network>& outputs() const { return args_.batch.out; }
  const typename Network::Game& game(std::size_t id) const { return args_.batch.store.games[id]; }

  /// Play one action in the games from `begin` to `end`; `actions` has those of all games.
  void step(std::span<const typename Network::Action> actions, std::size_t begin,
            std::size_t end) const {
    BasicStepArgs<Network> args = args_;
    args.actions = actions.data();
    kernel_(args, begin, end);
  }

 private:
  BasicStepArgs<Network> args_;
  BasicKernel<Network> kernel_;
};
using BatchStepper = BasicBatchStepper<Cage2>;

/// One thread at a time may use a batch: a call during another one throws std::runtime_error.
template <class Network>
class BasicBatch {
 public:
  BasicBatch(BatchNetworks<Network> networks, std::vector<GameConfig> configs,
             const BasicOutputs<Network>& outputs, Autoreset autoreset, ComplianceRule rule,
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
                     const std::function<void(const BasicBatchStepper<Network>&)>& play);
  /// Write observations to another array from now on.
  void redirect_observations(const Observations<Network>& observations);

  std::vector<std::uint8_t> save(std::int64_t id);
  /// Replace games by snapshots; nothing changes if any snapshot is refused.
  void restore(std::span<const std::int64_t> ids, std::span<const Blob> blobs);

  typename Network::Game game(std::int64_t id);
  /// Call `read` with all games; none is stepped meanwhile.
  void read_states(const std::function<void(const BasicBatchStates<Network>&)>& read);
  /// The sessions of the episode so far.
  std::vector<typename Network::Session> session_log(std::int64_t id);
  /// Write the state of every game, one row per game; only fields named `s_*` are written.
  void write_trace_rows(std::span<BasicTraceRow<Network>> rows);
  const BatchNetworks<Network>& networks() const { return networks_; }

 private:
  BasicBatchView<Network> view();
  std::size_t checked_id(std::int64_t id) const;
  std::span<const std::int64_t> copy_ids(std::span<const std::int64_t> ids);
  BasicStepArgs<Network> copy_step_args(std::span<const std::int64_t> actions,
                                        std::span<const std::int64_t> red_actions,
                                        std::optional<std::span<const std::int64_t>> ids);
  void copy_orders(std::optional<std::span<const std::int64_t>> ids);
  void check_phases(std::span<const std::int64_t> ids) const;

  BatchNetworks<Network> networks_;
  std::vector<GameConfig> configs_;
  std::vector<typename Network::Game> games_;
  std::vector<typename Network::Game> final_games_;
  std::size_t session_capacity_;
  std::vector<typename Network::Session> session_logs_;
  std::vector<std::int64_t> all_ids_;
  // Arguments of the current call, copied before they are checked: the caller's arrays may change
  // during the call.
  std::vector<std::int64_t> ids_;
  std::vector<typename Network::Action> actions_;
  std::vector<typename Network::Action> red_actions_;
  std::vector<Order> orders_;
  std::vector<std::uint8_t> is_named_;  // scratch of copy_ids, one flag per game
  BasicOutputs<Network> out_;
  Autoreset autoreset_;
  ComplianceRule rule_;
  bool takes_red_actions_;
  std::size_t unstarted_;  // number of games that were never reset
  std::unique_ptr<ThreadPool, ThreadPoolDeleter> thread_pool_;
  std::atomic<std::uint64_t> caller_ = 0;  // process generation of the call under way, or 0
};
using Batch = BasicBatch<Cage2>;

}  // namespace cagepool
