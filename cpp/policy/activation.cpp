#include "policy/activation.hpp"

#include "policy/simd.hpp"

namespace cagepool {
namespace {

/// tanh as a rational function of x, odd over even.
template <class Vector>
inline Vector tanh_vector(Vector x) {
  // Beyond the bound, the nearest float is 1.
  const Vector bound = Vector{} + 9.0F;
  x = x > bound ? bound : x;
  x = x < -bound ? -bound : x;
  const Vector square = x * x;
  Vector p = Vector{} + -2.76076847742355e-16F;
  p = p * square + 2.00018790482477e-13F;
  p = p * square + -8.60467152213735e-11F;
  p = p * square + 5.12229709037114e-08F;
  p = p * square + 1.48572235717979e-05F;
  p = p * square + 6.37261928875436e-04F;
  p = p * square + 4.89352455891786e-03F;
  Vector q = Vector{} + 1.19825839466702e-06F;
  q = q * square + 1.18534705686654e-04F;
  q = q * square + 2.26843463243900e-03F;
  q = q * square + 4.89352518554385e-03F;
  return x * p / q;
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
      map_vectors<Level>(values, [](std::size_t, Vector x) { return tanh_vector(x); });
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
