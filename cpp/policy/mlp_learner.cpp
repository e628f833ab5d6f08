#include "policy/mlp_learner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace cagepool {
namespace {

// A part is long enough to be worth waking a thread, and short enough that threads of unequal speed
// end together. Each part has its own gradient, so there are not too many.
constexpr std::size_t kPartRows = 256;
constexpr std::size_t kMaxParts = 16;
constexpr std::size_t kParametersPerPart = 4096;
constexpr std::size_t kCacheLine = 64;  // bytes

std::size_t part_count(std::size_t rows, std::size_t rows_per_part) {
  return (rows + rows_per_part - 1) / rows_per_part;
}

void add_parts(PpoLossParts& sums, const PpoLossParts& parts) {
  sums.policy += parts.policy;
  sums.value += parts.value;
  sums.entropy += parts.entropy;
  sums.kl += parts.kl;
  sums.clipped += parts.clipped;
}

/// Call `work` with the blocks of a range of rows, each as long as a pass allows.
template <class Work>
void for_each_block(RowRange range, const Work& work) {
  for (std::size_t first = range.first; first < range.end; first += MlpPass::kMaxRows)
    work(RowRange{first, std::min(range.end, first + MlpPass::kMaxRows)});
}

}  // namespace

/// Buffers of one thread, and the passes of a block of rows.
struct MlpLearner::Workspace {
  explicit Workspace(const MlpLearner& of) : learner(of), actor(of.actor_), critic(of.critic_) {}

  PpoLossParts add_gradient(std::span<const float> parameters, const Minibatch& minibatch,
                            RowRange block, const PpoLossConfig& config,
                            std::span<float> gradient) {
    const std::span rows = minibatch.rows.subspan(block.first, block.size());
    const bool is_shared = minibatch.actor_features.data() == minibatch.critic_features.data();
    actor_inputs.assign(minibatch.actor_features, learner.actor_.inputs(), rows);
    if (!is_shared) critic_inputs.assign(minibatch.critic_features, learner.critic_.inputs(), rows);
    prefetch(minibatch.rollout, rows);
    const std::size_t actor_size = learner.actor_.size();
    const auto logits = actor.forward(parameters.first(actor_size), actor_inputs);
    const auto values =
        critic.forward(parameters.subspan(actor_size), is_shared ? actor_inputs : critic_inputs);
    const PpoLossParts parts = write_output_gradients(logits, values, minibatch, block, config);
    transposed_inputs.assign_transposed(actor_inputs);
    actor.backward(learner.actor_transposed_, transposed_inputs, gradient.first(actor_size));
    if (!is_shared) transposed_inputs.assign_transposed(critic_inputs);
    critic.backward(learner.critic_transposed_, transposed_inputs, gradient.subspan(actor_size));
    return parts;
  }

  /// Write the values of a block of consecutive rows.
  void write_values(std::span<const float> parameters, std::span<const float> features,
                    RowRange block, std::span<float> out) {
    std::array<std::int64_t, MlpPass::kMaxRows> rows;
    std::iota(rows.begin(), rows.end(), static_cast<std::int64_t>(block.first));
    critic_inputs.assign(features, learner.critic_.inputs(), std::span(rows).first(block.size()));
    const auto values = critic.forward(parameters.subspan(learner.actor_.size()), critic_inputs);
    for (std::size_t i = 0; i < block.size(); ++i)
      out[block.first + i] = values.data[i * values.stride];
  }

  const MlpLearner& learner;
  MlpPass actor;
  MlpPass critic;
  SparseRows actor_inputs;
  SparseRows critic_inputs;  // empty if both networks see the same
  SparseRows transposed_inputs;

 private:
  /// Fetch what the loss needs of some rows, which are in random order, during the forward passes.
  /// Inlined, because the compiler drops calls of functions that only prefetch.
  [[gnu::always_inline]] void prefetch(const RolloutRows& rollout,
                                       std::span<const std::int64_t> rows) const {
    const std::size_t choices = learner.actor_.outputs();
    for (const std::int64_t number : rows) {
      const auto row = static_cast<std::size_t>(number);
      for (const std::span values :
           {rollout.log_probabilities, rollout.advantages, rollout.values, rollout.returns})
        __builtin_prefetch(&values[row]);
      if (rollout.masks.empty()) continue;
      for (std::size_t choice = 0; choice < choices; choice += kCacheLine)
        __builtin_prefetch(&rollout.masks[row * choices + choice]);
    }
  }

  PpoLossParts write_output_gradients(MatrixRows<const float> logits,
                                      MatrixRows<const float> values, const Minibatch& minibatch,
                                      RowRange block, const PpoLossConfig& config) {
    const std::size_t rows = block.size();
    std::array<float, MlpPass::kMaxRows> outputs;
    std::array<float, MlpPass::kMaxRows> slopes;
    for (std::size_t i = 0; i < rows; ++i) outputs[i] = values.data[i * values.stride];
    const MinibatchSlice slice{.rows = minibatch.rows.subspan(block.first, rows),
                               .chosen = minibatch.chosen.subspan(block.first, rows),
                               .choices = learner.actor_.outputs(),
                               .stride = logits.stride,
                               .logits = {logits.data, rows * logits.stride},
                               .values = std::span(outputs).first(rows),
                               .minibatch_size = minibatch.rows.size()};
    const PpoLossParts parts = ppo_loss_gradient(
        slice, minibatch.rollout, config, {actor.output_gradient().data, rows * logits.stride},
        std::span(slopes).first(rows));
    const MatrixRows<float> gradient = critic.output_gradient();
    for (std::size_t i = 0; i < rows; ++i) gradient.data[i * gradient.stride] = slopes[i];
    return parts;
  }
};

