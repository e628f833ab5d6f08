#include "policy/adam.hpp"

#include <array>
#include <cmath>

#include "policy/simd.hpp"

namespace cagepool {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr float kEpsilon = 1e-8F;

template <class Vector>
inline Vector root(Vector values) {
  for (std::size_t i = 0; i < sizeof values / sizeof(float); ++i) values[i] = std::sqrt(values[i]);
  return values;
}

}  // namespace

AdamStep::AdamStep(double learning_rate, std::int64_t steps)
    : step_size(
          static_cast<float>(learning_rate / (1 - std::pow(kBeta1, static_cast<double>(steps))))),
      root_correction(
          static_cast<float>(std::sqrt(1 - std::pow(kBeta2, static_cast<double>(steps))))) {}

void take_adam_step(const AdamStep& step, std::span<const float> gradient, float scale,
                    const AdamState& state) {
  run_simd([&]<class Level>() {
    using Vector = typename Level::Vector;
    const AdamState to = state;  // a local copy: no write of the loop can alias it
    const auto [step_size, root_correction] = step;
    for (std::size_t i = 0; i < gradient.size(); i += Level::kWidth) {
      const Vector slope = Level::load(&gradient[i]) * scale;
      Vector mean = Level::load(&to.exp_avg[i]);
      mean += (slope - mean) * static_cast<float>(1 - kBeta1);
      const Vector square = Level::load(&to.exp_avg_sq[i]) * static_cast<float>(kBeta2) +
                            slope * slope * static_cast<float>(1 - kBeta2);
      const Vector denominator = root(square) / root_correction + kEpsilon;
      Level::store(mean, &to.exp_avg[i]);
      Level::store(square, &to.exp_avg_sq[i]);
      Level::store(Level::load(&to.parameters[i]) - mean / denominator * step_size,
                   &to.parameters[i]);
    }
  });
}

void add_to(std::span<float> total, std::span<const float> part) {
  run_simd([=]<class Level>() {
    for (std::size_t i = 0; i < total.size(); i += Level::kWidth)
      Level::store(Level::load(&total[i]) + Level::load(&part[i]), &total[i]);
  });
}

double sum_of_squares(std::span<const float> values) {
  Block sums{};
  run_simd([&]<class Level>() {
    using Vector = typename Level::Vector;
    std::array<Vector, kLanes / Level::kWidth> squares{};
    for (std::size_t i = 0; i < values.size(); i += kLanes) {
      for (std::size_t v = 0; v < squares.size(); ++v) {
        const Vector value = Level::load(&values[i + v * Level::kWidth]);
        squares[v] += value * value;
      }
    }
    std::memcpy(&sums, squares.data(), sizeof sums);
  });
  return sum_lanes(sums.lanes);
}

}  // namespace cagepool
