#pragma once
// Notices forks: a child inherits objects whose threads and calls stayed behind in the parent.

#include <cstdint>

namespace cagepool {

/// Number of the process among the parent, its child, the child of that and so on; at least 1. An
/// object of another generation was created, or a call begun, before the fork.
std::uint64_t process_generation();

}  // namespace cagepool
