#pragma once
// Actor of a rollout: forward pass of an MLP and sampling in one call.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "policy/mlp.hpp"
#include "policy/row_parts.hpp"

namespace cagepool {

class MlpActor {
 public:
  MlpActor(MlpShape shape, int threads);
  ~MlpActor();
  MlpActor(const MlpActor&) = delete;
  MlpActor& operator=(const MlpActor&) = delete;

  const MlpShape& shape() const { return shape_; }

  /// Places of the sampled choices, one row each.
  struct Samples {
    std::span<std::int64_t> chosen;
    std::span<float> log_probabilities;
  };

  /// Sample one choice per row of features, by one uniform number in [0, 1) per row. `masks` may be
  /// empty: every choice is allowed. Throws std::invalid_argument as `sample_choices`.
  void sample(std::span<const float> parameters, std::span<const float> features,
              std::span<const std::uint8_t> masks, std::span<const float> uniforms,
              const Samples& samples);

  /// Call `work(part)` once for every part, on the actor's threads; it may call `sample_part`.
  void run_parts(std::size_t parts, const std::function<void(std::size_t)>& work);
  /// As `sample`, for a part of at most `MlpPass::kMaxRows` rows, in the thread that calls.
  ///
  /// @param first_row Number of the first row, for messages.
  void sample_part(std::span<const float> parameters, std::span<const float> features,
                   std::span<const std::uint8_t> masks, std::span<const float> uniforms,
                   const Samples& samples, std::size_t first_row);

  /// Write the outputs, (rows, outputs).
  void write_logits(std::span<const float> parameters, std::span<const float> features,
                    std::span<float> logits);

 private:
  struct Workspace;

  /// Call `work(block, logits)` for blocks of rows.
  template <class Work>
  void run_blocks(std::span<const float> parameters, std::span<const float> features,
                  const Work& work);
  /// Call `work(logits)` for the rows of a block.
  template <class Work>
  void run_block(std::span<const float> parameters, std::span<const float> features,
                 const Work& work);

  MlpShape shape_;
  std::unique_ptr<Workspaces<Workspace>> workspaces_;
  RowThreads threads_;
};

}  // namespace cagepool
