#include "policy/rollout.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "policy/belief_features.hpp"
#include "policy/true_state_features.hpp"

namespace cagepool {
namespace {

/// Plays ranges of games; each range is played by one thread.
template <class Scenario>
class RolloutPlayer {
 public:
  RolloutPlayer(const BasicBatchStepper<Scenario>& stepper, const RolloutPolicy& policy,
                const RewardConfig& rewards, const RolloutEpisodes& episodes,
                const RolloutBuffer& buffer)
      : stepper_(stepper),
        policy_(policy),
        rewards_(rewards),
        episodes_(episodes),
        buffer_(buffer),
        actions_(episodes.returns.size()) {}

  void play(RowRange games, std::size_t steps) {
    using Clock = std::chrono::steady_clock;
    std::array<Clock::duration, 3> spent{};
    Clock::time_point last = Clock::now();
    const auto count = [&](std::size_t stage) {
      const Clock::time_point now = Clock::now();
      spent[stage] += now - std::exchange(last, now);
    };
    for (std::size_t step = 0; step < steps; ++step) {
      choose(games, step);
      count(0);
      stepper_.step(actions_, games.first, games.end);
      count(1);
      add_rewards(games, step);
      encode(games, step + 1);
      count(2);
    }
    for (std::size_t stage = 0; stage < spent.size(); ++stage)
      nanoseconds_[stage] +=
          static_cast<std::uint64_t>(std::chrono::nanoseconds(spent[stage]).count());
  }

  RolloutTimes times() const { return {nanoseconds_[0], nanoseconds_[1], nanoseconds_[2]}; }

 private:
  /// The rows of these games at a step, in an array with `columns` values per row.
  template <class Value>
  std::span<Value> rows(std::span<Value> array, std::size_t step, RowRange games,
                        std::size_t columns = 1) const {
    if (array.empty()) return {};
    return array.subspan((step * actions_.size() + games.first) * columns, games.size() * columns);
  }

  void choose(RowRange games, std::size_t step) {
    std::array<std::int64_t, MlpPass::kMaxRows> choices;
    const auto chosen = std::span(choices).first(games.size());
    policy_.actor.sample_part(policy_.parameters,
                              rows(buffer_.features, step, games, policy_.encoder.size()),
                              rows(buffer_.masks, step, games, policy_.encoder.choices()),
                              rows(buffer_.uniforms, step, games),
                              {chosen, rows(buffer_.log_probabilities, step, games)}, games.first);
    std::ranges::copy(chosen, rows(buffer_.chosen, step, games).begin());
    for (std::size_t i = 0; i < games.size(); ++i)
      actions_[games.first + i] = static_cast<typename Scenario::Action>(
          policy_.encoder.tables().choices[static_cast<std::size_t>(chosen[i])]);
  }

  void add_rewards(RowRange games, std::size_t step) {
    const auto& out = stepper_.outputs();
    const std::span<float> scaled = rows(buffer_.rewards, step, games);
    for (std::size_t i = 0; i < games.size(); ++i) {
      const std::size_t game = games.first + i;
      double reward = out.rewards[game];
      episodes_.returns[game] += reward;
      if (!out.alignment.empty()) reward += out.alignment[game];
      const auto length = static_cast<std::size_t>(episodes_.lengths[game]++);
      if (!rewards_.weights.empty()) reward *= static_cast<double>(rewards_.weights[length]);
      scaled[i] = static_cast<float>(reward * rewards_.scale);
    }
  }

