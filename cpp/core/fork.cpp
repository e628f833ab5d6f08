#include "core/fork.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#endif

#include <atomic>

namespace cagepool {
namespace {

std::atomic<std::uint64_t> generation = 1;

#if !defined(_WIN32)  // Windows has no fork
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
#endif

}  // namespace

std::uint64_t process_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace cagepool
