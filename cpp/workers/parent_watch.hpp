#pragma once

#include <sys/types.h>

namespace cagepool {

/// Block until the process that started this one has ended.
///
/// @param life_pipe Reading end of a pipe whose writing end only the parent has. A fork of the
///     parent may hold a copy of the writing end, so the pipe alone does not suffice.
/// @param parent_pidfd Process file descriptor of the parent, or -1 where the kernel has none. In
///     this case, and if one of the descriptors was closed, the id of the parent is polled.
/// @param parent The result of `getppid` while the parent lived.
void wait_for_parent_end(int life_pipe, int parent_pidfd, pid_t parent);

/// Start a thread that ends this process when its parent has ended, together with the processes
/// that it started and that are still in its process group.
///
/// The thread needs neither the GIL nor the cooperation of other threads, and handles no signals.
void exit_with_parent(int life_pipe, int parent_pidfd);

}  // namespace cagepool
