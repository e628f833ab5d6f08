#pragma once
// Thread pool with work stealing: threads share the chunks of a job with the calling thread.

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

/// Each thread starts with the same range of chunks in every run, so that their memory stays in its
/// cache, and then steals chunks that other threads have not taken. The caller works too, so a late
/// thread never delays a run. A thread that waits spins for some microseconds before it blocks:
/// steps follow each other faster than a blocked thread wakes, and a thread that always spins would
/// take CPU time from other processes.
class ThreadPool {
 public:
  /// @param threads Number of threads, the caller included.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// False in a forked child: it has none of the threads, and a run or a join would block.
  bool is_of_this_process() const;
  int threads() const { return static_cast<int>(threads_.size()) + 1; }

  /// Call `work(chunk)` once for every chunk below `chunks`. The first exception is rethrown after
  /// all chunks are done.
  void run(std::size_t chunks, const std::function<void(std::size_t)>& work);

 private:
  void stop();
  void work_in_thread(std::size_t own_range);
  void take_chunks(std::size_t own_range);

  const std::uint64_t owner_;  // process generation
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  // Written under mutex_ while busy_ is 0; threads that count as busy read it without the lock.
  const std::function<void(std::size_t)>* work_ = nullptr;
  // Written under mutex_; atomic because spinning threads read them without the lock.
  std::atomic<std::uint64_t> round_ = 0;
  std::atomic<int> busy_ = 0;  // threads that take chunks of this round, the caller excluded
  std::atomic<bool> stop_ = false;
  struct alignas(64) Range {  // one cache line each, to avoid false sharing
    std::atomic<std::size_t> next = 0;
    std::size_t end = 0;
  };
  std::vector<Range> ranges_;  // one per thread; range 0 is the caller's
  // Guarded by mutex_.
  int asleep_ = 0;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

/// Deletes a pool, but not in a forked child, where its destructor would block.
struct ThreadPoolDeleter {
  void operator()(ThreadPool* pool) const {
    if (pool->is_of_this_process()) std::default_delete<ThreadPool>()(pool);
  }
};

}  // namespace cagepool
