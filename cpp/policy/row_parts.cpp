#include "policy/row_parts.hpp"

#include <stdexcept>
#include <string>

#include "core/fork.hpp"

namespace cagepool {

RowThreads::RowThreads(int threads) {
  if (threads < 1)
    throw std::invalid_argument("threads must be at least 1, got " + std::to_string(threads));
  if (threads > 1) pool_.reset(std::make_unique<ThreadPool>(threads).release());
}

void RowThreads::run(std::size_t parts, const std::function<void(std::size_t)>& work) {
  if (pool_ && parts > 1 && pool_->is_of_this_process()) return pool_->run(parts, work);
  for (std::size_t part = 0; part < parts; ++part) work(part);
}

RowThreads::CallGuard::CallGuard(RowThreads& threads) : caller_(threads.caller_) {
  std::uint64_t caller = 0;
  if (caller_.compare_exchange_strong(caller, process_generation(), std::memory_order_acquire))
    return;
  throw std::runtime_error(
      caller == process_generation()
          ? "networks must be used by one thread at a time; another call is under way"
          : "networks must not be in a call when the process forks; these were, so the child needs "
            "new ones");
}

}  // namespace cagepool
