// Tests of features, sampling, the PPO loss and MLPs, without Python, so that all sanitizers can
// run them. All memory is exactly as large as it must be, so that an access beyond it is noticed.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "core/random.hpp"
#include "policy/activation.hpp"
#include "policy/mlp_actor.hpp"
#include "policy/mlp_learner.hpp"
#include "policy/ppo_loss.hpp"
#include "policy/sampling.hpp"
#include "tests/cage2_encoder.hpp"
#include "tests/checks.hpp"

namespace cagepool {
namespace {

constexpr std::size_t kRows = 7;

/// Pseudo-random number in [0, 1) at an index of a stream.
float number(std::uint64_t stream, std::size_t index) {
  const auto bits =
      static_cast<std::uint32_t>(random_word(stream, static_cast<std::uint32_t>(index), 1));
  return static_cast<float>(bits >> 8) * 0x1p-24F;
}

std::vector<float> numbers(std::uint64_t stream, std::size_t count, float low, float high) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = low + (high - low) * number(stream, i);
  return all;
}

/// Rows of logits with masks that allow the first choice and about half of the others.
struct Table {
  std::size_t count;
  std::vector<float> logits;
  std::vector<std::uint8_t> masks;

  explicit Table(std::size_t choices)
      : count(choices), logits(numbers(choices, kRows * choices, -4, 4)), masks(logits.size()) {
    for (std::size_t i = 0; i < masks.size(); ++i)
      masks[i] = i % count == 0 || number(99, i) < 0.5F ? 1 : 0;
  }
  MaskedLogits masked() const { return {logits, masks, count, count}; }
};

void test_only_allowed_choices_are_sampled() {
  for (std::size_t count = 1; count < 20; ++count) {
    const Table table(count);
    std::vector<float> uniforms = numbers(5, kRows, 0, 1);
    uniforms[0] = 0;
    uniforms[1] = 1 - 0x1p-24F;
    std::vector<std::int64_t> chosen(kRows, -1);
    std::vector<float> log_probabilities(kRows, 1);
    sample_choices(table.masked(), uniforms, chosen, log_probabilities);
    for (std::size_t row = 0; row < kRows; ++row) {
      const auto choice = static_cast<std::size_t>(chosen[row]);
      check(choice < count && table.masks[row * count + choice] == 1);
      check(log_probabilities[row] <= 0 && std::isfinite(log_probabilities[row]));
    }
  }
}

struct Rollout {
  std::vector<std::int64_t> chosen = std::vector<std::int64_t>(kRows, 0);
  std::vector<float> log_probabilities = numbers(11, kRows, -3, -0.5F);
  std::vector<float> advantages = numbers(12, kRows, -1, 1);
  std::vector<float> old_values = numbers(13, kRows, -1, 1);
  std::vector<float> returns = numbers(14, kRows, -1, 1);
  std::vector<float> values = numbers(15, kRows, -1, 1);

  std::vector<std::int64_t> rows = {6, 5, 4, 3, 2, 1, 0};  // not in the order of the rollout

