#pragma once
// Features of the true state of a game, which only a critic sees while it is trained: sessions,
// decoys, red's knowledge, plan and memory.

#include <span>

#include "core/game.hpp"

namespace cagepool {

/// Features per game.
std::size_t true_state_feature_count();

/// Write the features of one game.
void write_true_state_features(const Game& game, const TrueState& true_state,
                               std::span<float> features);

}  // namespace cagepool
