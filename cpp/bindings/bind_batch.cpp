// Python bindings of batches of games and of the replay of traces.

#include "bindings/bound_batch.hpp"
#include "bindings/bound_rollout.hpp"
#include "bindings/module.hpp"
#include "bindings/struct_fields.hpp"
#include "core/trace.hpp"
#include "policy/true_state_features.hpp"

using namespace nanobind::literals;

namespace cagepool {
namespace {

using CompiledBatch = BoundBatch<CompiledScenario>;
using TableBatch = BoundBatch<TableScenario>;

template <class Scenario>
nb::bytes save_snapshot(BoundBatch<Scenario>& self, std::int64_t id) {
  const std::vector<std::uint8_t> bytes = self.batch().save(id);
  return nb::bytes(bytes.data(), bytes.size());
}

template <class Scenario>
void restore_games(BoundBatch<Scenario>& self, nb::handle ids,
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

template <class Scenario>
nb::bytes session_log(BoundBatch<Scenario>& self, std::int64_t id) {
  std::vector<SessionRow> rows;
  for (const auto session : self.batch().session_log(id))
    rows.push_back(session_row<Scenario>(session));
  return nb::bytes(rows.data(), rows.size() * sizeof(SessionRow));
}

/// The scenarios of a batch; Scenario2 is compiled, so that its tables are not needed.
template <class Scenario>
BatchScenarios<Scenario> scenarios_of(nb::handle array, const std::vector<std::uint8_t>& kinds,
                                      std::size_t slots, bool draws_scenarios) {
  if constexpr (Scenario::kIsTable) {
    const Buffer buffer(array, "scenarios", Buffer::Access::kRead);
    const auto tables = buffer.rows<const ScenarioTables>();
    return make_scenarios({tables.begin(), tables.end()}, kinds, slots, draws_scenarios);
  }
  return {};
}

template <class Scenario>
void replay_trace(nb::handle scenarios, const std::vector<std::uint8_t>& kinds, std::size_t slots,
                  nb::handle episodes, nb::handle inputs, nb::handle rows) {
  const auto played = scenarios_of<Scenario>(scenarios, kinds, slots, false);
  const Buffer episode_rows(episodes, "episodes", Buffer::Access::kRead);
  const Buffer input_rows(inputs, "inputs", Buffer::Access::kRead);
  const Buffer step_rows(rows, "rows");
  replay<Scenario>(played.view(), episode_rows.rows<const TraceEpisode>(),
                   input_rows.rows<const TraceInput>(), step_rows.rows<TraceRow>());
}

template <class Scenario>
void make_batch(BoundBatch<Scenario>* self, nb::handle scenarios,
                const std::vector<std::uint8_t>& kinds, std::size_t slots, bool draws_scenarios,
                nb::handle configs, const nb::dict& outputs, Autoreset autoreset,
                Knowledge knowledge, Definition definition, double lambda, int threads) {
  new (self) BoundBatch<Scenario>(scenarios_of<Scenario>(scenarios, kinds, slots, draws_scenarios),
                                  configs, outputs, autoreset,
                                  ComplianceRule::make(knowledge, definition, lambda), threads);
}

/// The methods of a batch; all scenarios have the same.
template <class Scenario>
void bind_games(nb::class_<BoundBatch<Scenario>>& batch) {
  using Self = BoundBatch<Scenario>;
  batch
      .def("__init__", &make_batch<Scenario>, nb::kw_only(), "scenarios"_a, "kinds"_a, "slots"_a,
           "draws_scenarios"_a, "configs"_a, "outputs"_a, "autoreset"_a, "knowledge"_a,
           "definition"_a, "alignment_lambda"_a, "threads"_a,
           nb::sig("def __init__(self, *, scenarios: numpy.typing.NDArray[numpy.uint8], "
                   "kinds: collections.abc.Sequence[int], slots: int, draws_scenarios: bool, "
                   "configs: numpy.typing.NDArray[numpy.uint8], "
                   "outputs: dict[str, numpy.typing.NDArray[typing.Any]], autoreset: Autoreset, "
                   "knowledge: Knowledge, definition: Definition, alignment_lambda: float, "
                   "threads: int) -> None"),
           "Create a batch that writes to these arrays.\n\n"
           "Args:\n"
           "    scenarios: One row of `struct_layouts` per scenario, as rows of bytes.\n"
           "    kinds: `kind_bit` of blue's kinds of actions, in the order of their indices.\n"
           "    slots: Hosts in observations and in blue's actions.\n"
           "    draws_scenarios: Draw a scenario for every episode; else game i plays scenario i "
           "modulo their number.\n"
           "    configs: One game_config of `struct_layouts` per game, as rows of bytes.\n"
           "    outputs: All arrays of `output_fields`, by name.\n\n"
           "Raises:\n"
           "    TypeError: an array has another type or rank.\n"
           "    ValueError: an array is missing, unknown or has another shape, or a value is not "
           "valid.")
      .def_static("output_fields", &output_fields<Scenario>,
                  "Arrays that a batch writes: name, possible NumPy types, columns (0: four per "
                  "slot), condition.")
      .def_static("replay", &replay_trace<Scenario>, nb::kw_only(), "scenarios"_a, "kinds"_a,
                  "slots"_a, "episodes"_a, "inputs"_a, "rows"_a,
                  nb::sig("def replay(*, scenarios: numpy.typing.NDArray[numpy.uint8], "
                          "kinds: collections.abc.Sequence[int], slots: int, "
                          "episodes: numpy.typing.NDArray[numpy.uint8], "
                          "inputs: numpy.typing.NDArray[numpy.uint8], "
                          "rows: numpy.typing.NDArray[numpy.uint8]) -> None"),
                  "Replay recorded games of the first scenario and write one row per step. "
                  "Arguments are structs as rows of bytes: trace_episode, trace_input and "
                  "trace_row of `struct_layouts`.")
      .def_prop_ro("games", [](Self& self) { return self.batch().games(); })
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
      .def("save", &save_snapshot<Scenario>, "id"_a, "Return a snapshot of one game.")
      .def("restore", &restore_games<Scenario>, "ids"_a.none(), "blobs"_a,
           nb::sig("def restore(self, ids: numpy.typing.NDArray[numpy.int64], "
                   "blobs: list[bytes]) -> None"),
           "Replace games by snapshots; no game changes if any snapshot is refused.")
      .def("session_log", &session_log<Scenario>, "id"_a,
           "Red's sessions of the episode, in order of creation: `session` of `struct_layouts`, as "
           "bytes.")
      .def(
          "stream_key", [](Self& self, std::int64_t id) { return self.batch().game(id).key; },
          "id"_a, "Key of the random stream of the game's episode.")
      .def(
          "steps", [](Self& self, std::int64_t id) { return self.batch().game(id).step; }, "id"_a,
          "Steps played in the game's episode.")
      .def(
          "write_trace_rows",
          [](Self& self, nb::handle rows) {
            self.batch().write_trace_rows(Buffer(rows, "rows").template rows<TraceRow>());
          },
          "rows"_a,
          nb::sig("def write_trace_rows(self, rows: numpy.typing.NDArray[numpy.uint8]) -> None"),
          "Write the state of every game: the fields `s_*` of one trace row per game.");
  bind_rollout(batch);
}

}  // namespace

void bind_batch(nb::module_& m) {
  nb::enum_<OutputCondition>(m, "OutputCondition", "Batches that have an output.")
      .value("ALWAYS", OutputCondition::kAlways)
      .value("SAME_STEP_RESET", OutputCondition::kSameStepReset)
      .value("ORDER", OutputCondition::kOrder);
  m.attr("TRUE_STATE_FEATURES") = true_state_feature_count();
  m.def(
      "kind_bit", [](BlueKind kind, int decoy) { return kind_bit(kind, decoy); }, "kind"_a,
      "decoy"_a = 0, "Number of a kind of blue's actions; every decoy is one.");
  nb::class_<CompiledBatch> batch(m, "CompiledBatch",
                                  "Many games of CAGE-2 that are stepped together.");
  bind_games(batch);
  nb::class_<TableBatch> wide(m, "TableBatch",
                              "Many games of any scenarios that are stepped together.");
  bind_games(wide);
}

}  // namespace cagepool
