#include "workers/completions.hpp"

#include <atomic>

namespace cagepool {
namespace {

using Flag = std::atomic_ref<std::uint8_t>;
using Countdown = std::atomic_ref<std::int32_t>;

// Two processes see these objects, so a lock of one process would not do.
static_assert(Flag::is_always_lock_free && Countdown::is_always_lock_free);

}  // namespace

// `post` sets flags before it counts, and `arm` sets the countdown before it looks at the flags, so
// that one of them at least sees a completion: all are sequentially consistent. A completion that
// both see ends the countdown early.
bool Completions::post(std::span<const std::int32_t> envs) {
  for (const std::int32_t env : envs) Flag(flags_[static_cast<std::size_t>(env)]).store(1);
  const Countdown countdown(countdown_);
  if (countdown.load() <= 0) return false;  // the common case: nobody waits
  const auto posted = static_cast<std::int32_t>(envs.size());
  const std::int32_t before = countdown.fetch_sub(posted);
  return before > 0 && before <= posted;
}

bool Completions::arm(std::int32_t count) {
  const Countdown countdown(countdown_);
  countdown.exchange(count);
  const std::int32_t seen = posted();
  if (seen == 0 || countdown.fetch_sub(seen) > seen) return true;
  disarm();
  return false;
}

std::int32_t Completions::posted() const {
  std::int32_t count = 0;
  for (std::uint8_t& flag : flags_) count += Flag(flag).load();
  return count;
}

void Completions::disarm() { Countdown(countdown_).store(0); }

std::size_t Completions::take(std::span<std::int32_t> envs) {
  std::size_t count = 0;
  for (std::size_t env = 0; env < flags_.size(); ++env) {
    const Flag flag(flags_[env]);
    if (flag.load(std::memory_order_acquire) == 0) continue;
    // Relaxed: the worker sets the flag again only after the next request.
    flag.store(0, std::memory_order_relaxed);
    envs[count++] = static_cast<std::int32_t>(env);
  }
  return count;
}

}  // namespace cagepool
