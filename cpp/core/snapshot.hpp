#pragma once
// Snapshots: the state of a game as bytes, which can replace a game of any batch.

#include <vector>

#include "core/episode.hpp"

namespace cagepool {

using Blob = std::span<const std::uint8_t>;

/// Complete state of one game, with its position in the random stream and its last outputs.
///
/// The scenario of `game` and `true_state` is an index of the batch; bytes have its hash instead.
template <class Scenario>
struct BasicSnapshot {
  GameConfig config;
  typename Scenario::Game game;
  typename Scenario::TrueState true_state;
  Counters counters;
  Order order;
  Moves moves;
  std::vector<typename Scenario::Session> session_log;
};
using Snapshot = BasicSnapshot<CompiledScenario>;

/// Order of a snapshot whose compliance was not tracked.
inline constexpr Order kNoOrder = 255;

/// Serialize a game of a batch.
template <class Scenario>
std::vector<std::uint8_t> save_game(const BasicBatchView<Scenario>& batch, std::size_t id);

/// Serialize a snapshot.
std::vector<std::uint8_t> to_bytes(const Snapshot& snapshot);

/// Parse a serialized game. Throws std::invalid_argument if the bytes are damaged or of another
/// version.
Snapshot read_snapshot(Blob blob);

/// Parse a serialized game that the batch can hold; throws std::invalid_argument if it cannot.
template <class Scenario>
BasicSnapshot<Scenario> read_snapshot(const BasicBatchView<Scenario>& batch, Blob blob);

/// Replace a game by a snapshot.
template <class Scenario>
void restore_game(const BasicBatchView<Scenario>& batch, std::size_t id,
                  const BasicSnapshot<Scenario>& snapshot);

}  // namespace cagepool
