// Python bindings of policy features, sampling and the PPO loss.

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/module.hpp"
#include "bindings/policy_arrays.hpp"
#include "policy/encoder.hpp"
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

/// An array of `rows` x `columns` values, copied.
template <class Value>
std::vector<Value> table_of(nb::handle array, const char* name, std::size_t rows,
                            std::size_t columns) {
  const Rows<const Value> table(array, name);
  table.check_rows(rows);
  table.check_columns(columns);
  return copy_of(table.span());
}

std::vector<LayoutAction> actions_of(const std::vector<std::uint8_t>& kinds,
                                     const std::vector<int>& places, std::size_t slots) {
  check(kinds.size() == places.size(), "there must be a slot for every action");
  std::vector<LayoutAction> actions;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const int decoy = kinds[i] - kind_bit(BlueKind::kDecoy, 0);
    check(decoy < kDecoyCount && (decoy >= 0 || kinds[i] <= static_cast<int>(BlueKind::kMisinform)),
          "kinds of actions must be those of `kind_bit`");
    check(std::cmp_less(places[i], slots), "the slot of an action must be one of the layout");
    actions.push_back({.kind = decoy >= 0 ? BlueKind::kDecoy : static_cast<BlueKind>(kinds[i]),
                       .slot = static_cast<Byte>(std::max(places[i], 0)),
                       .decoy = static_cast<Byte>(std::max(decoy, 0))});
  }
  return actions;
}

FeatureGroups groups_of(const std::vector<std::string>& names) {
  FeatureGroups groups{};
  for (const std::string& name : names) {
    const auto* const group = std::ranges::find(
        kFeatureGroups, name, [](const auto& entry) { return std::string(entry.first); });
    check(group != kFeatureGroups.end(), "groups must be among `feature_groups`");
    groups.*(group->second) = true;
  }
  return groups;
}

void make_encoder(FeatureEncoder* self, std::size_t slots,
                  const std::vector<std::uint8_t>& action_kinds,
                  const std::vector<int>& action_slots, const std::vector<std::int64_t>& choices,
                  nb::handle possible, nb::handle fitting, nb::handle misinforms,
                  nb::handle revealed_by, nb::handle facts, nb::handle sizes,
                  const std::vector<std::string>& groups, bool blocks, int horizon,
                  std::size_t appended) {
  check(slots > 0 && slots <= kMaxHosts, "slots must be from 1 to 64");
  const std::size_t scenarios = Rows<const std::uint8_t>(possible, "possible").row_count();
  check(scenarios > 0 && scenarios <= 65535, "there must be from 1 to 65535 scenarios");
  const Rows<const float> fact_rows(facts, "facts");
  fact_rows.check_rows(scenarios * slots);
  check_range(choices, action_kinds.size(), "a choice must be an action of the layout");
  new (self) FeatureEncoder(
      {.slots = slots,
       .actions = actions_of(action_kinds, action_slots, slots),
       .choices = choices,
       .possible = table_of<std::uint8_t>(possible, "possible", scenarios, choices.size()),
       .fitting = table_of<std::uint8_t>(fitting, "fitting", scenarios, slots),
       .misinforms = table_of<std::uint8_t>(misinforms, "misinforms", scenarios, slots),
       .revealed_by = table_of<WideMask>(revealed_by, "revealed_by", scenarios, slots),
       .facts = copy_of(fact_rows.span()),
       .sizes = table_of<float>(sizes, "sizes", scenarios, 2)},
      groups_of(groups), blocks ? EncoderForm::kBlocks : EncoderForm::kFlat, horizon, appended);
}

void update_histories(const FeatureEncoder& self, nb::handle actions, nb::handle observations,
                      nb::handle histories) {
  const Buffer history_rows(histories, "histories");
  const std::span<History> games = history_rows.rows<History>();
  const Row<const std::int64_t> blue(actions, "actions");
  const Rows<const float> observed(observations, "observations");
  check_rows(games.size(), blue, observed);
  observed.check_columns(self.observation_size());
  const std::vector<std::int64_t> played = copy_of(blue.span());
  check_range(played, self.tables().actions.size(), "an action must be one of the layout");
  std::vector<History> changed = copy_of<History>(games);
  check_histories(self, changed);
  self.update(played, observed.span(), changed);
  std::ranges::copy(changed, games.begin());
}

