#pragma once
// Python bindings of rollouts, and of what they write of a batch.

#include <optional>
#include <tuple>
#include <vector>

#include "bindings/bound_batch.hpp"
#include "bindings/policy_arrays.hpp"
#include "policy/belief_features.hpp"
#include "policy/rollout.hpp"
#include "policy/true_state_features.hpp"

namespace cagepool {

inline constexpr const char* kNoTrueStateFeatures =
    "the true state is an input of the critic in CAGE-2 only";
using StageNanoseconds = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

/// Copy a row of features and append those of the true state, for every game.
template <class Scenario>
void write_critic_features(BoundBatch<Scenario>& self, nb::handle features,
                           nb::handle critic_features, bool final) {
  const Rows<const float> seen(features, "features");
  const Rows<float> out(critic_features, "critic_features");
  const std::size_t games = self.batch().games();
  const std::size_t own = seen.column_count();
  const std::size_t added = true_state_feature_count();
  seen.check_rows(games);
  out.check_rows(games);
  out.check_columns(own + added);
  const std::span<const float> source = seen.span();
  const std::span<float> target = out.span();
  const nb::gil_scoped_release release;
  if constexpr (Scenario::kIsTable) {
    throw std::invalid_argument(kNoTrueStateFeatures);
  } else {
    self.batch().read_states([&](const BatchStates& states) {
      if (final && states.final_games.empty())
        throw std::invalid_argument("last states of episodes need autoreset same_step");
      for (std::size_t game = 0; game < games; ++game) {
        const std::span<float> row = target.subspan(game * (own + added), own + added);
        std::ranges::copy(source.subspan(game * own, own), row.begin());
        write_true_state_features((final ? states.final_games : states.games)[game],
                                  (final ? states.final_true_states : states.true_states)[game],
                                  row.subspan(own));
      }
    });
  }
}

/// Episodes of a rollout, copied: other threads may change the arrays meanwhile.
class EpisodeArrays {
 public:
  EpisodeArrays(const FeatureEncoder& encoder, std::size_t games, nb::handle histories,
                nb::handle returns, nb::handle lengths)
      : histories_(histories, "histories"),
        returns_(returns, "returns"),
        lengths_(lengths, "lengths"),
        history_copy_(copy_of(histories_.rows<const History>())),
        return_copy_(copy_of<double>(returns_.span())),
        length_copy_(copy_of<std::int64_t>(lengths_.span())) {
    histories_.check_rows(games);
    check_rows(games, returns_, lengths_);
    check_histories(encoder, history_copy_);
  }

  RolloutEpisodes episodes() { return {history_copy_, return_copy_, length_copy_}; }
  void check_lengths(std::size_t steps, std::size_t limit) const {
    for (const std::int64_t length : length_copy_)
      check(length >= 0 && static_cast<std::size_t>(length) + steps <= limit,
            "there must be a reward weight for every step");
  }
  void write_back() const {
    std::ranges::copy(history_copy_, histories_.rows<History>().begin());
    std::ranges::copy(return_copy_, returns_.span().begin());
    std::ranges::copy(length_copy_, lengths_.span().begin());
  }

