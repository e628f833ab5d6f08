// Python bindings of the networks: PPO's gradient steps, values and sampling.

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "bindings/module.hpp"
#include "bindings/policy_arrays.hpp"
#include "policy/mlp_actor.hpp"
#include "policy/mlp_learner.hpp"

using namespace nanobind::literals;

namespace cagepool {
namespace {

using LossTuple = std::tuple<double, double, double, double, double>;
using LayerTuple = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;

LossTuple as_tuple(const PpoLossParts& parts) {
  return {parts.policy, parts.value, parts.entropy, parts.kl, parts.clipped};
}

/// Offset, inputs, outputs and stride per layer.
std::vector<LayerTuple> layer_tuples(const MlpShape& shape, std::size_t offset = 0) {
  std::vector<LayerTuple> layers;
  for (const DenseLayer& layer : shape.layers())
    layers.emplace_back(offset + layer.offset, layer.inputs, layer.outputs, layer.stride());
  return layers;
}

std::vector<LayerTuple> learner_layers(const MlpLearner& self) {
  std::vector<LayerTuple> layers = layer_tuples(self.actor());
  for (const LayerTuple& layer : layer_tuples(self.critic(), self.actor().size()))
    layers.push_back(layer);
  return layers;
}

/// Arrays of a minibatch; their rows and choices are checked copies.
class MinibatchArrays {
 public:
  MinibatchArrays(const MlpLearner& learner, nb::handle rows, nb::handle features,
                  nb::handle critic_features, nb::handle masks, nb::handle chosen,
                  nb::handle log_probabilities, nb::handle advantages, nb::handle old_values,
                  nb::handle returns)
      : features_(features, "features"),
        critic_features_(critic_features, "critic_features"),
        chosen_(chosen, "chosen"),
        log_probabilities_(log_probabilities, "log_probabilities"),
        advantages_(advantages, "advantages"),
        old_values_(old_values, "old_values"),
        returns_(returns, "returns"),
        masks_(masks, features_.row_count(), learner.actor().outputs()) {
    check_rows(features_.row_count(), critic_features_, chosen_, log_probabilities_, advantages_,
               old_values_, returns_);
    features_.check_columns(learner.actor().inputs());
    critic_features_.check_columns(learner.critic().inputs());
    const Row<const std::int64_t> indices(rows, "rows");
    check(indices.row_count() > 0, "a minibatch must have rows");
    row_copy_ = copy_of(indices.span());
    check_range(row_copy_, features_.row_count(), "a row must be one of the rollout");
    chosen_copy_ = chosen_of_rows(chosen_.span(), row_copy_);
    check_range(chosen_copy_, learner.actor().outputs(), "a choice must be an output of the actor");
  }

  Minibatch minibatch() const {
    return {row_copy_,
            chosen_copy_,
            features_.span(),
            critic_features_.span(),
            {masks_.span(), log_probabilities_.span(), advantages_.span(), old_values_.span(),
             returns_.span()}};
  }

