#pragma once
// The exact belief of blue: all states that a game can be in, given blue's actions and
// observations, with their probabilities (docs/belief.md). Bayes' rule by enumeration: a step plays
// the rules on every hypothesis once per course of the random draws, keeps the courses that give
// the observation, and merges equal states.

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "core/call_guard.hpp"
#include "core/snapshot.hpp"
#include "core/thread_pool.hpp"

namespace cagepool {

/// Red agents that a belief may have as hypotheses: those of the challenge. Another number changes
/// the inputs of all policies with a belief.
inline constexpr std::size_t kBelievableReds = static_cast<std::size_t>(Red::kSleep) + 1;

/// A state of the game, reduced by `reduce` to what its future depends on, and its probability.
struct Hypothesis {
  Game game;
  double weight;
};

/// What is certain about a game, and the record of its belief.
struct BeliefState {
  double log_evidence;        // logarithm of the probability of all observations of the episode
  double dropped_mass;        // sum of the probabilities that were dropped, of each step's belief
  std::uint64_t dropped;      // number of dropped hypotheses
  std::uint64_t observation;  // last observation
  std::uint32_t step;
  std::uint32_t count;                           // number of hypotheses; 0: no red fits
  std::array<std::uint16_t, kHostCount> decoys;  // as in TrueState
  std::array<std::uint16_t, 3> unused;
};

/// Settings of the games of a filter.
struct BeliefConfig {
  std::array<double, kBelievableReds> prior;  // probability of each red agent
  Edition edition;
  bool green;
  std::size_t capacity;  // most hypotheses per game
  int threads;
};

/// Sums over all updates of a filter.
struct BeliefTotals {
  std::uint64_t updates;
  std::uint64_t hypotheses;  // after the updates
  std::uint64_t misfits;     // updates after which no red fitted
  std::uint64_t dropped;
  double dropped_mass;
};

/// The bits of an observation of 52 values; all but 0 count as 1.
template <class Value>
inline std::uint64_t pack_observation(const Value* values) {
  std::uint64_t bits = 0;
  for (int k = 0; k < kObservationSize; ++k) bits |= std::uint64_t{values[k] != Value{0}} << k;
  return bits;
}

/// Reduce a state to what its future depends on, so that states with the same future compare equal:
///
/// - The random stream, the return and the time do not decide what is possible next.
/// - Beside a privileged session, no rule reads the user-level ones of the same host: an escalation
///   changes nothing, and what ends the privileged session ends them. Without one there is at most
///   one user-level session on a host (rules 5.5), so that the masks say all of the session log.
/// - The red agents process the outcome of their last action before they choose the next. Doing so
///   now changes no choice: B_lineAgent depends on its next position alone, RedMeanderAgent on its
///   lists after the update.
/// - B_lineAgent never reads what red knows of subnets, addresses and hosts.
void reduce(Game& game);

/// Beliefs about many games. One thread at a time may use a filter: a call during another one
/// throws std::runtime_error. Same actions and observations, same belief: for any number of threads
/// and whatever the other games are.
class BeliefFilter {
 public:
  BeliefFilter(std::size_t games, const BeliefConfig& config);

  std::size_t games() const { return states_.size(); }
  const BeliefConfig& config() const { return config_; }
  const BeliefState& state(std::size_t game) const { return states_[game]; }
  std::span<const Hypothesis> hypotheses(std::size_t game) const {
    return {&hypotheses_[game * config_.capacity], states_[game].count};
  }
  BeliefTotals totals() const;
  /// Keeps out other threads while a caller reads.
  CallGuard guard() const { return {caller_, "belief filter"}; }

  /// Start new episodes.
  void reset(std::span<const std::int64_t> ids);
  /// Add a step: blue's action and the observation that followed, as bits, of each game of `ids`.
  /// A game whose observation no hypothesis can give has none from then on, until its reset.
  void update(std::span<const std::int64_t> ids, std::span<const std::int64_t> actions,
              std::span<const std::uint64_t> observations);
  /// As `update`, in the thread that calls and without its checks. Several threads may update
  /// different games while their caller holds `guard`.
  void update_part(std::span<const std::int64_t> ids, std::span<const std::int64_t> actions,
                   std::span<const std::uint64_t> observations);
  /// Probability of a state, or of others with the same future; 0 if its time, its observation or
  /// its decoys are not those of the belief.
  double probability_of(std::int64_t id, const Snapshot& snapshot) const;
  /// Draw a game from the belief, as a snapshot with a random stream of its own.
  Snapshot sample(std::int64_t id, std::uint64_t seed, std::uint16_t horizon) const;

  /// Replace the beliefs of all games. `hypotheses` has those of all games in order. Throws
  /// std::invalid_argument, and changes nothing, if they are not those of a filter with the same
  /// settings.
  void restore(std::span<const BeliefState> states, std::span<const Hypothesis> hypotheses);

 private:
  struct Scratch;

  std::size_t checked_id(std::int64_t id) const;
  std::span<Hypothesis> room(std::size_t game) {
    return {&hypotheses_[game * config_.capacity], config_.capacity};
  }
  void start(std::size_t game);
  void update_game(std::size_t game, int action, std::uint64_t observation, Scratch& scratch);
  void keep(std::size_t game, Scratch& scratch);
  Snapshot snapshot_of(const BeliefState& state, const Game& game, std::uint64_t seed,
                       std::uint16_t horizon) const;
  void check_state(const BeliefState& state, std::span<const Hypothesis> hypotheses) const;

  BeliefConfig config_;
  std::vector<Hypothesis> initial_;
  std::vector<BeliefState> states_;
  std::vector<Hypothesis> hypotheses_;  // `capacity` per game
  std::vector<std::uint8_t> is_named_;  // scratch of `update`, one flag per game
  std::atomic<std::uint64_t> updates_ = 0;
  std::atomic<std::uint64_t> updated_hypotheses_ = 0;
  std::atomic<std::uint64_t> misfits_ = 0;
  std::uint64_t past_dropped_ = 0;  // of earlier episodes
  double past_dropped_mass_ = 0.0;
  std::unique_ptr<ThreadPool, ThreadPoolDeleter> thread_pool_;
  mutable std::atomic<std::uint64_t> caller_ = 0;  // process generation of the call under way, or 0
};

}  // namespace cagepool
