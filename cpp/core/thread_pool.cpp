#include "core/thread_pool.hpp"

#include <utility>

namespace cagepool {
namespace {

/// Look for about twenty microseconds whether something has come true.
template <class Predicate>
void spin(Predicate is_over) {
  for (int i = 0; i < 400 && !is_over(); ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads) : parts_(static_cast<std::size_t>(threads)) {
  try {
    for (std::size_t part = 1; part < parts_.size(); ++part) {
      helpers_.emplace_back([this, part] { help(part); });
    }
  } catch (...) {  // no more threads to be had: let those end that have begun
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
}

void ThreadPool::run(std::size_t chunks, const std::function<void(std::size_t)>& work) {
  bool sleepers = false;
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });  // one that came too late for the last round
    work_ = &work;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].next = chunks * i / parts_.size();
      parts_[i].end = chunks * (i + 1) / parts_.size();
    }
    ++round_;
    sleepers = asleep_ != 0;
  }
  if (sleepers) start_.notify_all();
  take_chunks(0);
  spin([this] { return busy_ == 0; });
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::help(std::size_t part) {
  std::uint64_t seen = 0;
  while (true) {
    const auto is_over = [this, &seen] { return stop_ || round_ != seen; };
    spin(is_over);
    {
      std::unique_lock lock(mutex_);
      ++asleep_;
      start_.wait(lock, is_over);
      --asleep_;
      if (stop_) return;
      seen = round_;
      ++busy_;
    }
    take_chunks(part);
    const std::scoped_lock lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

void ThreadPool::take_chunks(std::size_t own_part) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[(own_part + i) % parts_.size()];
    for (std::size_t chunk = part.next++; chunk < part.end; chunk = part.next++) {
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