MlpLearner::MlpLearner(const MlpShape& actor, const MlpShape& critic, int threads)
    : actor_(actor),
      critic_(critic),
      actor_transposed_(actor),
      critic_transposed_(critic),
      workspaces_(std::make_unique<Workspaces<Workspace>>()),
      threads_(threads) {}

MlpLearner::~MlpLearner() = default;

PpoLossParts MlpLearner::sum_gradients(std::span<const float> parameters,
                                       const Minibatch& minibatch, const PpoLossConfig& config) {
  const std::size_t rows = minibatch.rows.size();
  const std::size_t parts = std::clamp<std::size_t>(part_count(rows, kPartRows), 1, kMaxParts);
  while (part_gradients_.size() < parts) part_gradients_.emplace_back(size());
  actor_transposed_.assign(parameters);
  critic_transposed_.assign(parameters.subspan(actor_.size()));
  std::array<PpoLossParts, kMaxParts> losses{};
  threads_.run(parts, [&](std::size_t part) {
    const std::span<float> gradient = part_gradients_[part].span();
    std::ranges::fill(gradient, 0.0F);
    workspaces_->use([&] { return std::make_unique<Workspace>(*this); },
                     [&](Workspace& workspace) {
                       for_each_block(part_of_rows(rows, part, parts), [&](RowRange block) {
                         add_parts(losses[part], workspace.add_gradient(parameters, minibatch,
                                                                        block, config, gradient));
                       });
                     });
  });
  threads_.run(parameter_parts(), [&](std::size_t number) {
    const RowRange range = parameter_part(number);
    const std::span total = part_gradients_[0].span().subspan(range.first, range.size());
    for (std::size_t part = 1; part < parts; ++part)
      add_to(total, part_gradients_[part].span().subspan(range.first, range.size()));
  });
  PpoLossParts sums;
  for (const PpoLossParts& loss : losses) add_parts(sums, loss);
  return sums;
}

PpoLossParts MlpLearner::write_gradient(std::span<const float> parameters,
                                        const Minibatch& minibatch, const PpoLossConfig& config,
                                        std::span<float> gradient) {
  const RowThreads::CallGuard guard(threads_);
  const PpoLossParts parts = sum_gradients(parameters, minibatch, config);
  std::ranges::copy(part_gradients_[0].span(), gradient.begin());
  return parts;
}

StepResult MlpLearner::step(const AdamState& state, const Minibatch& minibatch,
                            const StepConfig& config) {
  const RowThreads::CallGuard guard(threads_);
  StepResult result{sum_gradients(state.parameters, minibatch, config.loss), 0};
  const std::span<const float> gradient = part_gradients_[0].span();
  // Parts of the parameters lie in one network each: those of the actor come first.
  const std::size_t actor_parts = part_count(actor_.size(), kParametersPerPart);
  std::array<double, 2> squares{};
  for (std::size_t part = 0; part < parameter_parts(); ++part) {
    const RowRange range = parameter_part(part);
    squares[part < actor_parts ? 0 : 1] +=
        sum_of_squares(gradient.subspan(range.first, range.size()));
  }
  result.actor_norm = std::sqrt(squares[0]);
  std::array<float, 2> scales{};
  for (std::size_t network = 0; network < 2; ++network) {
    const double norm = std::sqrt(squares[network]);
    scales[network] =
        norm > config.max_grad_norm ? static_cast<float>(config.max_grad_norm / norm) : 1.0F;
  }
  const AdamStep adam(config.learning_rate, config.steps);
  threads_.run(parameter_parts(), [&](std::size_t part) {
    const RowRange range = parameter_part(part);
    take_adam_step(adam, gradient.subspan(range.first, range.size()),
                   scales[part < actor_parts ? 0 : 1], state.subspan(range.first, range.size()));
  });
  return result;
}

void MlpLearner::write_values(std::span<const float> parameters, std::span<const float> features,
                              std::span<float> values) {
  const RowThreads::CallGuard guard(threads_);
  const std::size_t parts = part_count(values.size(), kPartRows);
  threads_.run(parts, [&](std::size_t part) {
    workspaces_->use([&] { return std::make_unique<Workspace>(*this); },
                     [&](Workspace& workspace) {
                       for_each_block(part_of_rows(values.size(), part, parts),
                                      [&](RowRange block) {
                                        workspace.write_values(parameters, features, block, values);
                                      });
                     });
  });
}

std::size_t MlpLearner::parameter_parts() const {
  return part_count(actor_.size(), kParametersPerPart) +
         part_count(critic_.size(), kParametersPerPart);
}

RowRange MlpLearner::parameter_part(std::size_t part) const {
  const std::size_t actor_parts = part_count(actor_.size(), kParametersPerPart);
  const bool is_actor = part < actor_parts;
  const std::size_t offset = is_actor ? 0 : actor_.size();
  const std::size_t end = is_actor ? actor_.size() : size();
  const std::size_t first = offset + (is_actor ? part : part - actor_parts) * kParametersPerPart;
  return {first, std::min(end, first + kParametersPerPart)};
}

}  // namespace cagepool