  RolloutRows rollout(const Table& table) const {
    return {table.masks, log_probabilities, advantages, old_values, returns};
  }
  MinibatchSlice slice(const Table& table) const {
    return {rows, chosen, table.count, table.count, table.logits, values, kRows};
  }
};

constexpr PpoLossConfig kConfig{.clip_range = 0.2F, .clip_range_vf = 0.3F, .ent_coef = 0.1F};

double total_loss(const Table& table, const Rollout& rows) {
  std::vector<float> logits(table.logits.size());
  std::vector<float> values(kRows);
  const PpoLossParts parts =
      ppo_loss_gradient(rows.slice(table), rows.rollout(table), kConfig, logits, values);
  return parts.policy - static_cast<double>(kConfig.ent_coef) * parts.entropy + parts.value;
}

void test_the_gradient_is_the_slope_of_the_loss() {
  for (const std::size_t count : {1U, 2U, 8U, 13U}) {
    Table table(count);
    Rollout rows;
    std::vector<float> logits(table.logits.size(), 9);
    std::vector<float> values(kRows, 9);
    ppo_loss_gradient(rows.slice(table), rows.rollout(table), kConfig, logits, values);
    const auto slope = [&](float& place) {
      const float before = place;
      constexpr float kMove = 1e-2F;
      place = before + kMove;
      const double above = total_loss(table, rows);
      place = before - kMove;
      const double below = total_loss(table, rows);
      place = before;
      return (above - below) / (2 * static_cast<double>(kMove));
    };
    // Single precision, a step that is not small, and corners where a clip begins.
    for (std::size_t i = 0; i < logits.size(); ++i)
      check(std::abs(slope(table.logits[i]) - static_cast<double>(logits[i])) < 2e-3);
    for (std::size_t i = 0; i < kRows; ++i)
      check(std::abs(slope(rows.values[i]) - static_cast<double>(values[i])) < 2e-3);
  }
}

void check_features_and_masks(const FeatureEncoder& encoder) {
  std::vector<History> histories(kRows);
  std::vector<float> observations(kRows * kObservationSize);
  std::vector<float> rows(kRows * encoder.size(), -1);
  std::vector<std::uint8_t> masks(kRows * encoder.choices(), 9);
  for (std::size_t step = 0; step < 40; ++step) {
    std::vector<std::int64_t> actions(kRows);
    for (std::size_t game = 0; game < kRows; ++game)
      actions[game] = static_cast<std::int64_t>(number(game, step) * kActionCount);
    for (std::size_t i = 0; i < observations.size(); ++i)
      observations[i] = number(7 + step, i) < 0.2F ? 1.0F : 0.0F;
    encoder.update(actions, observations, histories);
    encoder.encode(observations, histories, rows, masks);
    check(std::ranges::all_of(rows, [](float x) { return x >= 0 && x <= 1; }));
    check(std::ranges::all_of(masks, [](std::uint8_t x) { return x <= 1; }));
  }
}

void test_features_and_masks_fill_their_rows() {
  for (const EncoderForm form : {EncoderForm::kFlat, EncoderForm::kBlocks})
    check_features_and_masks(FeatureEncoder(cage2_tables(), kAllGroups, form, 10));
}

void test_encoders_that_cannot_be_are_refused() {
  check_throws<std::invalid_argument>(
      [] { const FeatureEncoder encoder(cage2_tables(), {}, EncoderForm::kFlat, 0); },
      "horizon must be at least 1");
  EncoderTables tables = cage2_tables();
  tables.choices.clear();
  check_throws<std::invalid_argument>(
      [&] { const FeatureEncoder encoder(tables, {}, EncoderForm::kFlat, 1); }, "at least one");
}

/// Transitions for networks with these inputs; about two thirds of the features are zero.
struct NetworkRollout {
  static constexpr std::size_t kTransitions = 300;
  static constexpr std::size_t kChoices = 5;

  std::vector<std::int64_t> rows = std::vector<std::int64_t>(kTransitions);
  std::vector<std::int64_t> chosen = std::vector<std::int64_t>(kTransitions);
  std::vector<float> actor_features;
  std::vector<float> critic_features;
  std::vector<float> log_probabilities = numbers(21, kTransitions, -2, -1);
  std::vector<float> advantages = numbers(22, kTransitions, -1, 1);
  std::vector<float> old_values = numbers(23, kTransitions, -1, 1);
  std::vector<float> returns = numbers(24, kTransitions, -1, 1);

