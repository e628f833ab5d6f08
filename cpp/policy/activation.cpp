#include "policy/activation.hpp"

#include "policy/simd.hpp"

namespace cagepool {
namespace {

/// tanh as x times a rational function of the square of x, fitted to the least relative error
/// (2e-8) up to the bound; rounding adds up to 4e-7.
template <class Level>
inline typename Level::Vector tanh_vector(typename Level::Vector x) {
  using Vector = typename Level::Vector;
  const Vector one = Vector{} + 1.0F;
  const Vector bound = Vector{} + 9.0F;  // beyond it, the nearest float is 1
  x = x > bound ? bound : x;
  x = x < -bound ? -bound : x;
  const Vector square = x * x;
  Vector p = Vector{} + 1.3353220532877512e-8F;
  p = p * square + 2.0608053824567894e-5F;
  p = p * square + 3.4955270198681384e-3F;
  p = p * square + 1.3380974992518505e-1F;
  p = p * square + 9.9999997962306400e-1F;
  Vector q = Vector{} + 7.775970550427436e-7F;
  q = q * square + 3.285533702162785e-4F;
  q = q * square + 2.5876752012788606e-2F;
  q = q * square + 4.671429065379507e-1F;
  q = q * square + 1.0F;
  const Vector y = x * p / q;
  const Vector below = y > one ? one : y;
  return below < -one ? -one : below;
}

template <class Level, class Map>
inline void map_vectors(std::span<float> values, const Map& map) {
  for (std::size_t i = 0; i < values.size(); i += Level::kWidth)
    Level::store(map(i, Level::load(&values[i])), &values[i]);
}

}  // namespace

void activate(Activation activation, std::span<float> values) {
  run_simd([=]<class Level>() {
    using Vector = typename Level::Vector;
    if (activation == Activation::kTanh) {
      map_vectors<Level>(values, [](std::size_t, Vector x) { return tanh_vector<Level>(x); });
    } else {
      // NaN stays NaN.
      map_vectors<Level>(values, [](std::size_t, Vector x) { return x < 0.0F ? Vector{} : x; });
    }
  });
}

void multiply_by_slope(Activation activation, std::span<const float> outputs,
                       std::span<float> gradients) {
  run_simd([=]<class Level>() {
    using Vector = typename Level::Vector;
    if (activation == Activation::kTanh) {
      map_vectors<Level>(gradients, [=](std::size_t i, Vector gradient) {
        const Vector y = Level::load(&outputs[i]);
        return gradient * (1.0F - y * y);
      });
    } else {
      map_vectors<Level>(gradients, [=](std::size_t i, Vector gradient) {
        return Level::load(&outputs[i]) > 0.0F ? gradient : Vector{};
      });
    }
  });
}

}  // namespace cagepool
