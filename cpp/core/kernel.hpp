#pragma once
// The loop that steps the games of a batch, compiled once per observation type, kind of compliance
// and x86-64 level.

#include "core/episode.hpp"

namespace cagepool {

/// Arguments of one call of `Batch::step`.
struct StepArgs {
  BatchView batch;
  const std::int64_t* ids;
  const std::uint8_t* actions;
  const std::uint8_t* red_actions;  // null if no game needs them
  const Order* orders;              // read only if compliance is tracked
};

/// Steps entries `begin` to `end` of the arguments; returns how many episodes ended.
using Kernel = std::size_t (*)(const StepArgs& args, std::size_t begin, std::size_t end);

/// The fastest kernel for a batch on this processor.
Kernel kernel_for(const BatchView& batch);

/// Widest x86-64 level that both this processor and the compiled code have: "x86-64-v4" (networks;
/// games use v3), "x86-64-v3", or "baseline" for any processor.
const char* simd_level();

}  // namespace cagepool