void encode_features(const FeatureEncoder& self, nb::handle observations, nb::handle histories,
                     nb::handle features, nb::handle masks) {
  const Buffer history_rows(histories, "histories", Buffer::Access::kRead);
  const std::vector<History> games = copy_of(history_rows.rows<const History>());
  const Rows<const float> observed(observations, "observations");
  const Rows<float> encoded(features, "features");
  check_rows(games.size(), observed, encoded);
  observed.check_columns(self.observation_size());
  encoded.check_columns(self.size());
  const Masks allowed(masks, games.size(), self.choices());
  check_histories(self, games);
  const nb::gil_scoped_release release;
  self.encode(observed.span(), games, encoded.span(), allowed.span());
}

}  // namespace

void bind_policy(nb::module_& m) {
  m.attr("SHARED_FEATURES") = kSharedFeatures;
  m.def(
      "feature_groups",
      [] {
        std::vector<std::string> names;
        names.reserve(kFeatureGroups.size());
        for (const auto& [name, group] : kFeatureGroups) names.emplace_back(name);
        return names;
      },
      "Names of the groups of features, in the order of a flat row.");
  m.def(
      "slot_features",
      [] {
        return std::vector<std::tuple<std::string, std::size_t>>(kSlotFeatures.begin(),
                                                                 kSlotFeatures.end());
      },
      "Features of a slot after the facts of its host: names and numbers, in their order.");
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
      .def("__init__", &make_encoder, nb::kw_only(), "slots"_a, "action_kinds"_a, "action_slots"_a,
           "choices"_a, "possible"_a, "fitting"_a, "misinforms"_a, "revealed_by"_a, "facts"_a,
           "sizes"_a, "groups"_a, "blocks"_a, "horizon"_a, "appended"_a,
           nb::sig("def __init__(self, *, slots: int, action_kinds: collections.abc.Sequence[int], "
                   "action_slots: collections.abc.Sequence[int], "
                   "choices: collections.abc.Sequence[int], "
                   "possible: numpy.typing.NDArray[numpy.uint8], "
                   "fitting: numpy.typing.NDArray[numpy.uint8], "
                   "misinforms: numpy.typing.NDArray[numpy.uint8], "
                   "revealed_by: numpy.typing.NDArray[numpy.uint64], "
                   "facts: numpy.typing.NDArray[numpy.float32], "
                   "sizes: numpy.typing.NDArray[numpy.float32], "
                   "groups: collections.abc.Sequence[str], blocks: bool, horizon: int, "
                   "appended: int) -> None"),
           "Encode the games of some scenarios in one layout.\n\n"
           "Args:\n"
           "    slots: Host slots of the layout.\n"
           "    action_kinds: `kind_bit` of every action.\n"
           "    action_slots: Its slot, or -1.\n"
           "    choices: Action of each choice of the policy.\n"
           "    possible: Whether a choice can work at some time, (scenarios, choices).\n"
           "    fitting: Decoys that the host in a slot can take, as bits, (scenarios, slots).\n"
           "    misinforms: Misinforms that find a free port there, (scenarios, slots).\n"
           "    revealed_by: Slots of the hosts that reveal it, as bits, (scenarios, slots).\n"
           "    facts: Features of a slot that never change, (scenarios * slots, facts).\n"
           "    sizes: Shared features of a scenario, (scenarios, 2).\n"
           "    groups: Groups of features, among `feature_groups`.\n"
           "    blocks: Shared features, then a block per slot; else group by group.\n"
           "    horizon: Episode length behind the features of time.\n"
           "    appended: Features that the caller appends.")
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
