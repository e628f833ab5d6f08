#pragma once
// Vectors of sixteen floats.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>

namespace cagepool {

// Sixteen numbers at a time, on any processor: the compiler splits them where it must.
constexpr std::size_t kLanes = 16;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using IntLanes = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));
using ByteLanes = std::uint8_t __attribute__((vector_size(kLanes)));

/// Lanes in memory, aligned as the widest registers like it: the compiler, which knows of none when
/// it makes the vectors that hold them, would not do so by itself.
struct alignas(kLanes * sizeof(float)) Block {
  Lanes lanes;
};

inline Lanes all(float value) { return Lanes{} + value; }

/// e to the power of x for x <= 0, with a relative error of about 1e-7; 0 below -87.
inline Lanes exp_lanes(Lanes x) {
  const Lanes low = all(-87.0F);
  const auto vanishes = x < low;
  x = vanishes ? low : x;
  // x = n ln 2 + r; the exponent of a float is n, and a polynomial gives e^r.
  const Lanes magic = all(12582912.0F);  // 1.5 * 2^23: adding it rounds to a whole number
  const Lanes rounded = x * std::numbers::log2e_v<float> + magic;
  const Lanes n = rounded - magic;
  // ln 2 in two parts, the first with few digits so that its product is exact.
  const Lanes r =
      (x - n * 0.693359375F) - n * -2.12194440e-4F;  // NOLINT(modernize-use-std-numbers)
  Lanes p = all(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const IntLanes exponent = (__builtin_convertvector(n, IntLanes) + 127) << 23;
  Lanes power;
  std::memcpy(&power, &exponent, sizeof power);
  return vanishes ? Lanes{} : p * power;
}

inline float sum_of(Lanes lanes) {
  std::array<float, kLanes> sums;
  std::memcpy(sums.data(), &lanes, sizeof lanes);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

}  // namespace cagepool
