#pragma once
// The loop that steps the games of a batch.

#include "core/episode.hpp"

namespace cagepool {

/// Step games `begin` to `end` of the job; returns how many episodes ended.
using Kernel = std::size_t (*)(const Job& job, std::size_t begin, std::size_t end);

/// The fastest kernel for this job on this processor.
Kernel kernel_for(const Job& job);

}  // namespace cagepool
