#pragma once

#include <cstdint>

#include "workers/completions.hpp"

namespace cagepool {

/// Spin-then-block wait until a file descriptor is readable.
///
/// Waking a blocked process takes tens of microseconds on some machines, so a wait polls the
/// descriptor for a short time before it blocks. After a spin that timed out, and after another
/// process took the CPU during a spin, the next waits block at once.
class SpinWait {
 public:
  /// @param spin False: every wait blocks at once.
  SpinWait(int descriptor, bool spin) : descriptor_(descriptor), spin_(spin) {}

  bool spins() const { return spin_; }

  /// Wait until the descriptor is readable; false if `timeout_s` seconds passed before. A negative
  /// timeout means no limit. A signal ends the wait early.
  bool wait(double timeout_s);

  /// Wait in the same way until there are `count` completions or the descriptor is readable. No
  /// worker has to wake this process while it spins.
  void wait_for(Completions& completions, std::int32_t count, double timeout_s);

 private:
  template <class IsReady>
  bool spin(IsReady is_ready);
  bool is_readable(int timeout_ms) const;

  int descriptor_;
  bool spin_;
  int failed_spins_ = 0;   // in a row, at most kMaxFailedSpins
  int spins_to_skip_ = 0;  // waits that block at once before the next spin
};

}  // namespace cagepool
