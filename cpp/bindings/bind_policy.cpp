// Python bindings of policy features, sampling and the PPO loss.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <vector>

#include "bindings/buffers.hpp"
#include "bindings/module.hpp"
#include "policy/features.hpp"
#include "policy/ppo_loss.hpp"
#include "policy/sampling.hpp"

using namespace nanobind::literals;

namespace cagepool {
namespace {

using Masks = std::optional<Rows<std::uint8_t>>;
using Floats = Row<const float>;
using Ints = Row<const std::int64_t>;

void check(bool holds, const char* sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

template <class... Arrays>
void check_rows(std::size_t rows, const Arrays&... arrays) {
  check(((arrays.shape(0) == rows) && ...), "all arrays must have as many rows as the first");
}

Choices choices_of(const Rows<const float>& logits, const Masks& masks) {
  const bool fits =
      !masks || (masks->shape(0) == logits.shape(0) && masks->shape(1) == logits.shape(1));
  check(fits, "masks must have the shape of logits");
  check(logits.shape(1) > 0, "there must be at least one choice");
  Choices choices{span_of(logits), {}, logits.shape(1)};
  if (masks) choices.masks = {masks->data(), masks->size()};
  return choices;
}

void check_range(std::span<const std::int64_t> numbers, std::size_t count, const char* sentence) {
  for (const std::int64_t number : numbers) {
    if (number < 0 || static_cast<std::size_t>(number) >= count) throw std::out_of_range(sentence);
  }
}

void draw_choices(const Rows<const float>& logits, const Masks& masks, const Floats& uniforms,
                  const Row<std::int64_t>& chosen, const Row<float>& log_probabilities) {
  const Choices choices = choices_of(logits, masks);
  check_rows(choices.rows(), uniforms, chosen, log_probabilities);
  const nb::gil_scoped_release release;
  draw(choices, span_of(uniforms), span_of(chosen), span_of(log_probabilities));
}

using Parts = std::tuple<double, double, double, double, double>;

Parts gradient(const Share& share, const Collected& collected, const LossRule& rule,
               const Rows<float>& logits_gradient, const Row<float>& values_gradient) {
  check_range(share.rows, collected.chosen.size(), "a row must be one of those collected");
  const std::size_t choices = logits_gradient.shape(1);
  for (const std::int64_t row : share.rows) {
    check_range(collected.chosen.subspan(static_cast<std::size_t>(row), 1), choices,
                "a choice must be a column of logits");
  }
  const nb::gil_scoped_release release;
  const LossParts parts =
      loss_gradient(share, collected, rule, span_of(logits_gradient), span_of(values_gradient));
  return {parts.policy, parts.value, parts.entropy, parts.kl, parts.clipped};
}

void advance(const Inputs& self, const Ints& actions, const Rows<const float>& observations,
             const Bytes& memories) {
  const auto structs = structs_of<Memory>(memories, "memories");
  check_rows(structs.size(), actions, observations);
  check(observations.shape(1) == kObservationSize, "observations must have 52 columns");
  check_range(span_of(actions), kActions, "an action must be below 145");
  self.advance(span_of(actions), span_of(observations), structs);
}

void write(const Inputs& self, const Rows<const float>& observations, const Bytes& memories,
           const Rows<float>& inputs, const Masks& masks) {
  const auto structs = structs_of<Memory>(memories, "memories");
  check_rows(structs.size(), observations, inputs);
  check(observations.shape(1) == kObservationSize, "observations must have 52 columns");
  check(inputs.shape(1) == self.size(), "inputs must have as many columns as there are inputs");
  check(!masks || (masks->shape(0) == structs.size() && masks->shape(1) == self.choices()),
        "masks must have a row a game and a column a choice");
  for (const Memory& memory : structs) check(memory.order < kOrders, "an order must be below 120");
  self.write(span_of(observations), structs, span_of(inputs),
             masks ? std::span(masks->data(), masks->size()) : std::span<std::uint8_t>());
}

}  // namespace

void bind_policy(nb::module_& m) {
  m.attr("MEMORY_BYTES") = sizeof(Memory);
  m.attr("MEMORY_ORDER_OFFSET") = offsetof(Memory, order);
  m.def("draw", &draw_choices, "logits"_a.noconvert(), "masks"_a.noconvert().none(),
        "uniforms"_a.noconvert(), "chosen"_a.noconvert(), "log_probabilities"_a.noconvert(),
        "Draw a choice in every row from the softmax of its logits, by one number in [0, 1).");
  m.def(
      "loss_gradient",
      [](const Rows<const float>& logits, const Floats& values, const Ints& rows,
         std::size_t minibatch, const Masks& masks, const Ints& chosen,
         const Floats& log_probabilities, const Floats& advantages, const Floats& old_values,
         const Floats& returns, const Rows<float>& logits_gradient,
         const Row<float>& values_gradient, float clip, float value_clip, float entropy) {
        check_rows(logits.shape(0), values, rows, logits_gradient, values_gradient);
        check_rows(chosen.shape(0), log_probabilities, advantages, old_values, returns);
        check(logits_gradient.shape(1) == logits.shape(1) && logits.shape(1) > 0,
              "the gradient must have the columns of logits, and at least one");
        check(!masks || (masks->shape(0) == chosen.shape(0) && masks->shape(1) == logits.shape(1)),
              "masks must have a row for all that was collected and the columns of logits");
        check(minibatch >= rows.shape(0), "a minibatch must have at least the rows of its share");
        const Collected collected{masks
                                      ? std::span<const std::uint8_t>(masks->data(), masks->size())
                                      : std::span<const std::uint8_t>(),
                                  span_of(chosen),
                                  span_of(log_probabilities),
                                  span_of(advantages),
                                  span_of(old_values),
                                  span_of(returns)};
        return gradient({span_of(rows), span_of(logits), span_of(values), minibatch}, collected,
                        {clip, value_clip, entropy}, logits_gradient, values_gradient);
      },
      nb::kw_only(), "logits"_a.noconvert(), "values"_a.noconvert(), "rows"_a.noconvert(),
      "minibatch"_a, "masks"_a.noconvert().none(), "chosen"_a.noconvert(),
      "log_probabilities"_a.noconvert(), "advantages"_a.noconvert(), "old_values"_a.noconvert(),
      "returns"_a.noconvert(), "logits_gradient"_a.noconvert(), "values_gradient"_a.noconvert(),
      "clip"_a, "value_clip"_a, "entropy"_a,
      "Write the gradient of the mean loss of PPO over a minibatch for some of its rows, and "
      "return "
      "their part of the means of policy loss, value loss, entropy, KL and clipped ratios. `rows` "
      "picks from what was collected; logits and values are of these rows alone.");

  nb::class_<Inputs>(m, "Inputs", "Policy inputs of many games, made of what blue saw and did.")
      .def(
          "__init__",
          [](Inputs* self, const std::vector<int>& choices, bool scans, bool decoys,
             bool last_action, bool time, bool order, int horizon) {
            new (self) Inputs(choices, {scans, decoys, last_action, time, order}, horizon);
          },
          nb::kw_only(), "choices"_a, "scans"_a, "decoys"_a, "last_action"_a, "time"_a, "order"_a,
          "horizon"_a)
      .def_prop_ro("size", &Inputs::size)
      .def("advance", &advance, "actions"_a.noconvert(), "observations"_a.noconvert(),
           "memories"_a.noconvert(), "Take note of what was played and of what blue saw next.")
      .def("write", &write, "observations"_a.noconvert(), "memories"_a.noconvert(),
           "inputs"_a.noconvert(), "masks"_a.noconvert().none(),
           "Write a row of inputs, and one of masks unless there is none, for each game.");
}

}  // namespace cagepool
