#pragma once
// Floats in memory, aligned for the widest registers.

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace cagepool {

/// The count is a multiple of 16; all are zero at the start.
class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(std::size_t count) : lines_(count / kLineFloats) {}

  float* data() { return lines_.empty() ? nullptr : lines_.front().floats.data(); }
  const float* data() const { return lines_.empty() ? nullptr : lines_.front().floats.data(); }
  std::span<float> span() { return {data(), lines_.size() * kLineFloats}; }

 private:
  static constexpr std::size_t kLineFloats = 16;  // of a cache line
  struct alignas(kLineFloats * sizeof(float)) Line {
    std::array<float, kLineFloats> floats;
  };
  std::vector<Line> lines_;
};

}  // namespace cagepool
