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

/// Serialize a game.
std::vector<std::uint8_t> save_game(const BatchView& batch, std::size_t id);

/// Parse a serialized game. Throws std::invalid_argument if the bytes are damaged, of another
/// version, or of a game that the batch cannot hold.
Snapshot read_snapshot(const BatchView& batch, Blob blob);

/// Replace a game by a snapshot.
void restore_game(const BatchView& batch, std::size_t id, const Snapshot& snapshot);

}  // namespace cagepool
