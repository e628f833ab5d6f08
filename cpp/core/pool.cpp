#include "pool.hpp"

#include <utility>

namespace cagepool {

Pool::Pool(int threads) {
  for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
}

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
}

void Pool::run(std::size_t chunks, const std::function<void(std::size_t)>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  next_ = 0;
  chunks_ = chunks;
  error_ = nullptr;
  if (chunks > 1) start_.notify_all();
  take_chunks(lock);
  done_.wait(lock, [this] { return busy_ == 0; });
  work_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Pool::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [this] { return stop_ || next_ < chunks_; });
    if (stop_) return;
    take_chunks(lock);
  }
}

void Pool::take_chunks(std::unique_lock<std::mutex>& lock) {
  while (next_ < chunks_) {
    const std::size_t chunk = next_++;
    ++busy_;
    lock.unlock();
    std::exception_ptr error;
    try {
      (*work_)(chunk);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    if (--busy_ == 0 && next_ >= chunks_) done_.notify_one();
  }
}

}  // namespace cagepool
