#pragma once
// A few threads that share the chunks of one job with the caller.

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cagepool {

/// Waits passively, and the caller works too: a helper that is late costs nothing but its help.
class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }

  /// Call `work(chunk)` once for every chunk below `chunks`. The first exception is rethrown after
  /// all have ended.
  void run(std::size_t chunks, const std::function<void(std::size_t)>& work);

 private:
  void help();
  void take_chunks(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  // Guarded by mutex_. `work_` is set while chunks may be left and stays valid until `busy_` is 0.
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t next_ = 0;
  std::size_t chunks_ = 0;
  std::size_t busy_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
  std::vector<std::jthread> helpers_;
};

}  // namespace cagepool
