#include "policy/mlp_actor.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "policy/sampling.hpp"

namespace cagepool {

struct MlpActor::Workspace {
  explicit Workspace(const MlpShape& shape) : pass(shape) {}

  MlpPass pass;
  SparseRows inputs;
};

MlpActor::MlpActor(MlpShape shape, int threads)
    : shape_(std::move(shape)),
      workspaces_(std::make_unique<Workspaces<Workspace>>()),
      threads_(threads) {}

MlpActor::~MlpActor() = default;

template <class Work>
void MlpActor::run_blocks(std::span<const float> parameters, std::span<const float> features,
                          const Work& work) {
  const RowThreads::CallGuard guard(threads_);
  const std::size_t rows = features.size() / shape_.inputs();
  const std::size_t blocks = (rows + MlpPass::kMaxRows - 1) / MlpPass::kMaxRows;
  threads_.run(blocks, [&](std::size_t number) {
    const RowRange block = part_of_rows(rows, number, blocks);
    workspaces_->use([&] { return std::make_unique<Workspace>(shape_); },
                     [&](Workspace& workspace) {
                       std::array<std::int64_t, MlpPass::kMaxRows> ids;
                       std::iota(ids.begin(), ids.end(), static_cast<std::int64_t>(block.first));
                       workspace.inputs.assign(features, shape_.inputs(),
                                               std::span(ids).first(block.size()));
                       work(block, workspace.pass.forward(parameters, workspace.inputs));
                     });
  });
}

void MlpActor::sample(std::span<const float> parameters, std::span<const float> features,
                      std::span<const std::uint8_t> masks, std::span<const float> uniforms,
                      const Samples& samples) {
  const std::size_t choices = shape_.outputs();
  run_blocks(parameters, features, [&](RowRange block, MatrixRows<const float> logits) {
    const auto part = [block](auto rows) { return rows.subspan(block.first, block.size()); };
    sample_choices(
        {.logits = {logits.data, block.size() * logits.stride},
         .masks =
             masks.empty() ? masks : masks.subspan(block.first * choices, block.size() * choices),
         .choices = choices,
         .stride = logits.stride,
         .first_row = block.first},
        part(uniforms), part(samples.chosen), part(samples.log_probabilities));
  });
}

void MlpActor::write_logits(std::span<const float> parameters, std::span<const float> features,
                            std::span<float> out) {
  const std::size_t choices = shape_.outputs();
  run_blocks(parameters, features, [&](RowRange block, MatrixRows<const float> logits) {
    for (std::size_t i = 0; i < block.size(); ++i)
      std::copy_n(logits.data + i * logits.stride, choices,
                  out.begin() + static_cast<std::ptrdiff_t>((block.first + i) * choices));
  });
}

}  // namespace cagepool
