#pragma once
// PPO's gradient steps on an actor and a critic, both MLPs; the critic's values.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "policy/adam.hpp"
#include "policy/mlp.hpp"
#include "policy/ppo_loss.hpp"
#include "policy/row_parts.hpp"

namespace cagepool {

/// A minibatch: rows of a rollout.
struct Minibatch {
  std::span<const std::int64_t> rows;
  std::span<const std::int64_t> chosen;    // choice of each row
  std::span<const float> actor_features;   // rows of the rollout x inputs of the actor
  std::span<const float> critic_features;  // the same memory if both networks see the same
  RolloutRows rollout;
};

/// Hyper-parameters of a gradient step.
struct StepConfig {
  PpoLossConfig loss;
  double max_grad_norm;  // of each network
  double learning_rate;
  std::int64_t steps;  // of Adam, this one included
};

struct StepResult {
  PpoLossParts loss;
  double actor_norm;  // of the gradient before clipping
};

/// Actor and critic. Their parameters are one array: those of the actor, then those of the critic.
class MlpLearner {
 public:
  MlpLearner(const MlpShape& actor, const MlpShape& critic, int threads);
  ~MlpLearner();
  MlpLearner(const MlpLearner&) = delete;
  MlpLearner& operator=(const MlpLearner&) = delete;

  const MlpShape& actor() const { return actor_; }
  const MlpShape& critic() const { return critic_; }
  std::size_t size() const { return actor_.size() + critic_.size(); }

  /// Write the gradient of the minibatch's mean loss by the parameters, before clipping.
  PpoLossParts write_gradient(std::span<const float> parameters, const Minibatch& minibatch,
                              const PpoLossConfig& config, std::span<float> gradient);

  /// Clip the gradient of each network and take a step of Adam.
  StepResult step(const AdamState& state, const Minibatch& minibatch, const StepConfig& config);

  /// Write the critic's value of each row of features.
  void write_values(std::span<const float> parameters, std::span<const float> features,
                    std::span<float> values);

 private:
  struct Workspace;

  /// Sum of the gradients of all parts, in `part_gradients_[0]`.
  PpoLossParts sum_gradients(std::span<const float> parameters, const Minibatch& minibatch,
                             const PpoLossConfig& config);
  std::size_t parameter_parts() const;
  RowRange parameter_part(std::size_t part) const;

  MlpShape actor_;
  MlpShape critic_;
  TransposedWeights actor_transposed_;
  TransposedWeights critic_transposed_;
  std::vector<AlignedFloats> part_gradients_;
  std::unique_ptr<Workspaces<Workspace>> workspaces_;
  RowThreads threads_;
};

}  // namespace cagepool
