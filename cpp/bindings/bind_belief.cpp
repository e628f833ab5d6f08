// Python bindings of the exact belief.

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <vector>

#include "bindings/buffers.hpp"
#include "bindings/module.hpp"
#include "policy/belief_features.hpp"

using namespace nanobind::literals;

namespace cagepool {
namespace {

/// Indices of games, copied: other threads may change the array meanwhile.
std::vector<std::int64_t> ids_of(nb::handle ids) {
  const std::span<const std::int64_t> span = IntRow(ids, "ids").span();
  return {span.begin(), span.end()};
}

void check_ids(const BeliefFilter& self, std::span<const std::int64_t> ids) {
  for (const std::int64_t id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= self.games())
      throw std::out_of_range("a game's index must be below " + std::to_string(self.games()) +
                              ", got " + std::to_string(id));
  }
}

template <class Value>
std::vector<std::uint64_t> packed(const Buffer& observations) {
  std::vector<std::uint64_t> words;
  const auto rows = observations.rows<const std::array<Value, kObservationSize>>();
  words.reserve(rows.size());
  for (const auto& row : rows) words.push_back(pack_observation(row.data()));
  return words;
}

/// Observations as words, of 52 floats, bytes or, one per game, words.
std::vector<std::uint64_t> words_of(nb::handle observations) {
  const Buffer buffer(observations, "observations", Buffer::Access::kRead);
  if (buffer.has_type<std::uint64_t>()) {
    const auto words = buffer.rows<const std::uint64_t>();
    return {words.begin(), words.end()};
  }
  return buffer.has_type<std::uint8_t>() ? packed<std::uint8_t>(buffer) : packed<float>(buffer);
}

void update_belief(BeliefFilter& self, nb::handle ids, nb::handle actions,
                   nb::handle observations) {
  const std::vector<std::int64_t> games = ids_of(ids);
  const IntRow blue(actions, "actions");
  const std::vector<std::int64_t> played(blue.span().begin(), blue.span().end());
  const std::vector<std::uint64_t> words = words_of(observations);
  const nb::gil_scoped_release release;
  self.update(games, played, words);
}

void write_features(const BeliefFilter& self, nb::handle ids, nb::handle features,
                    std::size_t column) {
  const std::vector<std::int64_t> games = ids_of(ids);
  const Rows<float> rows(features, "features");
  rows.check_rows(games.size());
  const std::size_t stride = rows.column_count();
  if (column > stride || stride - column < kBeliefFeatures)
    throw std::invalid_argument("features must have " + std::to_string(kBeliefFeatures) +
                                " columns from column " + std::to_string(column) + " on, got " +
                                std::to_string(stride) + " in all");
  check_ids(self, games);
  const nb::gil_scoped_release release;
  const CallGuard lock = self.guard();
  write_belief_features(self, games, rows.span(), stride, column);
}

void write_probabilities(const BeliefFilter& self, nb::handle rows) {
  const Buffer buffer(rows, "rows");
  buffer.check_rows(self.games());
  const auto out = buffer.rows<BeliefRow<double>>();
  const CallGuard lock = self.guard();
  for (std::size_t game = 0; game < out.size(); ++game)
    out[game] = belief_row<double>(self.hypotheses(game));
}

void write_states(const BeliefFilter& self, nb::handle states) {
  const Buffer buffer(states, "states");
  buffer.check_rows(self.games());
  const auto out = buffer.rows<BeliefState>();
  const CallGuard lock = self.guard();
  for (std::size_t game = 0; game < out.size(); ++game) out[game] = self.state(game);
}

std::tuple<nb::bytes, std::vector<double>> hypotheses_of(const BeliefFilter& self,
                                                         std::int64_t id) {
  check_ids(self, std::array{id});
  const CallGuard lock = self.guard();
  std::vector<Game> games;
  std::vector<double> weights;
  for (const auto& [game, weight] : self.hypotheses(static_cast<std::size_t>(id))) {
    games.push_back(game);
    weights.push_back(weight);
  }
  return {nb::bytes(games.data(), games.size() * sizeof(Game)), weights};
}

nb::bytes saved_hypotheses(const BeliefFilter& self) {
  const CallGuard lock = self.guard();
  std::vector<Hypothesis> all;
  for (std::size_t game = 0; game < self.games(); ++game) {
    const auto some = self.hypotheses(game);
    all.insert(all.end(), some.begin(), some.end());
  }
  return nb::bytes(all.data(), all.size() * sizeof(Hypothesis));
}

void restore_belief(BeliefFilter& self, nb::handle states, nb::handle hypotheses) {
  const Buffer state_rows(states, "states", Buffer::Access::kRead);
  const Buffer hypothesis_rows(hypotheses, "hypotheses", Buffer::Access::kRead);
  const auto given = state_rows.rows<const BeliefState>();
  const auto rows = hypothesis_rows.rows<const Hypothesis>();
  const std::vector<BeliefState> copied(given.begin(), given.end());
  const std::vector<Hypothesis> all(rows.begin(), rows.end());
  self.restore(copied, all);
}

nb::bytes sample_game(const BeliefFilter& self, std::int64_t id, std::uint64_t seed,
                      std::uint16_t horizon) {
  const std::vector<std::uint8_t> bytes = to_bytes(self.sample(id, seed, horizon));
  return nb::bytes(bytes.data(), bytes.size());
}

void write_probabilities_of(const BeliefFilter& self, nb::handle ids,
                            const nb::typed<nb::list, nb::bytes>& blobs, nb::handle out) {
  const std::vector<std::int64_t> games = ids_of(ids);
  const Row<double> probabilities(out, "probabilities");
  probabilities.check_rows(games.size());
  if (blobs.size() != games.size())
    throw std::invalid_argument("there must be one snapshot per game, got " +
                                std::to_string(blobs.size()) + " for " +
                                std::to_string(games.size()) + " games");
  for (std::size_t i = 0; i < games.size(); ++i) {
    nb::bytes blob;
    if (!nb::try_cast(blobs[i], blob)) throw nb::type_error("a snapshot must be bytes");
    const Blob bytes(static_cast<const std::uint8_t*>(blob.data()), blob.size());
    probabilities.span()[i] = self.probability_of(games[i], read_snapshot(bytes));
  }
}

using Totals = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, double>;

Totals totals_of(const BeliefFilter& self) {
  const CallGuard lock = self.guard();
  const BeliefTotals totals = self.totals();
  return {totals.updates, totals.hypotheses, totals.misfits, totals.dropped, totals.dropped_mass};
}

std::vector<std::tuple<int, int>> listed_decoy_ports() {
  std::vector<std::tuple<int, int>> ports;
  ports.reserve(kDecoyPortCount);
  for (const DecoyPort& port : decoy_port_list())
    ports.emplace_back(port.host, kExploitOfRank[port.rank]);
  return ports;
}

}  // namespace