  NetworkRollout(std::size_t actor_inputs, std::size_t critic_inputs)
      : actor_features(numbers(25, kTransitions * actor_inputs, -2, 1)),
        critic_features(numbers(26, kTransitions * critic_inputs, -2, 1)) {
    for (std::vector<float>* features : {&actor_features, &critic_features})
      std::ranges::replace_if(*features, [](float x) { return x < 0; }, 0.0F);
    for (std::size_t i = 0; i < kTransitions; ++i) {
      rows[i] = static_cast<std::int64_t>(kTransitions - 1 - i);
      chosen[i] = static_cast<std::int64_t>(i % kChoices);
    }
  }
  Minibatch minibatch() const {
    return {rows,
            chosen,
            actor_features,
            critic_features,
            {{}, log_probabilities, advantages, old_values, returns}};
  }
};

/// Parameters whose padding is zero.
std::vector<float> network_parameters(const MlpLearner& learner) {
  std::vector<float> parameters(learner.size());
  std::uint64_t stream = 30;
  const auto fill = [&](const MlpShape& shape, std::size_t offset) {
    for (const DenseLayer& layer : shape.layers()) {
      for (std::size_t row = 0; row <= layer.inputs; ++row) {  // the last one has the biases
        const std::vector<float> weights = numbers(++stream, layer.outputs, -0.5F, 0.5F);
        std::ranges::copy(weights, &parameters[offset + layer.offset + row * layer.stride()]);
      }
    }
  };
  fill(learner.actor(), 0);
  fill(learner.critic(), learner.actor().size());
  return parameters;
}

double network_loss(MlpLearner& learner, const std::vector<float>& parameters,
                    const NetworkRollout& rollout) {
  std::vector<float> gradient(learner.size());
  const PpoLossParts parts =
      learner.write_gradient(parameters, rollout.minibatch(), kConfig, gradient);
  return parts.policy - static_cast<double>(kConfig.ent_coef) * parts.entropy + parts.value;
}

void test_the_gradient_by_parameters_is_the_slope_of_the_loss() {
  for (const Activation activation : {Activation::kTanh, Activation::kRelu}) {
    MlpLearner learner({{7, 6, 17, 5}, activation}, {{3, 6, 1}, activation}, 1);
    const NetworkRollout rollout(7, 3);
    std::vector<float> parameters = network_parameters(learner);
    std::vector<float> gradient(learner.size(), 9);
    learner.write_gradient(parameters, rollout.minibatch(), kConfig, gradient);
    for (std::size_t i = 0; i < parameters.size(); i += 3) {
      const float before = parameters[i];
      if (before == 0.0F) {
        check(gradient[i] == 0.0F);  // padding
        continue;
      }
      constexpr float kMove = 1e-2F;
      parameters[i] = before + kMove;
      const double above = network_loss(learner, parameters, rollout);
      parameters[i] = before - kMove;
      const double below = network_loss(learner, parameters, rollout);
      parameters[i] = before;
      const double slope = (above - below) / (2 * static_cast<double>(kMove));
      // Single precision, a step that is not small, and corners of clips and of ReLU.
      check(std::abs(slope - static_cast<double>(gradient[i])) < 3e-3);
    }
  }
}

void test_steps_and_values_do_not_depend_on_threads() {
  const NetworkRollout rollout(7, 3);
  const auto results = [&](int threads) {
    MlpLearner learner({{7, 6, 17, 5}, Activation::kTanh}, {{3, 6, 1}, Activation::kTanh}, threads);
    std::vector<float> parameters = network_parameters(learner);
    std::vector<float> mean(learner.size());
    std::vector<float> square(learner.size());
    for (int steps = 1; steps < 4; ++steps)
      learner.step({parameters, mean, square}, rollout.minibatch(), {kConfig, 0.5, 1e-2, steps});
    std::vector<float> values(NetworkRollout::kTransitions);
    learner.write_values(parameters, rollout.critic_features, values);
    parameters.insert(parameters.end(), values.begin(), values.end());
    return parameters;
  };
  const std::vector<float> alone = results(1);
  check(results(2) == alone);
  check(results(5) == alone);
  check(std::ranges::all_of(alone, [](float x) { return std::isfinite(x); }));
}

void test_an_actor_samples_the_same_with_any_number_of_threads() {
  const NetworkRollout rollout(7, 3);
  const std::vector<float> uniforms = numbers(41, NetworkRollout::kTransitions, 0, 1);
  const MlpLearner learner({{7, 6, 17, 5}, Activation::kTanh}, {{3, 1}, Activation::kTanh}, 1);
  const std::vector<float> parameters = network_parameters(learner);
  const auto sample = [&](int threads) {
    MlpActor actor(learner.actor(), threads);
    std::vector<std::int64_t> chosen(uniforms.size(), -1);
    std::vector<float> log_probabilities(uniforms.size(), 1);
    actor.sample(std::span(parameters).first(learner.actor().size()), rollout.actor_features, {},
                 uniforms, {chosen, log_probabilities});
    check(std::ranges::all_of(chosen, [](std::int64_t x) { return x >= 0 && x < 5; }));
    check(std::ranges::all_of(log_probabilities, [](float x) { return x <= 0; }));
    return chosen;
  };
  check(sample(1) == sample(3));
}

void test_tanh_is_accurate() {
  std::vector<float> values(160'000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 1e-6F * std::pow(1.0001F, static_cast<float>(i));
  std::vector<float> outputs = values;
  activate(Activation::kTanh, outputs);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double exact = std::tanh(static_cast<double>(values[i]));
    check(std::abs(static_cast<double>(outputs[i]) - exact) <= 4e-7 * exact && outputs[i] <= 1);
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> special = {-1, -kInfinity, kInfinity, 0, std::nanf("")};
  special.resize(16);
  activate(Activation::kTanh, special);
  check(std::abs(special[0] + std::tanh(1.0F)) < 4e-7F);
  check(special[1] == -1 && special[2] == 1 && special[3] == 0 && std::isnan(special[4]));
}

void test_impossible_networks_are_refused() {
  check_throws<std::invalid_argument>([] { const MlpShape shape({3}, Activation::kTanh); },
                                      "inputs and outputs");
  check_throws<std::invalid_argument>([] { const MlpShape shape({3, 0, 2}, Activation::kTanh); },
                                      "at least 1, got 0");
  check_throws<std::invalid_argument>([] { const MlpActor actor({{3, 2}, Activation::kTanh}, 0); },
                                      "threads must be at least 1");
}

}  // namespace
}  // namespace cagepool

int main() {
  using namespace cagepool;
  return run_tests(
      {test_only_allowed_choices_are_sampled, test_the_gradient_is_the_slope_of_the_loss,
       test_features_and_masks_fill_their_rows, test_encoders_that_cannot_be_are_refused,
       test_the_gradient_by_parameters_is_the_slope_of_the_loss,
       test_steps_and_values_do_not_depend_on_threads,
       test_an_actor_samples_the_same_with_any_number_of_threads, test_tanh_is_accurate,
       test_impossible_networks_are_refused});
}
