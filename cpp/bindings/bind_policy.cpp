// Python bindings of policy features, sampling and the PPO loss.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <utility>
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
/// Histories as rows of bytes.
using HistoryRows = Rows<std::uint8_t>;

void check(bool holds, const char* sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

template <class... Arrays>
void check_rows(std::size_t rows, const Arrays&... arrays) {
  check(((arrays.shape(0) == rows) && ...), "all arrays must have as many rows as the first");
}

void check_range(std::span<const std::int64_t> indices, std::size_t count, const char* sentence) {
  for (const std::int64_t index : indices) {
    if (index < 0 || std::cmp_greater_equal(index, count)) throw std::out_of_range(sentence);
  }
}

std::span<std::uint8_t> mask_span(const Masks& masks) {
  return masks ? std::span(masks->data(), masks->size()) : std::span<std::uint8_t>();
}

std::span<History> history_span(const HistoryRows& histories) {
  check(histories.shape(1) == sizeof(History), "histories must have rows of HISTORY_BYTES bytes");
  return {reinterpret_cast<History*>(histories.data()), histories.shape(0)};
}

void bound_sample_choices(const Rows<const float>& logits, const Masks& masks,
                          const Floats& uniforms, const Row<std::int64_t>& chosen,
                          const Row<float>& log_probabilities) {
  const bool fits =
      !masks || (masks->shape(0) == logits.shape(0) && masks->shape(1) == logits.shape(1));
  check(fits, "masks must have the shape of logits");
  check(logits.shape(1) > 0, "there must be at least one choice");
  check_rows(logits.shape(0), uniforms, chosen, log_probabilities);
  const MaskedLogits masked{span_of(logits), mask_span(masks), logits.shape(1)};
  const nb::gil_scoped_release release;
  sample_choices(masked, span_of(uniforms), span_of(chosen), span_of(log_probabilities));
}

using LossTuple = std::tuple<double, double, double, double, double>;

LossTuple checked_gradient(const MinibatchSlice& slice, const RolloutRows& rollout,
                           const PpoLossConfig& config, const Rows<float>& logits_gradient,
                           const Row<float>& values_gradient) {
  check_range(slice.rows, rollout.chosen.size(), "a row must be one of the rollout");
  const std::size_t choices = logits_gradient.shape(1);
  for (const std::int64_t row : slice.rows) {
    check_range(rollout.chosen.subspan(static_cast<std::size_t>(row), 1), choices,
                "a choice must be a column of logits");
  }
  const nb::gil_scoped_release release;
  const PpoLossParts parts =
      ppo_loss_gradient(slice, rollout, config, span_of(logits_gradient), span_of(values_gradient));
  return {parts.policy, parts.value, parts.entropy, parts.kl, parts.clipped};
}

void update_histories(const FeatureEncoder& self, const Ints& actions,
                      const Rows<const float>& observations, const HistoryRows& histories) {
  const std::span<History> games = history_span(histories);
  check_rows(games.size(), actions, observations);
  check(observations.shape(1) == kObservationSize, "observations must have 52 columns");
  check_range(span_of(actions), kActionCount, "an action must be below 145");
  self.update(span_of(actions), span_of(observations), games);
}

void encode_features(const FeatureEncoder& self, const Rows<const float>& observations,
                     const HistoryRows& histories, const Rows<float>& features,
                     const Masks& masks) {
  const std::span<const History> games = history_span(histories);
  check_rows(games.size(), observations, features);
  check(observations.shape(1) == kObservationSize, "observations must have 52 columns");
  check(features.shape(1) == self.size(), "features must have one column per feature");
  check(!masks || (masks->shape(0) == games.size() && masks->shape(1) == self.choices()),
        "masks must have one row per game and one column per choice");
  for (const History& history : games)
    check(history.order < kOrderCount, "an order must be below 120");
  self.encode(span_of(observations), games, span_of(features), mask_span(masks));
}

}  // namespace

