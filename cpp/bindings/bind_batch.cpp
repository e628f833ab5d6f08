// Python bindings of the batch of games and of the replay of traces.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/buffers.hpp"
#include "bindings/module.hpp"
#include "core/batch.hpp"
#include "core/trace.hpp"

using namespace nanobind::literals;

namespace cagepool {
namespace {

/// The arrays that a batch writes; held here so that they live as long as it does.
struct Buffers {
  std::optional<Rows<float>> float_observations;
  std::optional<Bytes> byte_observations;
  Row<double> rewards;
  Row<bool> truncations;
  Bytes moves;
  Bytes true_state;
  std::optional<Rows<float>> float_final_observations;
  std::optional<Bytes> byte_final_observations;
  Row<double> episode_returns;
  Row<std::int32_t> episode_lengths;
  std::optional<Row<std::uint8_t>> orders;
  std::optional<Rows<std::int32_t>> counters;
  std::optional<Rows<std::int32_t>> episode_counters;
  std::optional<Row<double>> alignment;
};

std::span<Counters> counters_of(const std::optional<Rows<std::int32_t>>& array) {
  if (!array) return {};
  if (array->shape(1) != kCounters) throw std::invalid_argument("counters must have 5 columns");
  return {reinterpret_cast<Counters*>(array->data()), array->shape(0)};
}

Outputs outputs_of(const Buffers& buffers) {
  Outputs out{};
  if (buffers.float_observations) out.float_observations = span_of(*buffers.float_observations);
  if (buffers.byte_observations) out.byte_observations = span_of(*buffers.byte_observations);
  out.rewards = span_of(buffers.rewards);
  out.truncations = span_of(buffers.truncations);
  out.moves = structs_of<Moves>(buffers.moves, "moves");
  out.true_state = structs_of<TrueState>(buffers.true_state, "true_state");
  if (buffers.float_final_observations)
    out.float_final_observations = span_of(*buffers.float_final_observations);
  if (buffers.byte_final_observations)
    out.byte_final_observations = span_of(*buffers.byte_final_observations);
  out.episode_returns = span_of(buffers.episode_returns);
  out.episode_lengths = span_of(buffers.episode_lengths);
  if (buffers.orders) out.orders = span_of(*buffers.orders);
  out.counters = counters_of(buffers.counters);
  out.episode_counters = counters_of(buffers.episode_counters);
  if (buffers.alignment) out.alignment = span_of(*buffers.alignment);
  return out;
}

/// What each game of a batch is, an array a property.
struct Settings {
  Row<const std::uint64_t> seeds;
  Row<const std::uint16_t> horizons;
  Row<const std::uint8_t> reds;
  Row<const std::uint8_t> editions;
  Row<const bool> greens;
};

std::vector<Setting> settings_of(const Settings& arrays) {
  const std::size_t games = arrays.seeds.size();
  if (arrays.horizons.size() != games || arrays.reds.size() != games ||
      arrays.editions.size() != games || arrays.greens.size() != games) {
    throw std::invalid_argument("the arrays of settings must have one length");
  }
  std::vector<Setting> settings(games);
  for (std::size_t id = 0; id < games; ++id) {
    settings[id] = {.seed = arrays.seeds.data()[id],
                    .next_episode = 0,
                    .horizon = arrays.horizons.data()[id],
                    .reds = arrays.reds.data()[id],
                    .edition = static_cast<Edition>(arrays.editions.data()[id]),
                    .green = arrays.greens.data()[id],
                    .unused = {}};
  }
  return settings;
}

// Fewer games are stepped before another thread could take the GIL.
constexpr std::size_t kGamesWorthTheGil = 16;

class BoundBatch {
 public:
  BoundBatch(const Settings& settings, Buffers buffers, Autoreset autoreset,
             const ComplianceRule& rule, int threads)
      : buffers_(std::move(buffers)),
        batch_(settings_of(settings), outputs_of(buffers_), autoreset, rule, threads) {}

  Batch& batch() { return batch_; }

  std::size_t step(nb::handle actions, nb::handle red_actions, nb::handle ids) {
    const IntRow blue(actions, "actions");
    const IntRow red(red_actions, "red_actions", true);
    const IntRow games(ids, "ids", true);
    const auto chosen = games.given() ? std::optional(games.span()) : std::nullopt;
    std::optional<nb::gil_scoped_release> release;
    if (blue.span().size() >= kGamesWorthTheGil) release.emplace();
    return batch_.step(blue.span(), red.span(), chosen);
  }

