#pragma once
// Work on the rows of a call, cut into parts that threads share. The parts depend only on the
// number of rows, and each has its place for results, so that no result depends on the number of
// threads.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/thread_pool.hpp"

namespace cagepool {

/// Rows from `first` to `end`.
struct RowRange {
  std::size_t first;
  std::size_t end;

  std::size_t size() const { return end - first; }
};

/// One of several nearly equal parts of `rows` rows.
inline RowRange part_of_rows(std::size_t rows, std::size_t part, std::size_t parts) {
  return {rows * part / parts, rows * (part + 1) / parts};
}

/// Buffers for the parts that run at the same time: each takes one and puts it back.
template <class Workspace>
class Workspaces {
 public:
  /// Call `work` with a workspace that no other thread uses; `make` creates one if none is free.
  template <class Make, class Work>
  void use(const Make& make, const Work& work) {
    std::unique_ptr<Workspace> workspace = take();
    if (!workspace) workspace = make();
    work(*workspace);
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(workspace));
  }

 private:
  std::unique_ptr<Workspace> take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return nullptr;
    std::unique_ptr<Workspace> workspace = std::move(free_.back());
    free_.pop_back();
    return workspace;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

/// Threads that share the parts of a call, and the guard against a second caller.
class RowThreads {
 public:
  explicit RowThreads(int threads);

  /// Call `work(part)` once for every part. In a forked child, the caller does all of them.
  void run(std::size_t parts, const std::function<void(std::size_t)>& work);

  /// Held during a call; throws std::runtime_error if another call is under way.
  class CallGuard {
   public:
    explicit CallGuard(RowThreads& threads);
    ~CallGuard() { caller_.store(0, std::memory_order_release); }
    CallGuard(const CallGuard&) = delete;
    CallGuard& operator=(const CallGuard&) = delete;

   private:
    std::atomic<std::uint64_t>& caller_;
  };

 private:
  std::unique_ptr<ThreadPool, ThreadPoolDeleter> pool_;
  std::atomic<std::uint64_t> caller_ = 0;  // process generation of the call, 0: none
};

}  // namespace cagepool
