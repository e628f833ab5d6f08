// Python bindings of policy features, sampling and the PPO loss.

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "bindings/module.hpp"
#include "bindings/policy_arrays.hpp"
#include "policy/features.hpp"
#include "policy/ppo_loss.hpp"
#include "policy/sampling.hpp"

using namespace nanobind::literals;

namespace cagepool {
namespace {

void bound_sample_choices(nb::handle logits, nb::handle masks, nb::handle uniforms,
                          nb::handle chosen, nb::handle log_probabilities) {
  const Rows<const float> given(logits, "logits");
  const std::size_t choices = given.column_count();
  check(choices > 0, "there must be at least one choice");
  const Masks allowed(masks, given.row_count(), choices);
  const Row<const float> numbers(uniforms, "uniforms");
  const Row<std::int64_t> sampled(chosen, "chosen");
  const Row<float> logs(log_probabilities, "log_probabilities");
  check_rows(given.row_count(), numbers, sampled, logs);
  const MaskedLogits masked{given.span(), allowed.span(), choices, choices};
  const nb::gil_scoped_release release;
  sample_choices(masked, numbers.span(), sampled.span(), logs.span());
}

using LossTuple = std::tuple<double, double, double, double, double>;

LossTuple bound_loss_gradient(nb::handle logits, nb::handle values, nb::handle rows,
                              std::size_t minibatch_size, nb::handle masks, nb::handle chosen,
                              nb::handle log_probabilities, nb::handle advantages,
                              nb::handle old_values, nb::handle returns, nb::handle logits_gradient,
                              nb::handle values_gradient, float clip_range, float clip_range_vf,
                              float ent_coef) {
  const Rows<const float> given(logits, "logits");
  const Row<const float> predicted(values, "values");
  const Row<const std::int64_t> indices(rows, "rows");
  const Rows<float> logits_out(logits_gradient, "logits_gradient");
  const Row<float> values_out(values_gradient, "values_gradient");
  check_rows(given.row_count(), predicted, indices, logits_out, values_out);
  logits_out.check_columns(given.column_count());
  check(given.column_count() > 0, "there must be at least one choice");
  check(minibatch_size >= indices.row_count(),
        "minibatch_size must be at least the number of rows");

  const Row<const std::int64_t> choices(chosen, "chosen");
  const Row<const float> logs(log_probabilities, "log_probabilities");
  const Row<const float> gains(advantages, "advantages");
  const Row<const float> before(old_values, "old_values");
  const Row<const float> targets(returns, "returns");
  check_rows(choices.row_count(), logs, gains, before, targets);
  const Masks allowed(masks, choices.row_count(), given.column_count());
  const RolloutRows rollout{allowed.span(), logs.span(), gains.span(), before.span(),
                            targets.span()};

  const nb::gil_scoped_release release;
  const std::vector<std::int64_t> slice_rows = copy_of(indices.span());
  check_range(slice_rows, choices.row_count(), "a row must be one of the rollout");
  const std::vector<std::int64_t> slice_chosen = chosen_of_rows(choices.span(), slice_rows);
  check_range(slice_chosen, given.column_count(), "a choice must be a column of logits");
  const PpoLossParts parts = ppo_loss_gradient(
      {slice_rows, slice_chosen, given.column_count(), given.column_count(), given.span(),
       predicted.span(), minibatch_size},
      rollout, {clip_range, clip_range_vf, ent_coef}, logits_out.span(), values_out.span());
  return {parts.policy, parts.value, parts.entropy, parts.kl, parts.clipped};
}

void update_histories(const FeatureEncoder& self, nb::handle actions, nb::handle observations,
                      nb::handle histories) {
  const Buffer history_rows(histories, "histories");
  const std::span<History> games = history_rows.rows<History>();
  const Row<const std::int64_t> blue(actions, "actions");
  const Rows<const float> observed(observations, "observations");
  check_rows(games.size(), blue, observed);
  observed.check_columns(kObservationSize);
  const std::vector<std::int64_t> played = copy_of(blue.span());
  check_range(played, kActionCount, "an action must be below 145");
  self.update(played, observed.span(), games);
}

void encode_features(const FeatureEncoder& self, nb::handle observations, nb::handle histories,
                     nb::handle features, nb::handle masks) {
  const Buffer history_rows(histories, "histories", Buffer::Access::kRead);
  const std::vector<History> games = copy_of(history_rows.rows<const History>());
  const Rows<const float> observed(observations, "observations");
  const Rows<float> encoded(features, "features");
  check_rows(games.size(), observed, encoded);
  observed.check_columns(kObservationSize);
  encoded.check_columns(self.size());
  const Masks allowed(masks, games.size(), self.choices());
  check(std::ranges::all_of(games, is_possible),
        "histories must be those of `update`, with orders below 120");
  self.encode(observed.span(), games, encoded.span(), allowed.span());
}

}  // namespace

void bind_policy(nb::module_& m) {
  m.attr("HISTORY_BYTES") = sizeof(History);
  m.attr("HISTORY_ORDER_OFFSET") = offsetof(History, order);
  m.def("sample_choices", &bound_sample_choices, "logits"_a, "masks"_a.none(), "uniforms"_a,
        "chosen"_a, "log_probabilities"_a,
        nb::sig("def sample_choices(logits: numpy.typing.NDArray[numpy.float32], masks: "
                "numpy.typing.NDArray[numpy.uint8] | None, uniforms: "
                "numpy.typing.NDArray[numpy.float32], chosen: numpy.typing.NDArray[numpy.int64], "
                "log_probabilities: numpy.typing.NDArray[numpy.float32]) -> None"),
        "Sample one choice per row from the softmax of its logits, by one uniform number in [0, 1) "
        "per row.\n\n"
        "Raises:\n    ValueError: a row allows no choice, or has NaN.");
  m.def("ppo_loss_gradient", &bound_loss_gradient, nb::kw_only(), "logits"_a, "values"_a, "rows"_a,
        "minibatch_size"_a, "masks"_a.none(), "chosen"_a, "log_probabilities"_a, "advantages"_a,
        "old_values"_a, "returns"_a, "logits_gradient"_a, "values_gradient"_a, "clip_range"_a,
        "clip_range_vf"_a, "ent_coef"_a,
        nb::sig("def ppo_loss_gradient(*, logits: numpy.typing.NDArray[numpy.float32], "
                "values: numpy.typing.NDArray[numpy.float32], "
                "rows: numpy.typing.NDArray[numpy.int64], minibatch_size: int, "
                "masks: numpy.typing.NDArray[numpy.uint8] | None, "
                "chosen: numpy.typing.NDArray[numpy.int64], "
                "log_probabilities: numpy.typing.NDArray[numpy.float32], "
                "advantages: numpy.typing.NDArray[numpy.float32], "
                "old_values: numpy.typing.NDArray[numpy.float32], "
                "returns: numpy.typing.NDArray[numpy.float32], "
                "logits_gradient: numpy.typing.NDArray[numpy.float32], "
                "values_gradient: numpy.typing.NDArray[numpy.float32], clip_range: float, "
                "clip_range_vf: float, ent_coef: float) -> tuple[float, float, float, float, "
                "float]"),
        "Write the gradient of a minibatch's mean PPO loss for some of its rows.\n\n"
        "`logits` and `values` belong to `rows`, which are indices into the arrays of the "
        "rollout.\n\n"
        "Returns:\n"
        "    Contribution of the rows to the means of policy loss, value loss, entropy, KL "
        "divergence and share of clipped ratios.");

  nb::class_<FeatureEncoder>(m, "FeatureEncoder",
                             "Encodes observations and histories of many games as policy features.")
      .def(
          "__init__",
          [](FeatureEncoder* self, const std::vector<int>& choices, bool observation, bool scans,
             bool decoys, bool last_action, bool time, bool order, bool clock, bool restored,
             int horizon, std::size_t appended) {
            new (self) FeatureEncoder(
                choices, {observation, scans, decoys, last_action, time, order, clock, restored},
                horizon, appended);
          },
          nb::kw_only(), "choices"_a, "observation"_a, "scans"_a, "decoys"_a, "last_action"_a,
          "time"_a, "order"_a, "clock"_a, "restored"_a, "horizon"_a, "appended"_a)
      .def_prop_ro("size", &FeatureEncoder::size, "Features per game.")
      .def("update", &update_histories, "actions"_a, "observations"_a, "histories"_a,
           nb::sig("def update(self, actions: numpy.typing.NDArray[numpy.int64], observations: "
                   "numpy.typing.NDArray[numpy.float32], histories: "
                   "numpy.typing.NDArray[numpy.uint8]) -> None"),
           "Add to each history the action that was played and the observation that followed.")
      .def("encode", &encode_features, "observations"_a, "histories"_a, "features"_a,
           "masks"_a.none(),
           nb::sig("def encode(self, observations: numpy.typing.NDArray[numpy.float32], "
                   "histories: numpy.typing.NDArray[numpy.uint8], "
                   "features: numpy.typing.NDArray[numpy.float32], "
                   "masks: numpy.typing.NDArray[numpy.uint8] | None) -> None"),
           "Write one row of features and, unless `masks` is None, one row of action masks per "
           "game.\n\n"
           "Raises:\n    ValueError: a history is not one that `update` makes.");
}

}  // namespace cagepool