void bind_policy(nb::module_& m) {
  m.attr("HISTORY_BYTES") = sizeof(History);
  m.attr("HISTORY_ORDER_OFFSET") = offsetof(History, order);
  m.def("sample_choices", &bound_sample_choices, "logits"_a.noconvert(),
        "masks"_a.noconvert().none(), "uniforms"_a.noconvert(), "chosen"_a.noconvert(),
        "log_probabilities"_a.noconvert(),
        "Sample one choice per row from the softmax of its logits, by one uniform number in [0, 1) "
        "per row.");
  m.def(
      "ppo_loss_gradient",
      [](const Rows<const float>& logits, const Floats& values, const Ints& rows,
         std::size_t minibatch_size, const Masks& masks, const Ints& chosen,
         const Floats& log_probabilities, const Floats& advantages, const Floats& old_values,
         const Floats& returns, const Rows<float>& logits_gradient,
         const Row<float>& values_gradient, float clip_range, float clip_range_vf, float ent_coef) {
        check_rows(logits.shape(0), values, rows, logits_gradient, values_gradient);
        check_rows(chosen.shape(0), log_probabilities, advantages, old_values, returns);
        check(logits_gradient.shape(1) == logits.shape(1) && logits.shape(1) > 0,
              "the gradient must have the columns of logits, and at least one");
        check(!masks || (masks->shape(0) == chosen.shape(0) && masks->shape(1) == logits.shape(1)),
              "masks must have one row per row of the rollout and the columns of logits");
        check(minibatch_size >= rows.shape(0),
              "minibatch_size must be at least the number of rows");
        const RolloutRows rollout{mask_span(masks),           span_of(chosen),
                                  span_of(log_probabilities), span_of(advantages),
                                  span_of(old_values),        span_of(returns)};
        return checked_gradient({span_of(rows), span_of(logits), span_of(values), minibatch_size},
                                rollout, {clip_range, clip_range_vf, ent_coef}, logits_gradient,
                                values_gradient);
      },
      nb::kw_only(), "logits"_a.noconvert(), "values"_a.noconvert(), "rows"_a.noconvert(),
      "minibatch_size"_a, "masks"_a.noconvert().none(), "chosen"_a.noconvert(),
      "log_probabilities"_a.noconvert(), "advantages"_a.noconvert(), "old_values"_a.noconvert(),
      "returns"_a.noconvert(), "logits_gradient"_a.noconvert(), "values_gradient"_a.noconvert(),
      "clip_range"_a, "clip_range_vf"_a, "ent_coef"_a,
      "Write the gradient of a minibatch's mean PPO loss for some of its rows.\n\n"
      "`logits` and `values` belong to `rows`, which are indices into the arrays of the "
      "rollout.\n\n"
      "Returns:\n"
      "    Contribution of the rows to the means of policy loss, value loss, entropy, KL "
      "divergence "
      "and share of clipped ratios.");

  nb::class_<FeatureEncoder>(m, "FeatureEncoder",
                             "Encodes observations and histories of many games as policy features.")
      .def(
          "__init__",
          [](FeatureEncoder* self, const std::vector<int>& choices, bool scans, bool decoys,
             bool last_action, bool time, bool order, int horizon) {
            new (self) FeatureEncoder(choices, {scans, decoys, last_action, time, order}, horizon);
          },
          nb::kw_only(), "choices"_a, "scans"_a, "decoys"_a, "last_action"_a, "time"_a, "order"_a,
          "horizon"_a)
      .def_prop_ro("size", &FeatureEncoder::size, "Features per game.")
      .def("update", &update_histories, "actions"_a.noconvert(), "observations"_a.noconvert(),
           "histories"_a.noconvert(),
           "Add to each history the action that was played and the observation that followed.")
      .def("encode", &encode_features, "observations"_a.noconvert(), "histories"_a.noconvert(),
           "features"_a.noconvert(), "masks"_a.noconvert().none(),
           "Write one row of features and, unless `masks` is None, one row of action masks per "
           "game.");
}

}  // namespace cagepool