  void redirect(const Rows<float>& observations) {
    batch_.redirect(span_of(observations));
    buffers_.float_observations = observations;
  }
  void redirect_bytes(const Bytes& observations) {
    batch_.redirect(span_of(observations));
    buffers_.byte_observations = observations;
  }

 private:
  Buffers buffers_;
  Batch batch_;
};

nb::bytes save_one(BoundBatch& self, std::int64_t id) {
  const std::vector<std::uint8_t> bytes = self.batch().save(id);
  return nb::bytes(bytes.data(), bytes.size());
}

void restore_games(BoundBatch& self, nb::handle ids, const nb::typed<nb::list, nb::bytes>& blobs) {
  std::vector<Blob> views;
  for (const nb::handle item : blobs) {
    if (!PyBytes_Check(item.ptr())) {
      PyErr_Format(PyExc_TypeError, "a snapshot must be bytes, got %.100s", nb::repr(item).c_str());
      throw nb::python_error();
    }
    const auto blob = nb::borrow<nb::bytes>(item);
    views.emplace_back(static_cast<const std::uint8_t*>(blob.data()), blob.size());
  }
  self.batch().restore(IntRow(ids, "ids").span(), views);
}

nb::bytes sessions(BoundBatch& self, std::int64_t id) {
  const std::vector<Session> log = self.batch().log(id);
  return nb::bytes(log.data(), log.size());
}

void describe_games(BoundBatch& self, const Bytes& rows) {
  self.batch().describe(structs_of<TraceRow>(rows, "rows"));
}

/// The inputs of a trace, as they came.
struct Trace {
  Row<const std::int8_t> red;
  Row<const std::int8_t> green;
  Row<const std::int8_t> edition;
  Rows<const std::uint8_t> blue_action;
  Rows<const std::int8_t> green_host;
  Rows<const std::int8_t> red_target;
  Rows<const std::int8_t> exploit;
  Rows<const std::int8_t> detected;
  Rows<const std::int8_t> esc_pick;
};

void replay_trace(const Trace& trace, const Bytes& rows) {
  const TraceInputs inputs{.episodes = trace.blue_action.shape(0),
                           .steps = trace.blue_action.shape(1),
                           .red = span_of(trace.red),
                           .green = span_of(trace.green),
                           .edition = span_of(trace.edition),
                           .blue_action = span_of(trace.blue_action),
                           .green_host = span_of(trace.green_host),
                           .red_target = span_of(trace.red_target),
                           .exploit = span_of(trace.exploit),
                           .detected = span_of(trace.detected),
                           .esc_pick = span_of(trace.esc_pick)};
  replay(inputs, structs_of<TraceRow>(rows, "rows"));
}

}  // namespace

void bind_batch(nb::module_& m) {
  m.def(
      "replay",
      [](Row<const std::int8_t> red, Row<const std::int8_t> green, Row<const std::int8_t> edition,
         Rows<const std::uint8_t> blue_action, Rows<const std::int8_t> green_host,
         Rows<const std::int8_t> red_target, Rows<const std::int8_t> exploit,
         Rows<const std::int8_t> detected, Rows<const std::int8_t> esc_pick, Bytes rows) {
        replay_trace(
            {red, green, edition, blue_action, green_host, red_target, exploit, detected, esc_pick},
            rows);
      },
      nb::kw_only(), "red"_a.noconvert(), "green"_a.noconvert(), "edition"_a.noconvert(),
      "blue_action"_a.noconvert(), "green_host"_a.noconvert(), "red_target"_a.noconvert(),
      "exploit"_a.noconvert(), "detected"_a.noconvert(), "esc_pick"_a.noconvert(),
      "rows"_a.noconvert(), "Play recorded games again, writing a row for each step.");

  nb::class_<BoundBatch>(m, "Batch",
                         "Many games stepped together into arrays that the caller owns.")
      .def(
          "__init__",
          [](BoundBatch* self, Row<const std::uint64_t> seeds, Row<const std::uint16_t> horizons,
             Row<const std::uint8_t> reds, Row<const std::uint8_t> editions, Row<const bool> greens,
             std::optional<Rows<float>> float_observations, std::optional<Bytes> byte_observations,
             Row<double> rewards, Row<bool> truncations, Bytes moves, Bytes true_state,
             std::optional<Rows<float>> float_final_observations,
             std::optional<Bytes> byte_final_observations, Row<double> episode_returns,
             Row<std::int32_t> episode_lengths, std::optional<Row<std::uint8_t>> orders,
             std::optional<Rows<std::int32_t>> counters,
             std::optional<Rows<std::int32_t>> episode_counters,
             std::optional<Row<double>> alignment, Autoreset autoreset, Knowledge knowledge,
             Definition definition, double lambda, int threads) {
            Buffers buffers{float_observations,
                            byte_observations,
                            rewards,
                            truncations,
                            moves,
                            true_state,
                            float_final_observations,
                            byte_final_observations,
                            episode_returns,
                            episode_lengths,
                            orders,
                            counters,
                            episode_counters,
                            alignment};
            new (self) BoundBatch({seeds, horizons, reds, editions, greens}, std::move(buffers),
                                  autoreset, {knowledge, definition, lambda}, threads);
          },
          nb::kw_only(), "seeds"_a.noconvert(), "horizons"_a.noconvert(), "reds"_a.noconvert(),
          "editions"_a.noconvert(), "greens"_a.noconvert(),
          "float_observations"_a.noconvert().none(), "byte_observations"_a.noconvert().none(),
          "rewards"_a.noconvert(), "truncations"_a.noconvert(), "moves"_a.noconvert(),
          "true_state"_a.noconvert(), "float_final_observations"_a.noconvert().none(),
          "byte_final_observations"_a.noconvert().none(), "episode_returns"_a.noconvert(),
          "episode_lengths"_a.noconvert(), "orders"_a.noconvert().none(),
          "counters"_a.noconvert().none(), "episode_counters"_a.noconvert().none(),
          "alignment"_a.noconvert().none(), "autoreset"_a, "knowledge"_a, "definition"_a,
          "alignment_lambda"_a, "threads"_a)
      .def_prop_ro("games", [](BoundBatch& self) { return self.batch().games(); })
      .def_prop_ro("threads", [](BoundBatch& self) { return self.batch().threads(); })
      .def("step", &BoundBatch::step, "actions"_a.none(), "red_actions"_a.none() = nb::none(),
           "ids"_a.none() = nb::none(),
           nb::sig("def step(self, actions: numpy.typing.NDArray[numpy.int64], red_actions: "
                   "numpy.typing.NDArray[numpy.int64] | None = None, ids: "
                   "numpy.typing.NDArray[numpy.int64] | None = None) -> int"),
           "Play one action in every game, or in those named; returns how many episodes ended.\n\n"
           "Raises:\n    IndexError: an action or a game is out of range; nothing was played.")
      .def(
          "reset",
          [](BoundBatch& self, nb::handle ids,
             const std::optional<Row<const std::uint64_t>>& seeds) {
            self.batch().reset(IntRow(ids, "ids").span(), span_of(seeds));
          },
          "ids"_a.none(), "seeds"_a.noconvert().none() = nb::none(),
          nb::sig("def reset(self, ids: numpy.typing.NDArray[numpy.int64], "
                  "seeds: numpy.typing.NDArray[numpy.uint64] | None = None) -> None"),
          "Start new episodes; with seeds, the first ones of new streams.")
      .def(
          "reseed",
          [](BoundBatch& self, nb::handle ids, const Row<const std::uint64_t>& seeds) {
            self.batch().reseed(IntRow(ids, "ids").span(), span_of(seeds));
          },
          "ids"_a.none(), "seeds"_a.noconvert(),
          nb::sig("def reseed(self, ids: numpy.typing.NDArray[numpy.int64], "
                  "seeds: numpy.typing.NDArray[numpy.uint64]) -> None"),
          "Let the rest of the episode draw from other streams.")
      .def("redirect", &BoundBatch::redirect, "observations"_a.noconvert(),
           "Write observations here from now on.")
      .def("redirect", &BoundBatch::redirect_bytes, "observations"_a.noconvert())
      .def("save", &save_one, "id"_a, "One game as bytes.")
      .def("restore", &restore_games, "ids"_a.none(), "blobs"_a,
           nb::sig("def restore(self, ids: numpy.typing.NDArray[numpy.int64], "
                   "blobs: list[bytes]) -> None"),
           "Put saved games in the place of others.")
      .def("sessions", &sessions, "id"_a,
           "A byte for each red session of the episode, in order of creation.")
      .def(
          "stream_key", [](BoundBatch& self, std::int64_t id) { return self.batch().game(id).key; },
          "id"_a, "Key of the random stream of the game's episode.")
      .def(
          "steps", [](BoundBatch& self, std::int64_t id) { return self.batch().game(id).step; },
          "id"_a, "Steps played in the game's episode.")
      .def("describe", &describe_games, "rows"_a.noconvert(),
           "Write the state of every game as a trace has it.");
}

}  // namespace cagepool
