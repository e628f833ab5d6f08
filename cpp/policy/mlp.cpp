#include "policy/mlp.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace cagepool {

MlpShape::MlpShape(const std::vector<int>& widths, Activation activation)
    : activation_(activation) {
  if (widths.size() < 2) throw std::invalid_argument("a network must have inputs and outputs");
  for (const int width : widths) {
    if (width < 1)
      throw std::invalid_argument("the widths of a network must be at least 1, got " +
                                  std::to_string(width));
  }
  std::size_t offset = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) {
    layers_.push_back(
        {offset, static_cast<std::size_t>(widths[i - 1]), static_cast<std::size_t>(widths[i])});
    offset = layers_.back().end();
  }
}

TransposedWeights::TransposedWeights(const MlpShape& shape) : shape_(shape) {
  layers_.emplace_back();
  for (const DenseLayer& layer : shape.layers().subspan(1))
    layers_.emplace_back(layer.outputs * padded(layer.inputs));
}

void TransposedWeights::assign(std::span<const float> parameters) {
  for (std::size_t number = 1; number < layers_.size(); ++number) {
    const DenseLayer& layer = shape_.layers()[number];
    float* out = layers_[number].data();
    for (std::size_t output = 0; output < layer.outputs; ++output) {
      const float* from = &parameters[layer.offset + output];
      for (std::size_t input = 0; input < layer.inputs; ++input)
        out[output * padded(layer.inputs) + input] = from[input * layer.stride()];
    }
  }
}

MatrixRows<const float> TransposedWeights::layer(std::size_t number) const {
  return {layers_[number].data(), padded(shape_.layers()[number].inputs)};
}

MlpPass::MlpPass(const MlpShape& shape) : shape_(shape) {
  std::size_t widest = 0;
  for (const DenseLayer& layer : shape.layers()) {
    outputs_.emplace_back(kMaxRows * layer.stride());
    output_gradients_.emplace_back(kMaxRows * layer.stride());
    widest = std::max(widest, layer.stride());
  }
  zeros_ = AlignedFloats(widest);
}

MatrixRows<const float> MlpPass::forward(std::span<const float> parameters,
                                         const SparseRows& inputs) {
  rows_ = inputs.rows();
  MatrixRows<float> out{};
  for (std::size_t number = 0; number < outputs_.size(); ++number) {
    const DenseLayer& layer = shape_.layers()[number];
    const MatrixRows<const float> weights{&parameters[layer.offset], layer.stride()};
    const MatrixRows<const float> biases{&parameters[layer.bias_offset()], 0};
    const MatrixRows<float> last = out;
    out = {outputs_[number].data(), layer.stride()};
    if (number == 0) {
      multiply(SparseProduct{inputs, layer.stride(), weights, biases, out});
    } else {
      multiply(DenseProduct{.rows = rows_,
                            .columns = layer.stride(),
                            .depth = layer.inputs,
                            .left = last.data,
                            .left_row_stride = last.stride,
                            .left_depth_stride = 1,
                            .right = weights,
                            .start = biases,
                            .out = out});
    }
    if (number + 1 < outputs_.size()) activate(shape_.activation(), {out.data, rows_ * out.stride});
  }
  return {out.data, out.stride};
}

MatrixRows<float> MlpPass::output_gradient() {
  return {output_gradients_.back().data(), shape_.layers().back().stride()};
}

void MlpPass::backward(const TransposedWeights& weights, const SparseRows& transposed_inputs,
                       std::span<float> gradient) {
  constexpr float kOne = 1;
  for (std::size_t number = outputs_.size(); number-- > 0;) {
    const DenseLayer& layer = shape_.layers()[number];
    const std::size_t stride = layer.stride();
    const MatrixRows<const float> slopes{output_gradients_[number].data(), stride};
    float* biases = &gradient[layer.bias_offset()];
    multiply(DenseProduct{.rows = 1,
                          .columns = stride,
                          .depth = rows_,
                          .left = &kOne,
                          .left_row_stride = 0,
                          .left_depth_stride = 0,
                          .right = slopes,
                          .start = {biases, 0},
                          .out = {biases, 0}});
    float* out = &gradient[layer.offset];
    if (number == 0) {
      multiply(SparseProduct{transposed_inputs, stride, slopes, {out, stride}, {out, stride}});
      return;
    }
    const float* inputs = outputs_[number - 1].data();
    const std::size_t input_stride = padded(layer.inputs);
    multiply(DenseProduct{.rows = layer.inputs,
                          .columns = stride,
                          .depth = rows_,
                          .left = inputs,
                          .left_row_stride = 1,
                          .left_depth_stride = input_stride,
                          .right = slopes,
                          .start = {out, stride},
                          .out = {out, stride}});
    const MatrixRows<float> input_slopes{output_gradients_[number - 1].data(), input_stride};
    multiply(DenseProduct{.rows = rows_,
                          .columns = input_stride,
                          .depth = layer.outputs,
                          .left = slopes.data,
                          .left_row_stride = stride,
                          .left_depth_stride = 1,
                          .right = weights.layer(number),
                          .start = {zeros_.data(), 0},
                          .out = input_slopes});
    const std::size_t count = rows_ * input_stride;
    multiply_by_slope(shape_.activation(), {inputs, count}, {input_slopes.data, count});
  }
}

}  // namespace cagepool
