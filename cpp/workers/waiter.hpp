#pragma once

namespace cagepool {

/// Waits until a descriptor can be read. To wake a sleeping process takes tens of microseconds on
/// some machines, so it first looks for itself for a short while, as long as that pays and nobody
/// else wants the processor.
class Waiter {
 public:
  /// @param looks Whether to look at all before sleeping.
  Waiter(int descriptor, bool looks) : descriptor_(descriptor), looks_(looks) {}

  /// Whether it can be read before so many seconds are over, none being for ever. A signal ends the
  /// wait early.
  bool wait(double limit_s);

 private:
  bool look();
  bool is_readable(int limit_ms) const;

  int descriptor_;
  bool looks_;
  int in_vain_ = 0;  // looks since the last one that paid, as far as they count
  int skipped_ = 0;  // waits that are still to go without a look
};

}  // namespace cagepool