void bind_belief(nb::module_& m) {
  m.attr("BELIEF_FEATURES") = kBeliefFeatures;
  m.attr("HYPOTHESIS_BYTES") = sizeof(Hypothesis);
  m.attr("BELIEVABLE_REDS") = kBelievableReds;
  m.def("decoy_ports", &listed_decoy_ports,
        "Host and exploit of each port that decoys can open beside the genuine ones, in the order "
        "of `decoy_ports` in the probabilities of a belief.");

  nb::class_<BeliefFilter>(m, "BeliefFilter", "Exact beliefs about many games.")
      .def(
          "__init__",
          [](BeliefFilter* self, std::size_t games, const std::vector<double>& prior,
             Edition edition, bool green, std::size_t capacity, int threads) {
            if (prior.size() != kBelievableReds)
              throw std::invalid_argument("there must be one weight per red agent");
            BeliefConfig config{.prior = {},
                                .edition = edition,
                                .green = green,
                                .capacity = capacity,
                                .threads = threads};
            std::ranges::copy(prior, config.prior.begin());
            new (self) BeliefFilter(games, config);
          },
          nb::kw_only(), "games"_a, "prior"_a, "edition"_a, "green"_a, "capacity"_a, "threads"_a)
      .def_prop_ro("games", &BeliefFilter::games)
      .def(
          "reset", [](BeliefFilter& self, nb::handle ids) { self.reset(ids_of(ids)); },
          "ids"_a.none(),
          nb::sig("def reset(self, ids: numpy.typing.NDArray[numpy.int64]) -> None"),
          "Start new episodes.")
      .def("update", &update_belief, "ids"_a.none(), "actions"_a.none(), "observations"_a.none(),
           nb::sig("def update(self, ids: numpy.typing.NDArray[numpy.int64], actions: "
                   "numpy.typing.NDArray[numpy.int64], observations: "
                   "numpy.typing.NDArray[typing.Any]) -> None"),
           "Add a step: blue's actions and the observations that followed, 52 float32 or uint8 per "
           "game or one uint64 per game with value k as bit k.")
      .def("write_features", &write_features, "ids"_a.none(), "features"_a.none(), "column"_a,
           nb::sig("def write_features(self, ids: numpy.typing.NDArray[numpy.int64], features: "
                   "numpy.typing.NDArray[numpy.float32], column: int) -> None"),
           "Write BELIEF_FEATURES values per game of `ids`, from a column on.")
      .def("write_probabilities", &write_probabilities, "rows"_a.none(),
           nb::sig("def write_probabilities(self, rows: numpy.typing.NDArray[numpy.uint8]) -> "
                   "None"),
           "Write one struct `belief` of `struct_layouts` per game.")
      .def("write_states", &write_states, "states"_a.none(),
           nb::sig("def write_states(self, states: numpy.typing.NDArray[numpy.uint8]) -> None"),
           "Write one struct `belief_state` of `struct_layouts` per game.")
      .def("hypotheses", &hypotheses_of, "id"_a,
           "Hypotheses of a game: structs `game` of `struct_layouts`, and their probabilities.")
      .def("saved_hypotheses", &saved_hypotheses, "Hypotheses of all games, HYPOTHESIS_BYTES each.")
      .def("restore", &restore_belief, "states"_a.none(), "hypotheses"_a.none(),
           nb::sig("def restore(self, states: numpy.typing.NDArray[numpy.uint8], hypotheses: "
                   "numpy.typing.NDArray[numpy.uint8]) -> None"),
           "Replace the beliefs of all games by saved ones; nothing changes if they are refused.")
      .def("sample", &sample_game, "id"_a, "seed"_a, "horizon"_a,
           "Draw a game from the belief; returns a snapshot.")
      .def("write_probabilities_of", &write_probabilities_of, "ids"_a.none(), "blobs"_a,
           "probabilities"_a.none(),
           nb::sig("def write_probabilities_of(self, ids: numpy.typing.NDArray[numpy.int64], "
                   "blobs: list[bytes], probabilities: numpy.typing.NDArray[numpy.float64]) -> "
                   "None"),
           "Write the probability of one snapshot per game of `ids`.")
      .def("totals", &totals_of,
           "Updates, hypotheses after them, updates that left no red, dropped hypotheses and "
           "dropped probability, over the life of the filter.");
}

}  // namespace cagepool
