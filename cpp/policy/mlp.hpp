#pragma once
// Multilayer perceptrons (MLPs): parameters, forward pass and backward pass.

#include <cstddef>
#include <span>
#include <vector>

#include "policy/activation.hpp"
#include "policy/aligned_floats.hpp"
#include "policy/matrix_product.hpp"

namespace cagepool {

/// Place of a fully connected layer among the parameters of its network: weights, (inputs, stride),
/// then biases, (stride). The columns from `outputs` on are zero and stay zero.
struct DenseLayer {
  std::size_t offset;
  std::size_t inputs;
  std::size_t outputs;

  std::size_t stride() const { return padded(outputs); }
  std::size_t bias_offset() const { return offset + inputs * stride(); }
  std::size_t end() const { return bias_offset() + stride(); }
};

/// Layers and activation of an MLP; the last layer has no activation.
class MlpShape {
 public:
  /// @param widths Inputs, hidden layers, outputs.
  MlpShape(const std::vector<int>& widths, Activation activation);

  std::span<const DenseLayer> layers() const { return layers_; }
  Activation activation() const { return activation_; }
  std::size_t inputs() const { return layers_.front().inputs; }
  std::size_t outputs() const { return layers_.back().outputs; }
  /// Number of parameters, with padding.
  std::size_t size() const { return layers_.back().end(); }

 private:
  std::vector<DenseLayer> layers_;
  Activation activation_;
};

/// Weights of all layers but the first, (outputs, padded inputs), as the backward pass needs them.
class TransposedWeights {
 public:
  explicit TransposedWeights(const MlpShape& shape);
  void assign(std::span<const float> parameters);
  MatrixRows<const float> layer(std::size_t number) const;

 private:
  MlpShape shape_;
  std::vector<AlignedFloats> layers_;  // the first is empty
};

/// Passes of at most `kMaxRows` rows, with the buffers for them.
class MlpPass {
 public:
  static constexpr std::size_t kMaxRows = 64;

  explicit MlpPass(const MlpShape& shape);

  /// Compute one row of outputs per row of inputs; they stay until the next call.
  MatrixRows<const float> forward(std::span<const float> parameters, const SparseRows& inputs);

  /// Gradient of the loss by the outputs, to fill before `backward`. The padding is zero.
  MatrixRows<float> output_gradient();

  /// Add to `gradient` the gradient of the loss by the parameters, given the transposed inputs of
  /// the last forward pass.
  void backward(const TransposedWeights& weights, const SparseRows& transposed_inputs,
                std::span<float> gradient);

 private:
  MlpShape shape_;
  std::size_t rows_ = 0;                         // of the last forward pass
  std::vector<AlignedFloats> outputs_;           // by layer
  std::vector<AlignedFloats> output_gradients_;  // by layer
  AlignedFloats zeros_;                          // as many as the widest layer has columns
};

}  // namespace cagepool
