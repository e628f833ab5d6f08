#include "waiter.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace cagepool {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr auto kLook = microseconds(100);
constexpr auto kRival = microseconds(50);  // away for so long: somebody else wants the processor
constexpr int kAfterRival = 200;           // waits without a look when that has happened
constexpr int kMostInVain = 6;             // then every 64th wait begins with a look

}  // namespace

bool Waiter::wait(double limit_s) {
  if (looks_ && limit_s != 0.0 && look()) return true;
  return is_readable(limit_s < 0 ? -1 : static_cast<int>(std::ceil(limit_s * 1000)));
}

bool Waiter::look() {
  if (skipped_ > 0) {
    --skipped_;
    return false;
  }
  const auto began = Clock::now();
  for (auto now = began; now - began < kLook;) {
    if (is_readable(0)) {
      in_vain_ = 0;
      return true;
    }
    const auto before = now;
    sched_yield();
    now = Clock::now();
    if (now - before > kRival && !is_readable(0)) {
      skipped_ = kAfterRival;
      return false;
    }
  }
  in_vain_ = std::min(in_vain_ + 1, kMostInVain);
  skipped_ = (1 << in_vain_) - 1;
  return false;
}

bool Waiter::is_readable(int limit_ms) const {
  pollfd one{descriptor_, POLLIN, 0};
  return poll(&one, 1, limit_ms) > 0;
}

}  // namespace cagepool
