#pragma once
// SIMD vectors of sixteen floats, with GCC's and Clang's vector extensions: the compiler splits
// them where the processor has narrower registers.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>

namespace cagepool {

constexpr std::size_t kLanes = 16;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using IntLanes = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

/// Lanes in memory, aligned for the widest registers. The explicit alignment is needed: containers
/// are compiled for the baseline processor, which aligns vectors to narrower registers.
struct alignas(kLanes * sizeof(float)) Block {
  Lanes lanes;
};

inline Lanes all_lanes(float value) { return Lanes{} + value; }

/// e^x for x <= 0, with a relative error of about 1e-7; 0 below -87.
inline Lanes exp_lanes(Lanes x) {
  const Lanes low = all_lanes(-87.0F);
  const auto underflows = x < low;
  x = underflows ? low : x;
  // x = n ln 2 + r: n becomes the exponent of the float, and a polynomial gives e^r.
  const Lanes magic = all_lanes(12582912.0F);  // 1.5 * 2^23: adding it rounds to a whole number
  const Lanes rounded = x * std::numbers::log2e_v<float> + magic;
  const Lanes n = rounded - magic;
  // ln 2 in two parts; the first has few digits, so that its product with n is exact.
  const Lanes r =
      (x - n * 0.693359375F) - n * -2.12194440e-4F;  // NOLINT(modernize-use-std-numbers)
  Lanes p = all_lanes(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const IntLanes exponent = (__builtin_convertvector(n, IntLanes) + 127) << 23;
  Lanes power;
  std::memcpy(&power, &exponent, sizeof power);
  return underflows ? Lanes{} : p * power;
}

using HalfLanes = float __attribute__((vector_size(kLanes / 2 * sizeof(float))));
using QuarterLanes = float __attribute__((vector_size(kLanes / 4 * sizeof(float))));

/// Registers of a processor: floats per vector, and the most vectors of a row that a tile of a
/// matrix product keeps in registers beside its operands.
template <class Floats, std::size_t kMaxVectors>
struct SimdLevel {
  using Vector = Floats;
  static constexpr std::size_t kWidth = sizeof(Floats) / sizeof(float);
  static constexpr std::size_t kTileVectors = kMaxVectors;

  static Vector load(const float* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
  }
  static void store(Vector vector, float* to) { std::memcpy(to, &vector, sizeof vector); }
};

#if defined(__x86_64__) && defined(__linux__)
template <class Work>
[[gnu::flatten, gnu::target("arch=x86-64-v4")]] void run_v4(const Work& work) {
  work.template operator()<SimdLevel<Lanes, 5>>();
}
template <class Work>
[[gnu::flatten, gnu::target("arch=x86-64-v3")]] void run_v3(const Work& work) {
  work.template operator()<SimdLevel<HalfLanes, 2>>();
}
#endif

/// Call `work.operator()<Level>()` compiled for this processor. All levels round alike, unless the
/// source file is compiled with fused products.
template <class Work>
void run_simd(const Work& work) {
#if defined(__x86_64__) && defined(__linux__)
  if (__builtin_cpu_supports("x86-64-v4")) return run_v4(work);
  if (__builtin_cpu_supports("x86-64-v3")) return run_v3(work);
#endif
  work.template operator()<SimdLevel<QuarterLanes, 2>>();
}

/// Combine all lanes pairwise, so that every processor rounds alike.
template <class Combine>
inline float reduce_lanes(Lanes lanes, const Combine& combine) {
  std::array<HalfLanes, 2> halves;
  std::memcpy(halves.data(), &lanes, sizeof lanes);
  const HalfLanes half = combine(halves[0], halves[1]);
  std::array<QuarterLanes, 2> quarters;
  std::memcpy(quarters.data(), &half, sizeof half);
  const QuarterLanes quarter = combine(quarters[0], quarters[1]);
  return combine(combine(quarter[0], quarter[2]), combine(quarter[1], quarter[3]));
}

inline float sum_lanes(Lanes lanes) {
  return reduce_lanes(lanes, [](auto a, auto b) { return a + b; });
}

inline float highest_lane(Lanes lanes) {
  return reduce_lanes(lanes, [](auto a, auto b) { return a > b ? a : b; });
}

}  // namespace cagepool
