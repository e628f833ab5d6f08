// Python bindings of the batch of games and of the replay of traces.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/buffers.hpp"
#include "bindings/module.hpp"
#include "bindings/policy_arrays.hpp"
#include "core/batch.hpp"
#include "core/trace.hpp"
#include "policy/rollout.hpp"
#include "policy/true_state_features.hpp"

using namespace nanobind::literals;

namespace cagepool {

template <>
struct RowType<Counters> {
  using Scalar = std::int32_t;
  static constexpr std::size_t kColumns = kCounterCount;
};

namespace {

template <class Element>
void set_array(const Buffer& buffer, std::span<Element>& array) {
  array = buffer.rows<Element>();
}
void set_array(const Buffer& buffer, ObservationArray& array) {
  array = {};
  if (buffer.has_type<std::uint8_t>()) {
    array.bytes = buffer.rows<Observation<std::uint8_t>>();
  } else {
    array.floats = buffer.rows<Observation<float>>();
  }
}

/// The arrays that a batch writes, by name. They stay alive as long as this lives.
class OutputBuffers {
 public:
  explicit OutputBuffers(const nb::dict& arrays) {
    for_each_output([&](const auto& field) {
      if (!arrays.contains(field.name))
        throw std::invalid_argument("outputs must have an array `" + std::string(field.name) + "`");
      const auto entry =
          buffers_.emplace(field.name, std::make_unique<Buffer>(arrays[field.name], field.name));
      set_array(*entry.first->second, spans_.*field.array);
    });
    for (const auto& [name, array] : arrays) {
      if (!buffers_.contains(nb::cast<std::string>(name)))
        throw std::invalid_argument("outputs must be arrays of a batch, got `" +
                                    nb::cast<std::string>(name) + "`");
    }
  }

  const Outputs& spans() const { return spans_; }
  void replace(const char* name, std::unique_ptr<Buffer> buffer) {
    buffers_[name] = std::move(buffer);
  }

 private:
  std::map<std::string_view, std::unique_ptr<Buffer>> buffers_;
  Outputs spans_;
};

/// Name, possible NumPy types, columns and condition of one output.
using OutputDescription =
    std::tuple<const char*, std::vector<std::string>, std::size_t, OutputCondition>;

template <class Element>
OutputDescription description(const OutputField<std::span<Element>>& field) {
  return {field.name,
          {numpy_type<typename RowType<Element>::Scalar>()},
          RowType<Element>::kColumns,
          field.condition};
}
OutputDescription description(const OutputField<ObservationArray>& field) {
  return {field.name,
          {numpy_type<float>(), numpy_type<std::uint8_t>()},
          kObservationSize,
          field.condition};
}

std::vector<OutputDescription> output_fields() {
  std::vector<OutputDescription> fields;
  for_each_output([&](const auto& field) { fields.push_back(description(field)); });
  return fields;
}

std::vector<GameConfig> configs_of(nb::handle array) {
  const Buffer buffer(array, "configs", Buffer::Access::kRead);
  const auto configs = buffer.rows<const GameConfig>();
  return {configs.begin(), configs.end()};
}

// With fewer games, a step takes less time than releasing and acquiring the GIL.
constexpr std::size_t kMinGamesToReleaseGil = 16;

class BoundBatch {
 public:
  BoundBatch(nb::handle configs, const nb::dict& outputs, Autoreset autoreset,
             const ComplianceRule& rule, int threads)
      : buffers_(outputs),
        batch_(configs_of(configs), buffers_.spans(), autoreset, rule, threads) {}

  Batch& batch() { return batch_; }

  std::size_t step(nb::handle actions, nb::handle red_actions, nb::handle ids) {
    const IntRow blue(actions, "actions");
    const IntRow red(red_actions, "red_actions", true);
    const IntRow games(ids, "ids", true);
    const auto chosen = games.is_given() ? std::optional(games.span()) : std::nullopt;
    std::optional<nb::gil_scoped_release> release;
    if (blue.span().size() >= kMinGamesToReleaseGil) release.emplace();
    return batch_.step(blue.span(), red.span(), chosen);
  }

