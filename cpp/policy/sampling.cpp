#include "policy/sampling.hpp"

#include "policy/softmax.hpp"

namespace cagepool {
namespace {

inline void draw_rows(const Choices& choices, std::span<const float> uniforms,
                      std::span<std::int64_t> chosen, std::span<float> log_probabilities) {
  Softmax softmax(choices.count);
  for (std::size_t row = 0; row < choices.rows(); ++row) {
    softmax.read(&choices.logits[row * choices.count], mask_of(choices.masks, row, choices.count));
    const std::size_t choice = softmax.at(uniforms[row]);
    chosen[row] = static_cast<std::int64_t>(choice);
    log_probabilities[row] = softmax.log_probability(choice);
  }
}

#if defined(__x86_64__)
// One copy for each kind of processor; all round alike.
[[gnu::flatten, gnu::target("arch=x86-64-v4")]] void draw_rows_v4(
    const Choices& choices, std::span<const float> uniforms, std::span<std::int64_t> chosen,
    std::span<float> log_probabilities) {
  draw_rows(choices, uniforms, chosen, log_probabilities);
}
[[gnu::flatten, gnu::target("arch=x86-64-v3")]] void draw_rows_v3(
    const Choices& choices, std::span<const float> uniforms, std::span<std::int64_t> chosen,
    std::span<float> log_probabilities) {
  draw_rows(choices, uniforms, chosen, log_probabilities);
}
#endif

}  // namespace

void draw(const Choices& choices, std::span<const float> uniforms, std::span<std::int64_t> chosen,
          std::span<float> log_probabilities) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4"))
    return draw_rows_v4(choices, uniforms, chosen, log_probabilities);
  if (__builtin_cpu_supports("x86-64-v3"))
    return draw_rows_v3(choices, uniforms, chosen, log_probabilities);
#endif
  draw_rows(choices, uniforms, chosen, log_probabilities);
}

}  // namespace cagepool
