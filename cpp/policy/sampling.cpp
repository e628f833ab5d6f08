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
    softmax.compute(&logits.logits[row * logits.choices],
                    mask_row(logits.masks, row, logits.choices));
    if (!softmax.is_valid()) [[unlikely]]
      refuse_row(row);
    const std::size_t choice = softmax.sample(uniforms[row]);
    chosen[row] = static_cast<std::int64_t>(choice);
    log_probabilities[row] = softmax.log_probability(choice);
  }
}

#if defined(__x86_64__) && defined(__linux__)
// One version per x86-64 level; all of them round the same way.
[[gnu::flatten, gnu::target("arch=x86-64-v4")]] void sample_rows_v4(
    const MaskedLogits& logits, std::span<const float> uniforms, std::span<std::int64_t> chosen,
    std::span<float> log_probabilities) {
  sample_rows(logits, uniforms, chosen, log_probabilities);
}
[[gnu::flatten, gnu::target("arch=x86-64-v3")]] void sample_rows_v3(
    const MaskedLogits& logits, std::span<const float> uniforms, std::span<std::int64_t> chosen,
    std::span<float> log_probabilities) {
  sample_rows(logits, uniforms, chosen, log_probabilities);
}
#endif

}  // namespace

void sample_choices(const MaskedLogits& logits, std::span<const float> uniforms,
                    std::span<std::int64_t> chosen, std::span<float> log_probabilities) {
#if defined(__x86_64__) && defined(__linux__)
  if (__builtin_cpu_supports("x86-64-v4"))
    return sample_rows_v4(logits, uniforms, chosen, log_probabilities);
  if (__builtin_cpu_supports("x86-64-v3"))
    return sample_rows_v3(logits, uniforms, chosen, log_probabilities);
#endif
  sample_rows(logits, uniforms, chosen, log_probabilities);
}

}  // namespace cagepool