  void redirect_observations(nb::handle observations) {
    auto buffer = std::make_unique<Buffer>(observations, "observations");
    ObservationArray array;
    set_array(*buffer, array);
    batch_.redirect_observations(array);
    buffers_.replace("observations", std::move(buffer));
  }

 private:
  OutputBuffers buffers_;
  Batch batch_;
};

/// Copy a row of features and append those of the true state, for every game.
void write_critic_features(BoundBatch& self, nb::handle features, nb::handle critic_features,
                           bool final) {
  const Rows<const float> seen(features, "features");
  const Rows<float> out(critic_features, "critic_features");
  const std::size_t games = self.batch().games();
  const std::size_t own = seen.column_count();
  const std::size_t added = true_state_feature_count();
  seen.check_rows(games);
  out.check_rows(games);
  out.check_columns(own + added);
  const std::span<const float> source = seen.span();
  const std::span<float> target = out.span();
  const nb::gil_scoped_release release;
  self.batch().read_states([&](const BatchStates& states) {
    if (final && states.final_games.empty())
      throw std::invalid_argument("last states of episodes need autoreset same_step");
    for (std::size_t game = 0; game < games; ++game) {
      const std::span<float> row = target.subspan(game * (own + added), own + added);
      std::ranges::copy(source.subspan(game * own, own), row.begin());
      write_true_state_features((final ? states.final_games : states.games)[game],
                                (final ? states.final_true_states : states.true_states)[game],
                                row.subspan(own));
    }
  });
}

/// Episodes of a rollout, copied: other threads may change the arrays meanwhile.
class EpisodeArrays {
 public:
  EpisodeArrays(std::size_t games, nb::handle histories, nb::handle returns, nb::handle lengths)
      : histories_(histories, "histories"),
        returns_(returns, "returns"),
        lengths_(lengths, "lengths"),
        history_copy_(copy_of(histories_.rows<const History>())),
        return_copy_(copy_of<double>(returns_.span())),
        length_copy_(copy_of<std::int64_t>(lengths_.span())) {
    histories_.check_rows(games);
    check_rows(games, returns_, lengths_);
    check(std::ranges::all_of(history_copy_, is_possible),
          "histories must be those of `update`, with orders below 120");
  }

  RolloutEpisodes episodes() { return {history_copy_, return_copy_, length_copy_}; }
  void check_lengths(std::size_t steps, std::size_t limit) const {
    for (const std::int64_t length : length_copy_)
      check(length >= 0 && static_cast<std::size_t>(length) + steps <= limit,
            "there must be a reward weight for every step");
  }
  void write_back() const {
    std::ranges::copy(history_copy_, histories_.rows<History>().begin());
    std::ranges::copy(return_copy_, returns_.span().begin());
    std::ranges::copy(length_copy_, lengths_.span().begin());
  }

