#pragma once
// Snapshots: the state of a game as bytes, which can replace a game of any batch.

#include <vector>

#include "core/episode.hpp"

namespace cagepool {

using Blob = std::span<const std::uint8_t>;

/// Complete state of one game, with its position in the random stream and its last outputs.
struct Snapshot {
  GameConfig config;
  Game game;
  TrueState true_state;
  Counters counters;
  Order order;
  Moves moves;
  std::vector<Session> session_log;
};

/// Order of a snapshot whose compliance was not tracked.
inline constexpr Order kNoOrder = 255;

/// Serialize a game of a batch.
std::vector<std::uint8_t> save_game(const BatchView& batch, std::size_t id);

/// Write the masks, the counts and the exported state that follow from session log and game; the
/// decoys stay as they are.
void derive_true_state(Snapshot& snapshot);

/// Serialize a snapshot.
std::vector<std::uint8_t> to_bytes(const Snapshot& snapshot);

/// Whether all flags, enumerations and sets of hosts of a game have values of their types.
bool has_valid_values(const Game& game);

/// Throw std::invalid_argument unless a game can reach this state, as far as a single state shows.
void check_possible(const Snapshot& snapshot);

/// Parse a serialized game. Throws std::invalid_argument if the bytes are damaged or of another
/// version.
Snapshot read_snapshot(Blob blob);

/// Parse a serialized game that the batch can hold; throws std::invalid_argument if it cannot.
Snapshot read_snapshot(const BatchView& batch, Blob blob);

/// Replace a game by a snapshot.
void restore_game(const BatchView& batch, std::size_t id, const Snapshot& snapshot);

}  // namespace cagepool