 private:
  Buffer histories_;
  Row<double> returns_;
  Row<std::int64_t> lengths_;
  std::vector<History> history_copy_;
  std::vector<double> return_copy_;
  std::vector<std::int64_t> length_copy_;
};

template <class Scenario>
StageNanoseconds play_steps(BoundBatch<Scenario>& self, MlpActor& actor, nb::handle parameters,
                            const FeatureEncoder& encoder, BeliefFilter* belief, std::size_t steps,
                            nb::handle uniforms, nb::handle features, nb::handle masks,
                            nb::handle critic_features, nb::handle chosen,
                            nb::handle log_probabilities, nb::handle rewards, nb::handle histories,
                            nb::handle returns, nb::handle lengths, nb::handle reward_weights,
                            double reward_scale) {
  const std::size_t games = self.batch().games();
  const Row<const float> weights(parameters, "parameters");
  check_rows(actor.shape().size(), weights);
  check(encoder.tables().actions.size() == action_count(self.batch().scenarios().view()),
        "the encoder must have the actions of the batch");
  check(encoder.size() == actor.shape().inputs() && encoder.choices() == actor.shape().outputs(),
        "features and choices of the encoder must be inputs and outputs of the actor");
  check(belief == nullptr ||
            (!Scenario::kIsTable && belief->games() == games && encoder.size() >= kBeliefFeatures),
        "the belief must be about the games of the batch, and part of the features");
  check(critic_features.is_none() || !Scenario::kIsTable, kNoTrueStateFeatures);
  const Rows<float> encoded(features, "features");
  encoded.check_columns(encoder.size());
  const Masks allowed(masks, (steps + 1) * games, encoder.choices());
  std::optional<Rows<float>> critic;
  if (!critic_features.is_none()) {
    critic.emplace(critic_features, "critic_features");
    critic->check_columns(encoder.size() + true_state_feature_count());
    critic->check_rows((steps + 1) * games);
  }
  const Row<const float> numbers(uniforms, "uniforms");
  const Row<std::int64_t> choices(chosen, "chosen");
  const Row<float> logs(log_probabilities, "log_probabilities");
  const Row<float> scaled(rewards, "rewards");
  check_rows((steps + 1) * games, encoded);
  check_rows(steps * games, numbers, choices, logs, scaled);
  EpisodeArrays arrays(encoder, games, histories, returns, lengths);
  std::optional<Row<const float>> by_step;
  if (!reward_weights.is_none()) {
    by_step.emplace(reward_weights, "reward_weights");
    arrays.check_lengths(steps, by_step->row_count());
  }
  RolloutTimes times;
  {
    const nb::gil_scoped_release release;
    times = play_rollout(
        self.batch(), {actor, weights.span(), encoder, belief},
        {by_step ? by_step->span() : std::span<const float>(), reward_scale}, arrays.episodes(),
        {encoded.span(), allowed.span(), critic ? critic->span() : std::span<float>(),
         numbers.span(), choices.span(), logs.span(), scaled.span()},
        steps);
  }
  arrays.write_back();
  return {times.policy, times.games, times.features};
}

template <class Scenario>
void bind_rollout(nb::class_<BoundBatch<Scenario>>& batch) {
  using namespace nanobind::literals;
  batch
      .def("play_rollout", &play_steps<Scenario>, nb::kw_only(), "actor"_a, "parameters"_a,
           "encoder"_a, "belief"_a.none(), "steps"_a, "uniforms"_a, "features"_a, "masks"_a.none(),
           "critic_features"_a.none(), "chosen"_a, "log_probabilities"_a, "rewards"_a,
           "histories"_a, "returns"_a, "lengths"_a, "reward_weights"_a.none(), "reward_scale"_a,
           nb::sig("def play_rollout(self, *, actor: MlpActor, parameters: "
                   "numpy.typing.NDArray[numpy.float32], encoder: FeatureEncoder, belief: "
                   "BeliefFilter | None, steps: int, uniforms: "
                   "numpy.typing.NDArray[numpy.float32], features: "
                   "numpy.typing.NDArray[numpy.float32], masks: "
                   "numpy.typing.NDArray[numpy.uint8] | None, critic_features: "
                   "numpy.typing.NDArray[numpy.float32] | None, chosen: "
                   "numpy.typing.NDArray[numpy.int64], log_probabilities: "
                   "numpy.typing.NDArray[numpy.float32], rewards: "
                   "numpy.typing.NDArray[numpy.float32], histories: "
                   "numpy.typing.NDArray[numpy.uint8], returns: "
                   "numpy.typing.NDArray[numpy.float64], lengths: "
                   "numpy.typing.NDArray[numpy.int64], reward_weights: "
                   "numpy.typing.NDArray[numpy.float32] | None, reward_scale: float) -> tuple[int, "
                   "int, int]"),
           "Play `steps` steps in every game with an actor, on the actor's threads.\n\n"
           "The arrays are those of a rollout: one row per step and game, with those of one step "
           "more in `features`, `masks` and `critic_features`.\n\n"
           "Returns:\n"
           "    Nanoseconds of the policy, of the games and of the features, summed over the "
           "threads.\n\n"
           "Raises:\n"
           "    ValueError: an episode would end with these steps, or an array does not fit.")
      .def("write_critic_features", &write_critic_features<Scenario>, "features"_a,
           "critic_features"_a, "final"_a = false,
           nb::sig("def write_critic_features(self, features: numpy.typing.NDArray[numpy.float32], "
                   "critic_features: numpy.typing.NDArray[numpy.float32], final: bool = False) -> "
                   "None"),
           "Write the input of a critic, one row per game: the given features, then "
           "TRUE_STATE_FEATURES of the true state.\n\n"
           "Args:\n"
           "    final: Write the last states of the last episodes that ended; autoreset same_step "
           "only.");
}

}  // namespace cagepool
