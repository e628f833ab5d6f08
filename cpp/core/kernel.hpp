#pragma once
// The loop that steps the games of a batch, compiled once per kind of scenario, observation type,
// kind of compliance and x86-64 level.

#include "core/episode.hpp"

namespace cagepool {

/// Arguments of one call of `Batch::step`.
template <class Scenario>
struct BasicStepArgs {
  BasicBatchView<Scenario> batch;
  const std::int64_t* ids;
  const typename Scenario::Action* actions;
  const typename Scenario::Action* red_actions;  // null if no game needs them
  const RedAction* red_action_table;
  const Order* orders;  // read only if compliance is tracked
};
using StepArgs = BasicStepArgs<CompiledScenario>;

/// Steps entries `begin` to `end` of the arguments; returns how many episodes ended.
template <class Scenario>
using BasicKernel = std::size_t (*)(const BasicStepArgs<Scenario>& args, std::size_t begin,
                                    std::size_t end);
using Kernel = BasicKernel<CompiledScenario>;

/// The fastest kernel for a batch on this processor.
template <class Scenario>
BasicKernel<Scenario> kernel_for(const BasicBatchView<Scenario>& batch);

/// Widest x86-64 level that both this processor and the compiled code have: "x86-64-v4" (networks;
/// games use v3), "x86-64-v3", or "baseline" for any processor.
const char* simd_level();

}  // namespace cagepool
