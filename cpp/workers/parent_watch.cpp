#include "workers/parent_watch.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <thread>

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace cagepool {
namespace {

constexpr int kParentPollMs = 250;  // between two looks at the id of the parent

/// End this process and, if it leads a process group, all other processes of the group.
[[noreturn]] void exit_with_group() {
  if (getpgrp() == getpid()) kill(0, SIGKILL);
  _exit(1);
}

}  // namespace

void wait_for_parent_end(int life_pipe, int parent_pidfd, pid_t parent) {
  // poll ignores negative descriptors. Nobody writes to the pipe, so any event is its end.
  std::array<pollfd, 2> watched{{{life_pipe, POLLIN, 0}, {parent_pidfd, POLLIN, 0}}};
  while (getppid() == parent) {
    const bool needs_polling = watched[0].fd < 0 || watched[1].fd < 0;
    const int events = poll(watched.data(), watched.size(), needs_polling ? kParentPollMs : -1);
    if (events < 0 && errno != EINTR) return;
    for (pollfd& descriptor : watched) {
      if (events > 0 && (descriptor.revents & POLLNVAL) != 0)
        descriptor.fd = -1;
      else if (events > 0 && descriptor.revents != 0)
        return;
    }
  }
}

void exit_with_parent(int life_pipe, int parent_pidfd) {
#ifdef __linux__
  // A stopped process cannot notice anything, so the end of the parent continues it. SIGCONT also
  // discards a stop that is pending, and is harmless if only the parent's thread ends.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
#endif
  // The thread inherits the signal mask: signals must interrupt the main thread.
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  // Not in the thread: the parent may end before the thread runs.
  std::thread([life_pipe, parent_pidfd, parent = getppid()] {
    wait_for_parent_end(life_pipe, parent_pidfd, parent);
    exit_with_group();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

}  // namespace cagepool
