#pragma once
// Refuses a call of an object during another call of the same object.

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "core/fork.hpp"

namespace cagepool {

/// Throws std::runtime_error if another thread is in a call of the same object, or was when the
/// process was forked: in the child that call never ends, and the object is half changed.
class CallGuard {
 public:
  /// @param caller Process generation of the call under way, or 0.
  /// @param noun Name of the object, for messages.
  CallGuard(std::atomic<std::uint64_t>& caller, const char* noun) : caller_(caller) {
    std::uint64_t other = 0;
    if (caller_.compare_exchange_strong(other, process_generation(), std::memory_order_acquire))
      return;
    const std::string name = noun;
    throw std::runtime_error(
        other == process_generation()
            ? "a " + name + " must be used by one thread at a time; another call is under way"
            : "a " + name + " must not be in a call when the process forks; this one was, so the " +
                  "child needs a new " + name);
  }
  ~CallGuard() { caller_.store(0, std::memory_order_release); }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  std::atomic<std::uint64_t>& caller_;
};

}  // namespace cagepool
