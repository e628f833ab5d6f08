#include "policy/sampling.hpp"

#include <stdexcept>
#include <string>

#include "policy/softmax.hpp"

namespace cagepool {
namespace {

[[noreturn, gnu::noinline]] void refuse_row(std::size_t row) {
  throw std::invalid_argument("each row of logits must have numbers and an allowed choice, row " +
                              std::to_string(row) + " has not");
}

inline void sample_rows(const MaskedLogits& logits, std::span<const float> uniforms,
                        std::span<std::int64_t> chosen, std::span<float> log_probabilities) {
  Softmax softmax(logits.choices);
  for (std::size_t row = 0; row < logits.rows(); ++row) {
    softmax.compute(&logits.logits[row * logits.stride],
                    mask_row(logits.masks, row, logits.choices));
    if (!softmax.is_valid()) [[unlikely]]
      refuse_row(logits.first_row + row);
    const std::size_t choice = softmax.sample(uniforms[row]);
    chosen[row] = static_cast<std::int64_t>(choice);
    log_probabilities[row] = softmax.log_probability(choice);
  }
}

}  // namespace

void sample_choices(const MaskedLogits& logits, std::span<const float> uniforms,
                    std::span<std::int64_t> chosen, std::span<float> log_probabilities) {
  run_simd([&]<class Level>() { sample_rows(logits, uniforms, chosen, log_probabilities); });
}

}  // namespace cagepool
