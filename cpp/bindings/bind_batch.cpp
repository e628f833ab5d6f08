// Python bindings of batches of games and of the replay of traces.

#include "bindings/bound_batch.hpp"
#include "bindings/module.hpp"
#include "bindings/policy_arrays.hpp"
#include "core/trace.hpp"
#include "policy/rollout.hpp"
#include "policy/true_state_features.hpp"

using namespace nanobind::literals;

namespace cagepool {
namespace {

using Cage2Batch = BoundBatch<Cage2>;
using ScenarioBatch = BoundBatch<TableNetwork>;

/// Copy a row of features and append those of the true state, for every game.
void write_critic_features(Cage2Batch& self, nb::handle features, nb::handle critic_features,
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

void play_steps(Cage2Batch& self, MlpActor& actor, nb::handle parameters,
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

template <class Network>
nb::bytes save_snapshot(BoundBatch<Network>& self, std::int64_t id) {
  const std::vector<std::uint8_t> bytes = self.batch().save(id);
  return nb::bytes(bytes.data(), bytes.size());
}

template <class Network>
void restore_games(BoundBatch<Network>& self, nb::handle ids,
                   const nb::typed<nb::list, nb::bytes>& blobs) {
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

template <class Network>
nb::bytes session_log(BoundBatch<Network>& self, std::int64_t id) {
  const auto log = self.batch().session_log(id);
  return nb::bytes(log.data(), log.size() * sizeof(typename Network::Session));
}

std::vector<ScenarioTables> tables_of(nb::handle array) {
  const Buffer buffer(array, "scenarios", Buffer::Access::kRead);
  const auto tables = buffer.rows<const ScenarioTables>();
  return {tables.begin(), tables.end()};
}

template <class Network>
void replay_rows(const typename Network::Scenarios& scenarios, nb::handle episodes,
                 nb::handle inputs, nb::handle rows) {
  const Buffer episode_rows(episodes, "episodes", Buffer::Access::kRead);
  const Buffer input_rows(inputs, "inputs", Buffer::Access::kRead);
  const Buffer step_rows(rows, "rows");
  replay<Network>(scenarios, episode_rows.rows<const TraceEpisode>(),
                  input_rows.rows<const TraceInput>(), step_rows.rows<BasicTraceRow<Network>>());
}

void replay_trace(nb::handle episodes, nb::handle inputs, nb::handle rows) {
  replay_rows<Cage2>({}, episodes, inputs, rows);
}

void replay_scenario(nb::handle scenario, const std::vector<std::uint8_t>& kinds,
                     nb::handle episodes, nb::handle inputs, nb::handle rows) {
  std::vector<ScenarioTables> tables = tables_of(scenario);
  check(tables.size() == 1, "a replay must have one scenario");
  const std::size_t hosts = tables[0].host_count;
  const auto networks = make_networks(std::move(tables), kinds, hosts, false);
  replay_rows<TableNetwork>(networks.scenarios(), episodes, inputs, rows);
}

/// Methods that batches of all networks have.
template <class Network>
void bind_games(nb::class_<BoundBatch<Network>>& batch) {
  using Self = BoundBatch<Network>;
  batch.def_prop_ro("games", [](Self& self) { return self.batch().games(); })
      .def_prop_ro("threads", [](Self& self) { return self.batch().threads(); })
      .def("step", &Self::step, "actions"_a.none(), "red_actions"_a.none() = nb::none(),
           "ids"_a.none() = nb::none(),
           nb::sig("def step(self, actions: numpy.typing.NDArray[numpy.int64], red_actions: "
                   "numpy.typing.NDArray[numpy.int64] | None = None, ids: "
                   "numpy.typing.NDArray[numpy.int64] | None = None) -> int"),
           "Play one action in every game, or in the games `ids`; returns how many episodes "
           "ended.\n\n"
           "Raises:\n    IndexError: an action or a game is out of range; no game was stepped.")
      .def(
          "reset",
          [](Self& self, nb::handle ids, nb::handle seeds) {
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
          [](Self& self, nb::handle ids, nb::handle seeds) {
            self.batch().reseed(IntRow(ids, "ids").span(),
                                Row<const std::uint64_t>(seeds, "seeds").span());
          },
          "ids"_a.none(), "seeds"_a.none(),
          nb::sig("def reseed(self, ids: numpy.typing.NDArray[numpy.int64], "
                  "seeds: numpy.typing.NDArray[numpy.uint64]) -> None"),
          "Switch games to new random streams from their current step on.")
      .def("redirect_observations", &Self::redirect_observations, "observations"_a,
           nb::sig(
               "def redirect_observations(self, observations: numpy.typing.NDArray[typing.Any]) -> "
               "None"),
           "Write observations to another array of the same type and shape from now on.")
      .def("save", &save_snapshot<Network>, "id"_a, "Return a snapshot of one game.")
      .def("restore", &restore_games<Network>, "ids"_a.none(), "blobs"_a,
           nb::sig("def restore(self, ids: numpy.typing.NDArray[numpy.int64], "
                   "blobs: list[bytes]) -> None"),
           "Replace games by snapshots; no game changes if any snapshot is refused.")
      .def("session_log", &session_log<Network>, "id"_a,
           "Red's sessions of the episode, in order of creation: one byte each, two in a batch of "
           "any "
           "networks.")
      .def(
          "stream_key", [](Self& self, std::int64_t id) { return self.batch().game(id).key; },
          "id"_a, "Key of the random stream of the game's episode.")
      .def(
          "steps", [](Self& self, std::int64_t id) { return self.batch().game(id).step; }, "id"_a,
          "Steps played in the game's episode.")
      .def(
          "write_trace_rows",
          [](Self& self, nb::handle rows) {
            self.batch().write_trace_rows(
                Buffer(rows, "rows").template rows<BasicTraceRow<Network>>());
          },
          "rows"_a,
          nb::sig("def write_trace_rows(self, rows: numpy.typing.NDArray[numpy.uint8]) -> None"),
          "Write the state of every game: the fields `s_*` of one trace row per game.");
}

}  // namespace

void bind_batch(nb::module_& m) {
  nb::enum_<OutputCondition>(m, "OutputCondition", "Batches that have an output.")
      .value("ALWAYS", OutputCondition::kAlways)
      .value("SAME_STEP_RESET", OutputCondition::kSameStepReset)
      .value("ORDER", OutputCondition::kOrder);
  m.attr("TRUE_STATE_FEATURES") = true_state_feature_count();
  m.def("output_fields", &output_fields<Cage2>,
        "Arrays that a batch writes: name, possible NumPy types, columns, condition.");
  m.def("scenario_output_fields", &output_fields<TableNetwork>,
        "The same of a batch of any networks; columns 0: four per slot.");
  m.def(
      "kind_bit", [](BlueKind kind, int decoy) { return kind_bit(kind, decoy); }, "kind"_a,
      "decoy"_a = 0, "Number of a kind of blue's actions; every decoy is one.");
  m.def("replay_scenario", &replay_scenario, nb::kw_only(), "scenario"_a, "kinds"_a, "episodes"_a,
        "inputs"_a, "rows"_a,
        nb::sig("def replay_scenario(*, scenario: numpy.typing.NDArray[numpy.uint8], "
                "kinds: collections.abc.Sequence[int], "
                "episodes: numpy.typing.NDArray[numpy.uint8], "
                "inputs: numpy.typing.NDArray[numpy.uint8], "
                "rows: numpy.typing.NDArray[numpy.uint8]) -> None"),
        "The same as `replay` in a network that is given, as one row of bytes.");
  m.def("replay", &replay_trace, nb::kw_only(), "episodes"_a, "inputs"_a, "rows"_a,
        nb::sig("def replay(*, episodes: numpy.typing.NDArray[numpy.uint8], "
                "inputs: numpy.typing.NDArray[numpy.uint8], "
                "rows: numpy.typing.NDArray[numpy.uint8]) -> None"),
        "Replay recorded games and write one row per step. Arguments are structs as rows of bytes: "
        "trace_episode, trace_input and trace_row of `struct_layouts`.");

  nb::class_<Cage2Batch> batch(m, "Batch", "Many games of Scenario2 that are stepped together.");
  batch.def(
      "__init__",
      [](Cage2Batch* self, nb::handle configs, const nb::dict& outputs, Autoreset autoreset,
         Knowledge knowledge, Definition definition, double lambda, int threads) {
        new (self) Cage2Batch({}, configs, outputs, autoreset,
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
      "valid.");
  bind_games(batch);
  batch
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
           "    ValueError: an episode would end with these steps, or an array does not fit.");
  nb::class_<ScenarioBatch> wide(m, "ScenarioBatch",
                                 "Many games of any networks that are stepped together.");
  wide.def(
      "__init__",
      [](ScenarioBatch* self, nb::handle scenarios, const std::vector<std::uint8_t>& kinds,
         std::size_t slots, bool draws_scenarios, nb::handle configs, const nb::dict& outputs,
         Autoreset autoreset, Knowledge knowledge, double lambda, int threads) {
        new (self) ScenarioBatch(
            make_networks(tables_of(scenarios), kinds, slots, draws_scenarios), configs, outputs,
            autoreset, ComplianceRule::make(knowledge, Definition::kHost, lambda), threads);
      },
      nb::kw_only(), "scenarios"_a, "kinds"_a, "slots"_a, "draws_scenarios"_a, "configs"_a,
      "outputs"_a, "autoreset"_a, "knowledge"_a, "alignment_lambda"_a, "threads"_a,
      nb::sig("def __init__(self, *, scenarios: numpy.typing.NDArray[numpy.uint8], "
              "kinds: collections.abc.Sequence[int], slots: int, draws_scenarios: bool, "
              "configs: numpy.typing.NDArray[numpy.uint8], "
              "outputs: dict[str, numpy.typing.NDArray[typing.Any]], autoreset: Autoreset, "
              "knowledge: Knowledge, alignment_lambda: float, threads: int) -> None"),
      "Create a batch that writes to these arrays.\n\n"
      "Args:\n"
      "    scenarios: One scenario of `struct_layouts` per network, as rows of bytes.\n"
      "    kinds: `kind_bit` of blue's kinds of actions, in the order of their indices.\n"
      "    slots: Hosts in observations and in blue's actions.\n"
      "    draws_scenarios: Draw a network for every episode; else game i plays network i modulo "
      "their number.\n"
      "    configs: One game_config of `struct_layouts` per game, as rows of bytes.\n"
      "    outputs: All arrays of `scenario_output_fields`, by name.\n\n"
      "Raises:\n"
      "    TypeError: an array has another type or rank.\n"
      "    ValueError: an array is missing, unknown or has another shape, or a value is not "
      "valid.");
  bind_games(wide);
}

}  // namespace cagepool