 private:
  Rows<const float> features_;
  Rows<const float> critic_features_;
  Row<const std::int64_t> chosen_;
  Row<const float> log_probabilities_;
  Row<const float> advantages_;
  Row<const float> old_values_;
  Row<const float> returns_;
  Masks masks_;
  std::vector<std::int64_t> row_copy_;
  std::vector<std::int64_t> chosen_copy_;
};

std::tuple<LossTuple, double> take_step(MlpLearner& self, nb::handle parameters, nb::handle exp_avg,
                                        nb::handle exp_avg_sq, nb::handle rows, nb::handle features,
                                        nb::handle critic_features, nb::handle masks,
                                        nb::handle chosen, nb::handle log_probabilities,
                                        nb::handle advantages, nb::handle old_values,
                                        nb::handle returns, float clip_range, float clip_range_vf,
                                        float ent_coef, double max_grad_norm, double learning_rate,
                                        std::int64_t steps) {
  const Row<float> weights(parameters, "parameters");
  const Row<float> means(exp_avg, "exp_avg");
  const Row<float> squares(exp_avg_sq, "exp_avg_sq");
  check_rows(self.size(), weights, means, squares);
  check(steps > 0, "steps must be at least 1");
  const MinibatchArrays arrays(self, rows, features, critic_features, masks, chosen,
                               log_probabilities, advantages, old_values, returns);
  const nb::gil_scoped_release release;
  const StepResult result =
      self.step({weights.span(), means.span(), squares.span()}, arrays.minibatch(),
                {{clip_range, clip_range_vf, ent_coef}, max_grad_norm, learning_rate, steps});
  return {as_tuple(result.loss), result.actor_norm};
}

LossTuple write_gradient(MlpLearner& self, nb::handle parameters, nb::handle gradient,
                         nb::handle rows, nb::handle features, nb::handle critic_features,
                         nb::handle masks, nb::handle chosen, nb::handle log_probabilities,
                         nb::handle advantages, nb::handle old_values, nb::handle returns,
                         float clip_range, float clip_range_vf, float ent_coef) {
  const Row<const float> weights(parameters, "parameters");
  const Row<float> slopes(gradient, "gradient");
  check_rows(self.size(), weights, slopes);
  const MinibatchArrays arrays(self, rows, features, critic_features, masks, chosen,
                               log_probabilities, advantages, old_values, returns);
  const nb::gil_scoped_release release;
  return as_tuple(self.write_gradient(weights.span(), arrays.minibatch(),
                                      {clip_range, clip_range_vf, ent_coef}, slopes.span()));
}

void write_values(MlpLearner& self, nb::handle parameters, nb::handle features, nb::handle values) {
  const Row<const float> weights(parameters, "parameters");
  const Rows<const float> inputs(features, "features");
  const Row<float> predicted(values, "values");
  check_rows(self.size(), weights);
  check_rows(inputs.row_count(), predicted);
  inputs.check_columns(self.critic().inputs());
  const nb::gil_scoped_release release;
  self.write_values(weights.span(), inputs.span(), predicted.span());
}

void sample(MlpActor& self, nb::handle parameters, nb::handle features, nb::handle masks,
            nb::handle uniforms, nb::handle chosen, nb::handle log_probabilities) {
  const Row<const float> weights(parameters, "parameters");
  const Rows<const float> inputs(features, "features");
  const Masks allowed(masks, inputs.row_count(), self.shape().outputs());
  const Row<const float> numbers(uniforms, "uniforms");
  const Row<std::int64_t> sampled(chosen, "chosen");
  const Row<float> logs(log_probabilities, "log_probabilities");
  check_rows(self.shape().size(), weights);
  check_rows(inputs.row_count(), numbers, sampled, logs);
  inputs.check_columns(self.shape().inputs());
  const nb::gil_scoped_release release;
  self.sample(weights.span(), inputs.span(), allowed.span(), numbers.span(),
              {sampled.span(), logs.span()});
}

void write_logits(MlpActor& self, nb::handle parameters, nb::handle features, nb::handle logits) {
  const Row<const float> weights(parameters, "parameters");
  const Rows<const float> inputs(features, "features");
  const Rows<float> outputs(logits, "logits");
  check_rows(self.shape().size(), weights);
  check_rows(inputs.row_count(), outputs);
  inputs.check_columns(self.shape().inputs());
  outputs.check_columns(self.shape().outputs());
  const nb::gil_scoped_release release;
  self.write_logits(weights.span(), inputs.span(), outputs.span());
}

}  // namespace

void bind_mlp(const nb::module_& m) {
  const std::string floats = "numpy.typing.NDArray[numpy.float32]";
  const std::string minibatch =
      "rows: numpy.typing.NDArray[numpy.int64], features: " + floats +
      ", critic_features: " + floats + ", masks: numpy.typing.NDArray[numpy.uint8] | None, " +
      "chosen: numpy.typing.NDArray[numpy.int64], log_probabilities: " + floats +
      ", advantages: " + floats + ", old_values: " + floats + ", returns: " + floats +
      ", clip_range: float, clip_range_vf: float, ent_coef: float";
  // Nanobind stores pointers to signatures.
  static const std::string step_signature =
      "def step(self, *, parameters: " + floats + ", exp_avg: " + floats +
      ", exp_avg_sq: " + floats + ", " + minibatch +
      ", max_grad_norm: float, learning_rate: float, steps: int) -> "
      "tuple[tuple[float, float, float, float, float], float]";
  static const std::string gradient_signature =
      "def write_gradient(self, *, parameters: " + floats + ", gradient: " + floats + ", " +
      minibatch + ") -> tuple[float, float, float, float, float]";
  static const std::string values_signature = "def write_values(self, parameters: " + floats +
                                              ", features: " + floats + ", values: " + floats +
                                              ") -> None";
  static const std::string sample_signature =
      "def sample(self, parameters: " + floats + ", features: " + floats +
      ", masks: numpy.typing.NDArray[numpy.uint8] | None, uniforms: " + floats +
      ", chosen: numpy.typing.NDArray[numpy.int64], log_probabilities: " + floats + ") -> None";
  static const std::string logits_signature = "def write_logits(self, parameters: " + floats +
                                              ", features: " + floats + ", logits: " + floats +
                                              ") -> None";
  nb::enum_<Activation>(m, "Activation")
      .value("TANH", Activation::kTanh)
      .value("RELU", Activation::kRelu);

  nb::class_<MlpLearner>(
      m, "MlpLearner",
      "Actor and critic, two MLPs: PPO's gradient steps and the critic's values.\n\n"
      "`parameters` are one array: those of the actor, then those of the critic; `layers` has the "
      "place of each layer. No result depends on the number of threads.")
      .def(
          "__init__",
          [](MlpLearner* self, const std::vector<int>& actor, const std::vector<int>& critic,
             Activation activation, int threads) {
            new (self) MlpLearner({actor, activation}, {critic, activation}, threads);
          },
          nb::kw_only(), "actor"_a, "critic"_a, "activation"_a, "threads"_a)
      .def_prop_ro("size", &MlpLearner::size, "Number of parameters, padding included.")
      .def_prop_ro("layers", &learner_layers,
                   "Offset, inputs, outputs and stride per layer: weights, (inputs, stride), then "
                   "biases, (stride).")
      .def("step", &take_step, nb::kw_only(), "parameters"_a, "exp_avg"_a, "exp_avg_sq"_a, "rows"_a,
           "features"_a, "critic_features"_a, "masks"_a.none(), "chosen"_a, "log_probabilities"_a,
           "advantages"_a, "old_values"_a, "returns"_a, "clip_range"_a, "clip_range_vf"_a,
           "ent_coef"_a, "max_grad_norm"_a, "learning_rate"_a, "steps"_a,
           nb::sig(step_signature.c_str()),
           "Take Adam's step number `steps` on the minibatch of these rows.\n\n"
           "Returns:\n"
           "    Means of policy loss, value loss, entropy, KL divergence and share of clipped "
           "ratios; norm of the actor's gradient before clipping.")
      .def("write_gradient", &write_gradient, nb::kw_only(), "parameters"_a, "gradient"_a, "rows"_a,
           "features"_a, "critic_features"_a, "masks"_a.none(), "chosen"_a, "log_probabilities"_a,
           "advantages"_a, "old_values"_a, "returns"_a, "clip_range"_a, "clip_range_vf"_a,
           "ent_coef"_a, nb::sig(gradient_signature.c_str()),
           "Write the gradient of the minibatch's mean loss, before clipping; returns the means "
           "as `step`.")
      .def("write_values", &write_values, "parameters"_a, "features"_a, "values"_a,
           nb::sig(values_signature.c_str()), "Write the critic's value of each row of features.");

  nb::class_<MlpActor>(m, "MlpActor",
                       "Actor of rollouts, an MLP. No result depends on the number of threads.")
      .def(
          "__init__",
          [](MlpActor* self, const std::vector<int>& widths, Activation activation, int threads) {
            new (self) MlpActor({widths, activation}, threads);
          },
          nb::kw_only(), "widths"_a, "activation"_a, "threads"_a)
      .def_prop_ro(
          "size", [](const MlpActor& self) { return self.shape().size(); },
          "Number of parameters, padding included.")
      .def_prop_ro(
          "layers", [](const MlpActor& self) { return layer_tuples(self.shape()); },
          "Offset, inputs, outputs and stride per layer, as in `MlpLearner`.")
      .def("sample", &sample, "parameters"_a, "features"_a, "masks"_a.none(), "uniforms"_a,
           "chosen"_a, "log_probabilities"_a, nb::sig(sample_signature.c_str()),
           "Sample one choice per row of features, by one uniform number in [0, 1) per row.\n\n"
           "Raises:\n    ValueError: a row allows no choice, or its logits are not numbers.")
      .def("write_logits", &write_logits, "parameters"_a, "features"_a, "logits"_a,
           nb::sig(logits_signature.c_str()), "Write the logits of each row of features.");
}

}  // namespace cagepool
