#include "core/thread_pool.hpp"

#include <utility>

#include "core/fork.hpp"

namespace cagepool {
namespace {

/// Spin for about twenty microseconds, or until the condition holds.
template <class Condition>
void spin_until(Condition holds) {
  for (int i = 0; i < 400 && !holds(); ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : owner_(process_generation()), ranges_(static_cast<std::size_t>(threads)) {
  try {
    for (std::size_t range = 1; range < ranges_.size(); ++range) {
      threads_.emplace_back([this, range] { work_in_thread(range); });
    }
  } catch (...) {  // the system gives no more threads: end those that have started
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

bool ThreadPool::is_of_this_process() const { return owner_ == process_generation(); }

void ThreadPool::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(std::size_t chunks, const std::function<void(std::size_t)>& work) {
  bool any_asleep = false;
  {
    std::unique_lock lock(mutex_);
    // A thread that woke too late for the last round may still be busy.
    done_.wait(lock, [this] { return busy_ == 0; });
    work_ = &work;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      ranges_[i].next = chunks * i / ranges_.size();
      ranges_[i].end = chunks * (i + 1) / ranges_.size();
    }
    ++round_;
    any_asleep = asleep_ != 0;
  }
  if (any_asleep) start_.notify_all();
  take_chunks(0);
  spin_until([this] { return busy_ == 0; });
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::work_in_thread(std::size_t own_range) {
  std::uint64_t last_round = 0;
  while (true) {
    const auto has_work = [this, &last_round] { return stop_ || round_ != last_round; };
    spin_until(has_work);
    {
      std::unique_lock lock(mutex_);
      ++asleep_;
      start_.wait(lock, has_work);
      --asleep_;
      if (stop_) return;
      last_round = round_;
      ++busy_;
    }
    take_chunks(own_range);
    const std::scoped_lock lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

void ThreadPool::take_chunks(std::size_t own_range) {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    Range& range = ranges_[(own_range + i) % ranges_.size()];
    for (std::size_t chunk = range.next++; chunk < range.end; chunk = range.next++) {
      try {
        (*work_)(chunk);
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
  }
}

}  // namespace cagepool
