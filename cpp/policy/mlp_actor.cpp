#include "policy/mlp_actor.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "policy/sampling.hpp"

namespace cagepool {
namespace {

// Multiplications of a call below which waking another thread takes longer than it saves. A call
// per environment step comes too rarely for threads to wait awake.
constexpr std::size_t kMinSharedWork = 1 << 22;

}  // namespace

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
void MlpActor::run_block(std::span<const float> parameters, std::span<const float> features,
                         const Work& work) {
  std::array<std::int64_t, MlpPass::kMaxRows> rows;
  std::iota(rows.begin(), rows.end(), 0);
  const std::size_t count = features.size() / shape_.inputs();
  workspaces_->use([&] { return std::make_unique<Workspace>(shape_); },
                   [&](Workspace& workspace) {
                     workspace.inputs.assign(features, shape_.inputs(),
                                             std::span(rows).first(count));
                     work(workspace.pass.forward(parameters, workspace.inputs));
                   });
}

template <class Work>
void MlpActor::run_blocks(std::span<const float> parameters, std::span<const float> features,
                          const Work& work) {
  const RowThreads::CallGuard guard(threads_);
  const std::size_t inputs = shape_.inputs();
  const std::size_t rows = features.size() / inputs;
  const std::size_t blocks = (rows + MlpPass::kMaxRows - 1) / MlpPass::kMaxRows;
  const auto run = [&](std::size_t number) {
    const RowRange block = part_of_rows(rows, number, blocks);
    run_block(parameters, features.subspan(block.first * inputs, block.size() * inputs),
              [&](MatrixRows<const float> logits) { work(block, logits); });
  };
  if (rows * shape_.size() >= kMinSharedWork) return threads_.run(blocks, run);
  for (std::size_t number = 0; number < blocks; ++number) run(number);
}

void MlpActor::run_parts(std::size_t parts, const std::function<void(std::size_t)>& work) {
  const RowThreads::CallGuard guard(threads_);
  threads_.run(parts, work);
}

void MlpActor::sample_part(std::span<const float> parameters, std::span<const float> features,
                           std::span<const std::uint8_t> masks, std::span<const float> uniforms,
                           const Samples& samples, std::size_t first_row) {
  run_block(parameters, features, [&](MatrixRows<const float> logits) {
    sample_choices({.logits = {logits.data, uniforms.size() * logits.stride},
                    .masks = masks,
                    .choices = shape_.outputs(),
                    .stride = logits.stride,
                    .first_row = first_row},
                   uniforms, samples.chosen, samples.log_probabilities);
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