  void encode(RowRange games, std::size_t step) {
    std::array<std::int64_t, MlpPass::kMaxRows> played;
    for (std::size_t i = 0; i < games.size(); ++i) played[i] = actions_[games.first + i];
    const auto& observed = stepper_.outputs().observations;
    const std::span<const float> values{observed.template row<float>(games.first),
                                        games.size() * observed.columns()};
    const std::span<History> histories = episodes_.histories.subspan(games.first, games.size());
    policy_.encoder.update(std::span(played).first(games.size()), values, histories);
    const std::size_t size = policy_.encoder.size();
    const std::span<float> features = rows(buffer_.features, step, games, size);
    policy_.encoder.encode(values, histories, features,
                           rows(buffer_.masks, step, games, policy_.encoder.choices()));
    if constexpr (!Scenario::kIsTable) {
      if (policy_.belief != nullptr)
        update_belief(games, std::span(played).first(games.size()), values, features);
      if (!buffer_.critic_features.empty()) write_critic_rows(games, step, features);
    }
  }

  void update_belief(RowRange games, std::span<const std::int64_t> played,
                     std::span<const float> values, std::span<float> features) const {
    std::array<std::int64_t, MlpPass::kMaxRows> numbers;
    const auto ids = std::span(numbers).first(games.size());
    std::iota(ids.begin(), ids.end(), static_cast<std::int64_t>(games.first));
    std::array<std::uint64_t, MlpPass::kMaxRows> words;
    for (std::size_t i = 0; i < ids.size(); ++i)
      words[i] = pack_observation(&values[i * kObservationSize]);
    policy_.belief->update_part(ids, played, std::span(words).first(ids.size()));
    const std::size_t size = policy_.encoder.size();
    write_belief_features(*policy_.belief, ids, features, size, size - kBeliefFeatures);
  }

  void write_critic_rows(RowRange games, std::size_t step, std::span<const float> features) const {
    const std::size_t own = policy_.encoder.size();
    const std::size_t size = own + true_state_feature_count();
    const std::span<float> out = rows(buffer_.critic_features, step, games, size);
    for (std::size_t i = 0; i < games.size(); ++i) {
      const std::size_t game = games.first + i;
      const std::span<float> row = out.subspan(i * size, size);
      std::ranges::copy(features.subspan(i * own, own), row.begin());
      write_true_state_features(stepper_.game(game), stepper_.outputs().true_state[game],
                                row.subspan(own));
    }
  }

  const BasicBatchStepper<Scenario>& stepper_;
  const RolloutPolicy& policy_;
  const RewardConfig& rewards_;
  const RolloutEpisodes& episodes_;
  const RolloutBuffer& buffer_;
  std::vector<typename Scenario::Action> actions_;  // by game
  std::array<std::atomic<std::uint64_t>, 3> nanoseconds_{};
};

}  // namespace

template <class Scenario>
RolloutTimes play_rollout(BasicBatch<Scenario>& batch, const RolloutPolicy& policy,
                          const RewardConfig& rewards, const RolloutEpisodes& episodes,
                          const RolloutBuffer& buffer, std::size_t steps) {
  RolloutTimes times{};
  const auto play = [&] {
    batch.step_in_parts(steps, [&](const BasicBatchStepper<Scenario>& stepper) {
      if (stepper.outputs().observations.columns() != policy.encoder.observation_size())
        throw std::invalid_argument("the encoder must have the host slots of the batch");
      RolloutPlayer<Scenario> player(stepper, policy, rewards, episodes, buffer);
      const std::size_t parts = (batch.games() + MlpPass::kMaxRows - 1) / MlpPass::kMaxRows;
      policy.actor.run_parts(parts, [&](std::size_t part) {
        player.play(part_of_rows(batch.games(), part, parts), steps);
      });
      times = player.times();
    });
  };
  if (policy.belief == nullptr) {
    play();
  } else {
    const CallGuard lock = policy.belief->guard();
    play();
  }
  return times;
}
template RolloutTimes play_rollout(BasicBatch<CompiledScenario>&, const RolloutPolicy&,
                                   const RewardConfig&, const RolloutEpisodes&,
                                   const RolloutBuffer&, std::size_t);
template RolloutTimes play_rollout(BasicBatch<TableScenario>&, const RolloutPolicy&,
                                   const RewardConfig&, const RolloutEpisodes&,
                                   const RolloutBuffer&, std::size_t);

}  // namespace cagepool
