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

/// The games of a batch, and how they were at the end of their last episode (with
/// Autoreset::kSameStep; else the last two are empty).
struct BatchStates {
  std::span<const Game> games;
  std::span<const TrueState> true_states;
  std::span<const Game> final_games;
  std::span<const TrueState> final_true_states;
};

/// Steps ranges of the games of a batch; threads may step different ranges at the same time.
class BatchStepper {
 public:
  explicit BatchStepper(const StepArgs& args) : args_(args), kernel_(kernel_for(args.batch)) {}

  const Outputs& outputs() const { return args_.batch.out; }
  const Game& game(std::size_t id) const { return args_.batch.store.games[id]; }

  /// Play one action in the games from `begin` to `end`; `actions` has those of all games.
  void step(std::span<const std::uint8_t> actions, std::size_t begin, std::size_t end) const {
    StepArgs args = args_;
    args.actions = actions.data();
    kernel_(args, begin, end);
  }

 private:
  StepArgs args_;
  Kernel kernel_;
};

/// One thread at a time may use a batch: a call during another one throws std::runtime_error.
class Batch {
 public:
  Batch(std::vector<GameConfig> configs, const Outputs& outputs, Autoreset autoreset,
        ComplianceRule rule, int threads);

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
  void step_in_parts(std::size_t steps, const std::function<void(const BatchStepper&)>& play);
  /// Write observations to another array from now on.
  void redirect_observations(const ObservationArray& observations);

  std::vector<std::uint8_t> save(std::int64_t id);
  /// Replace games by snapshots; nothing changes if any snapshot is refused.
  void restore(std::span<const std::int64_t> ids, std::span<const Blob> blobs);

  Game game(std::int64_t id);
  /// Call `read` with all games; none is stepped meanwhile.
  void read_states(const std::function<void(const BatchStates&)>& read);
  /// The sessions of the episode so far.
  std::vector<Session> session_log(std::int64_t id);
  /// Write the state of every game, one row per game; only fields named `s_*` are written.
  void write_trace_rows(std::span<TraceRow> rows);

 private:
  BatchView view();
  std::size_t checked_id(std::int64_t id) const;
  std::span<const std::int64_t> copy_ids(std::span<const std::int64_t> ids);
  StepArgs copy_step_args(std::span<const std::int64_t> actions,
                          std::span<const std::int64_t> red_actions,
                          std::optional<std::span<const std::int64_t>> ids);
  void copy_orders(std::optional<std::span<const std::int64_t>> ids);
  void check_phases(std::span<const std::int64_t> ids) const;

  std::vector<GameConfig> configs_;
  std::vector<Game> games_;
  std::vector<Game> final_games_;
  std::size_t session_capacity_;
  std::vector<Session> session_logs_;
  std::vector<std::int64_t> all_ids_;
  // Arguments of the current call, copied before they are checked: the caller's arrays may change
  // during the call.
  std::vector<std::int64_t> ids_;
  std::vector<std::uint8_t> actions_;
  std::vector<std::uint8_t> red_actions_;
  std::vector<Order> orders_;
  std::vector<std::uint8_t> is_named_;  // scratch of copy_ids, one flag per game
  Outputs out_;
  Autoreset autoreset_;
  ComplianceRule rule_;
  bool takes_red_actions_;
  std::size_t unstarted_;  // number of games that were never reset
  std::unique_ptr<ThreadPool, ThreadPoolDeleter> thread_pool_;
  std::atomic<std::uint64_t> caller_ = 0;  // process generation of the call under way, or 0
};

}  // namespace cagepool