 private:
  Buffer histories_;
  Row<double> returns_;
  Row<std::int64_t> lengths_;
  std::vector<History> history_copy_;
  std::vector<double> return_copy_;
  std::vector<std::int64_t> length_copy_;
};

void play_steps(BoundBatch& self, MlpActor& actor, nb::handle parameters,
                const FeatureEncoder& encoder, const std::vector<std::uint8_t>& actions,
                std::size_t steps, nb::handle uniforms, nb::handle features, nb::handle masks,
                nb::handle critic_features, nb::handle chosen, nb::handle log_probabilities,
                nb::handle rewards, nb::handle histories, nb::handle returns, nb::handle lengths,
                nb::handle reward_weights, double reward_scale) {
  const std::size_t games = self.batch().games();
  const Row<const float> weights(parameters, "parameters");
  check_rows(actor.shape().size(), weights);
  check(actions.size() == encoder.choices() && actions.size() == actor.shape().outputs() &&
            std::ranges::all_of(actions, [](std::uint8_t action) { return action < kActionCount; }),
        "there must be one action below 145 per choice of the encoder and output of the actor");
  check(encoder.size() == actor.shape().inputs(),
        "the features of the encoder must be the inputs of the actor");
  const Rows<float> encoded(features, "features");
  encoded.check_columns(encoder.size());
  const Masks allowed(masks, (steps + 1) * games, encoder.choices());
  std::optional<Rows<float>> critic;
  if (!critic_features.is_none()) {
    critic.emplace(critic_features, "critic_features");
    critic->check_columns(encoder.size() + true_state_feature_count());
    critic->check_rows((steps + 1) * games);
  }
  const Row<const float> numbers(uniforms, "uniforms");
  const Row<std::int64_t> choices(chosen, "chosen");
  const Row<float> logs(log_probabilities, "log_probabilities");
  const Row<float> scaled(rewards, "rewards");
  check_rows((steps + 1) * games, encoded);
  check_rows(steps * games, numbers, choices, logs, scaled);
  EpisodeArrays arrays(games, histories, returns, lengths);
  std::optional<Row<const float>> by_step;
  if (!reward_weights.is_none()) {
    by_step.emplace(reward_weights, "reward_weights");
    arrays.check_lengths(steps, by_step->row_count());
  }
  {
    const nb::gil_scoped_release release;
    play_rollout(self.batch(), {actor, weights.span(), encoder, actions},
                 {by_step ? by_step->span() : std::span<const float>(), reward_scale},
                 arrays.episodes(),
                 {encoded.span(), allowed.span(), critic ? critic->span() : std::span<float>(),
                  numbers.span(), choices.span(), logs.span(), scaled.span()},
                 steps);
  }
  arrays.write_back();
}

nb::bytes save_snapshot(BoundBatch& self, std::int64_t id) {
  const std::vector<std::uint8_t> bytes = self.batch().save(id);
  return nb::bytes(bytes.data(), bytes.size());
}

void restore_games(BoundBatch& self, nb::handle ids, const nb::typed<nb::list, nb::bytes>& blobs) {
  std::vector<Blob> views;
  for (const nb::handle item : blobs) {
    if (!PyBytes_Check(item.ptr())) {
      PyErr_Format(PyExc_TypeError, "a snapshot must be bytes, got %s", short_repr(item).c_str());
      throw nb::python_error();
    }
    const auto blob = nb::borrow<nb::bytes>(item);
    views.emplace_back(static_cast<const std::uint8_t*>(blob.data()), blob.size());
  }
  self.batch().restore(IntRow(ids, "ids").span(), views);
}

nb::bytes session_log(BoundBatch& self, std::int64_t id) {
  const std::vector<Session> log = self.batch().session_log(id);
  return nb::bytes(log.data(), log.size());
}

void replay_trace(nb::handle episodes, nb::handle inputs, nb::handle rows) {
  const Buffer episode_rows(episodes, "episodes", Buffer::Access::kRead);
  const Buffer input_rows(inputs, "inputs", Buffer::Access::kRead);
  const Buffer step_rows(rows, "rows");
  replay(episode_rows.rows<const TraceEpisode>(), input_rows.rows<const TraceInput>(),
         step_rows.rows<TraceRow>());
}

}  // namespace

void bind_batch(nb::module_& m) {
  nb::enum_<OutputCondition>(m, "OutputCondition", "Batches that have an output.")
      .value("ALWAYS", OutputCondition::kAlways)
      .value("SAME_STEP_RESET", OutputCondition::kSameStepReset)
      .value("ORDER", OutputCondition::kOrder);
  m.attr("TRUE_STATE_FEATURES") = true_state_feature_count();
  m.def("output_fields", &output_fields,
        "Arrays that a batch writes: name, possible NumPy types, columns, condition.");
  m.def("replay", &replay_trace, nb::kw_only(), "episodes"_a, "inputs"_a, "rows"_a,
        nb::sig("def replay(*, episodes: numpy.typing.NDArray[numpy.uint8], "
                "inputs: numpy.typing.NDArray[numpy.uint8], "
                "rows: numpy.typing.NDArray[numpy.uint8]) -> None"),
        "Replay recorded games and write one row per step. Arguments are structs as rows of bytes: "
        "trace_episode, trace_input and trace_row of `struct_layouts`.");

  nb::class_<BoundBatch>(m, "Batch", "Many games that are stepped together.")
      .def(
          "__init__",
          [](BoundBatch* self, nb::handle configs, const nb::dict& outputs, Autoreset autoreset,
             Knowledge knowledge, Definition definition, double lambda, int threads) {
            new (self) BoundBatch(configs, outputs, autoreset,
                                  ComplianceRule::make(knowledge, definition, lambda), threads);
          },
          nb::kw_only(), "configs"_a, "outputs"_a, "autoreset"_a, "knowledge"_a, "definition"_a,
          "alignment_lambda"_a, "threads"_a,
          nb::sig("def __init__(self, *, configs: numpy.typing.NDArray[numpy.uint8], "
                  "outputs: dict[str, numpy.typing.NDArray[typing.Any]], autoreset: Autoreset, "
                  "knowledge: Knowledge, definition: Definition, alignment_lambda: float, "
                  "threads: int) -> None"),
          "Create a batch that writes to these arrays.\n\n"
          "Args:\n"
          "    configs: One game_config of `struct_layouts` per game, as rows of bytes.\n"
          "    outputs: All arrays of `output_fields`, by name.\n\n"
          "Raises:\n"
          "    TypeError: an array has another type or rank.\n"
          "    ValueError: an array is missing, unknown or has another shape, or a value is not "
          "valid.")
      .def_prop_ro("games", [](BoundBatch& self) { return self.batch().games(); })
      .def_prop_ro("threads", [](BoundBatch& self) { return self.batch().threads(); })
      .def("step", &BoundBatch::step, "actions"_a.none(), "red_actions"_a.none() = nb::none(),
           "ids"_a.none() = nb::none(),
           nb::sig("def step(self, actions: numpy.typing.NDArray[numpy.int64], red_actions: "
                   "numpy.typing.NDArray[numpy.int64] | None = None, ids: "
                   "numpy.typing.NDArray[numpy.int64] | None = None) -> int"),
           "Play one action in every game, or in the games `ids`; returns how many episodes "
           "ended.\n\n"
           "Raises:\n    IndexError: an action or a game is out of range; no game was stepped.")
      .def(
          "reset",
          [](BoundBatch& self, nb::handle ids, nb::handle seeds) {
            const IntRow games(ids, "ids");
            if (seeds.is_none()) return self.batch().reset(games.span(), std::nullopt);
            self.batch().reset(games.span(), Row<const std::uint64_t>(seeds, "seeds").span());
          },
          "ids"_a.none(), "seeds"_a.none() = nb::none(),
          nb::sig("def reset(self, ids: numpy.typing.NDArray[numpy.int64], "
                  "seeds: numpy.typing.NDArray[numpy.uint64] | None = None) -> None"),
          "Start new episodes; with seeds, the first ones of new random streams.")
      .def(
          "reseed",
          [](BoundBatch& self, nb::handle ids, nb::handle seeds) {
            self.batch().reseed(IntRow(ids, "ids").span(),
                                Row<const std::uint64_t>(seeds, "seeds").span());
          },
          "ids"_a.none(), "seeds"_a.none(),
          nb::sig("def reseed(self, ids: numpy.typing.NDArray[numpy.int64], "
                  "seeds: numpy.typing.NDArray[numpy.uint64]) -> None"),
          "Switch games to new random streams from their current step on.")
      .def("redirect_observations", &BoundBatch::redirect_observations, "observations"_a,
           nb::sig(
               "def redirect_observations(self, observations: numpy.typing.NDArray[typing.Any]) -> "
               "None"),
           "Write observations to another array of the same type and shape from now on.")
      .def("save", &save_snapshot, "id"_a, "Return a snapshot of one game.")
      .def("restore", &restore_games, "ids"_a.none(), "blobs"_a,
           nb::sig("def restore(self, ids: numpy.typing.NDArray[numpy.int64], "
                   "blobs: list[bytes]) -> None"),
           "Replace games by snapshots; no game changes if any snapshot is refused.")
      .def("session_log", &session_log, "id"_a,
           "Red's sessions of the episode, one byte each, in order of creation.")
      .def(
          "stream_key", [](BoundBatch& self, std::int64_t id) { return self.batch().game(id).key; },
          "id"_a, "Key of the random stream of the game's episode.")
      .def(
          "steps", [](BoundBatch& self, std::int64_t id) { return self.batch().game(id).step; },
          "id"_a, "Steps played in the game's episode.")
      .def("write_critic_features", &write_critic_features, "features"_a, "critic_features"_a,
           "final"_a = false,
           nb::sig("def write_critic_features(self, features: numpy.typing.NDArray[numpy.float32], "
                   "critic_features: numpy.typing.NDArray[numpy.float32], final: bool = False) -> "
                   "None"),
           "Write the input of a critic, one row per game: the given features, then "
           "TRUE_STATE_FEATURES of the true state.\n\n"
           "Args:\n"
           "    final: Write the last states of the last episodes that ended; autoreset same_step "
           "only.")
      .def("play_rollout", &play_steps, nb::kw_only(), "actor"_a, "parameters"_a, "encoder"_a,
           "actions"_a, "steps"_a, "uniforms"_a, "features"_a, "masks"_a.none(),
           "critic_features"_a.none(), "chosen"_a, "log_probabilities"_a, "rewards"_a,
           "histories"_a, "returns"_a, "lengths"_a, "reward_weights"_a.none(), "reward_scale"_a,
           nb::sig("def play_rollout(self, *, actor: MlpActor, parameters: "
                   "numpy.typing.NDArray[numpy.float32], encoder: FeatureEncoder, actions: "
                   "collections.abc.Sequence[int], steps: int, uniforms: "
                   "numpy.typing.NDArray[numpy.float32], features: "
                   "numpy.typing.NDArray[numpy.float32], masks: "
                   "numpy.typing.NDArray[numpy.uint8] | None, critic_features: "
                   "numpy.typing.NDArray[numpy.float32] | None, chosen: "
                   "numpy.typing.NDArray[numpy.int64], log_probabilities: "
                   "numpy.typing.NDArray[numpy.float32], rewards: "
                   "numpy.typing.NDArray[numpy.float32], histories: "
                   "numpy.typing.NDArray[numpy.uint8], returns: "
                   "numpy.typing.NDArray[numpy.float64], lengths: "
                   "numpy.typing.NDArray[numpy.int64], reward_weights: "
                   "numpy.typing.NDArray[numpy.float32] | None, reward_scale: float) -> None"),
           "Play `steps` steps in every game with an actor, on the actor's threads.\n\n"
           "The arrays are those of a rollout: one row per step and game, with those of one step "
           "more in `features`, `masks` and `critic_features`.\n\n"
           "Raises:\n"
           "    ValueError: an episode would end with these steps, or an array does not fit.")
      .def(
          "write_trace_rows",
          [](BoundBatch& self, nb::handle rows) {
            self.batch().write_trace_rows(Buffer(rows, "rows").rows<TraceRow>());
          },
          "rows"_a,
          nb::sig("def write_trace_rows(self, rows: numpy.typing.NDArray[numpy.uint8]) -> None"),
          "Write the state of every game: the fields `s_*` of one trace row per game.");
}

}  // namespace cagepool
