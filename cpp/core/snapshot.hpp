#pragma once
// A game as bytes: to save, to restore in any slot of any batch, to refuse if damaged.

#include <vector>

#include "core/episode.hpp"

namespace cagepool {

using Blob = std::span<const std::uint8_t>;

/// Everything of one game, its place in the stream and what was last shown included.
struct Snapshot {
  Setting setting;
  Game game;
  TrueState truth;
  Counters counters;
  Order order;
  Moves moves;
  std::vector<Session> log;
};

std::vector<std::uint8_t> save_game(const Job& job, std::size_t id);

/// Throws std::invalid_argument if the bytes are not a game of this version that fits the job's
/// batch.
Snapshot read_snapshot(const Job& job, Blob blob);

void restore_game(const Job& job, std::size_t id, const Snapshot& snapshot);

}  // namespace cagepool
