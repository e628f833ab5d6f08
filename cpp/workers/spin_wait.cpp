#include "workers/spin_wait.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace cagepool {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr auto kSpinTime = microseconds(100);
constexpr auto kPreempted = microseconds(50);    // a yield this long: another process needs the CPU
constexpr auto kTimeSlice = microseconds(1000);  // the same, even if there is an answer by then
constexpr int kSkipAfterPreemption = 200;        // waits without a spin after such a yield
constexpr int kMaxFailedSpins = 6;               // from then on every 64th wait spins

int milliseconds(double seconds) {
  return seconds < 0 ? -1 : static_cast<int>(std::ceil(seconds * 1000));
}

}  // namespace

bool SpinWait::wait(double timeout_s) {
  if (spin_ && timeout_s != 0.0 && spin([this] { return is_readable(0); })) return true;
  return is_readable(milliseconds(timeout_s));
}

void SpinWait::wait_for(Completions& completions, std::int32_t count, double timeout_s) {
  const auto is_ready = [&] { return completions.posted() >= count || is_readable(0); };
  if ((spin_ && spin(is_ready)) || !completions.arm(count)) return;
  is_readable(milliseconds(timeout_s));
  completions.disarm();
}

template <class IsReady>
bool SpinWait::spin(IsReady is_ready) {
  if (spins_to_skip_ > 0) {
    --spins_to_skip_;
    return false;
  }
  const auto start = Clock::now();
  for (auto now = start; now - start < kSpinTime;) {
    if (is_ready()) {
      failed_spins_ = 0;
      return true;
    }
    const auto before = now;
    sched_yield();
    now = Clock::now();
    if (now - before > kTimeSlice || (now - before > kPreempted && !is_ready())) {
      spins_to_skip_ = kSkipAfterPreemption;
      return false;
    }
  }
  failed_spins_ = std::min(failed_spins_ + 1, kMaxFailedSpins);
  spins_to_skip_ = (1 << failed_spins_) - 1;
  return false;
}

bool SpinWait::is_readable(int timeout_ms) const {
  pollfd polled{descriptor_, POLLIN, 0};
  return poll(&polled, 1, timeout_ms) > 0;
}

}  // namespace cagepool
