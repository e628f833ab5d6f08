#pragma once
// Activation functions of a network's hidden layers and their derivatives.

#include <cstdint>
#include <span>

namespace cagepool {

enum class Activation : std::uint8_t { kTanh, kRelu };

/// Apply the activation in place. The count must be a multiple of 16. The relative error of tanh is
/// at most 4e-7.
void activate(Activation activation, std::span<float> values);

/// Multiply gradients by the derivative of the activation, given its outputs.
void multiply_by_slope(Activation activation, std::span<const float> outputs,
                       std::span<float> gradients);

}  // namespace cagepool
