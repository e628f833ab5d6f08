#pragma once
// Sum of partial gradients, their norm, and the Adam optimizer.

#include <cstddef>
#include <cstdint>
#include <span>

namespace cagepool {

/// Parameters with Adam's moving averages of their gradient and its square.
struct AdamState {
  std::span<float> parameters;
  std::span<float> exp_avg;
  std::span<float> exp_avg_sq;

  AdamState subspan(std::size_t first, std::size_t count) const {
    return {parameters.subspan(first, count), exp_avg.subspan(first, count),
            exp_avg_sq.subspan(first, count)};
  }
};

/// One step of Adam with betas 0.9 and 0.999 and epsilon 1e-8, as in PyTorch.
struct AdamStep {
  float step_size;        // learning rate / (1 - beta1^steps)
  float root_correction;  // sqrt(1 - beta2^steps)

  AdamStep(double learning_rate, std::int64_t steps);
};

/// Take a step down the gradient times `scale`. Counts must be multiples of 16, as below.
void take_adam_step(const AdamStep& step, std::span<const float> gradient, float scale,
                    const AdamState& state);

/// Add the floats of `part` to `total`.
void add_to(std::span<float> total, std::span<const float> part);

double sum_of_squares(std::span<const float> values);

}  // namespace cagepool
