#pragma once
// Whether a snapshot holds a game that can be reached, and the state that follows from another.

#include "core/snapshot.hpp"

namespace cagepool {

/// Write the masks, the counts and the exported state that follow from session log and game; the
/// decoys stay as they are.
void derive_true_state(Snapshot& snapshot);

/// Whether all flags, enumerations and sets of hosts of a game have values of their types.
bool has_valid_values(const Game& game);

/// Throw std::invalid_argument unless a game can reach this state, as far as a single state shows.
void check_possible(const Snapshot& snapshot);
void check_snapshot(const CompiledScenario::Scenarios& scenarios, const Snapshot& snapshot);
void check_snapshot(const TableScenario::Scenarios& scenarios,
                    const BasicSnapshot<TableScenario>& snapshot);

}  // namespace cagepool
