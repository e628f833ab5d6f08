#pragma once
// The loop that steps the games of a batch, compiled once per kind of network, observation type,
// kind of compliance and x86-64 level.

#include "core/episode.hpp"

namespace cagepool {

/// Arguments of one call of `Batch::step`.
template <class Network>
struct BasicStepArgs {
  BasicBatchView<Network> batch;
  const std::int64_t* ids;
  const typename Network::Action* actions;
  const typename Network::Action* red_actions;  // null if no game needs them
  const RedAction* red_action_table;
  const Order* orders;  // read only if compliance is tracked
};
using StepArgs = BasicStepArgs<Cage2>;

/// Steps entries `begin` to `end` of the arguments; returns how many episodes ended.
template <class Network>
using BasicKernel = std::size_t (*)(const BasicStepArgs<Network>& args, std::size_t begin,
                                    std::size_t end);
using Kernel = BasicKernel<Cage2>;

/// The fastest kernel for a batch on this processor.
template <class Network>
BasicKernel<Network> kernel_for(const BasicBatchView<Network>& batch);

/// Widest x86-64 level that both this processor and the compiled code have: "x86-64-v4" (networks;
/// games use v3), "x86-64-v3", or "baseline" for any processor.
const char* simd_level();

}  // namespace cagepool
