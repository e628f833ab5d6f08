#pragma once
// A few threads that share the chunks of one job with the caller.

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cagepool {

/// Each thread begins with the same part of the chunks in every round, so that what they touch
/// stays in its cache, and then takes what others have left. The caller works too, so a helper that
/// is late costs nothing but its help. Whoever waits looks for a few microseconds whether the wait
/// is over, then sleeps: steps follow each other faster than a sleeper wakes, and one that never
/// slept would starve a busy machine.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// False in a child that was forked: the threads stayed behind, and their traces would block an
  /// orderly end.
  bool is_of_this_process() const { return owner_ == getpid(); }
  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Call `work(chunk)` once for every chunk below `chunks`. The first exception is rethrown after
  /// all have ended.
  void run(std::size_t chunks, const std::function<void(std::size_t)>& work);

 private:
  void stop();
  void help(std::size_t part);
  void take_chunks(std::size_t own_part);

  const pid_t owner_ = getpid();
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  // Written under mutex_ while busy_ is 0, so whoever counts as busy reads them without it.
  const std::function<void(std::size_t)>* work_ = nullptr;
  // Written under mutex_; atomic because those who wait look at them without it.
  std::atomic<std::uint64_t> round_ = 0;
  std::atomic<int> busy_ = 0;  // helpers that take chunks of this round
  std::atomic<bool> stop_ = false;
  struct alignas(64) Part {  // a cache line each, so that those who take chunks do not meet
    std::atomic<std::size_t> next = 0;
    std::size_t end = 0;
  };
  std::vector<Part> parts_;  // one a thread; part 0 is the caller's
  // Guarded by mutex_.
  int asleep_ = 0;
  std::exception_ptr error_;
  std::vector<std::jthread> helpers_;
};

/// Ends a pool where it can be ended, and else leaves it alone.
struct EndThreadPool {
  void operator()(ThreadPool* pool) const {
    if (pool->is_of_this_process()) std::default_delete<ThreadPool>()(pool);
  }
};

}  // namespace cagepool
