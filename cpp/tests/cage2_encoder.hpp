#pragma once
// Encoder tables of CAGE-2 with every action as a choice.

#include <numeric>

#include "policy/encoder.hpp"

namespace cagepool {

inline EncoderTables cage2_tables() {
  EncoderTables tables{.slots = kHostCount,
                       .actions = {},
                       .choices = std::vector<std::int64_t>(kActionCount),
                       .possible = {},
                       .fitting = std::vector<std::uint8_t>(kHostCount),
                       .misinforms = std::vector<std::uint8_t>(kHostCount),
                       .revealed_by = std::vector<WideMask>(kHostCount, 5),
                       .facts = std::vector<float>(std::size_t{3} * kHostCount, 1.0F),
                       .sizes = std::vector<float>(2, 1.0F)};
  std::iota(tables.choices.begin(), tables.choices.end(), 0);
  for (const BlueAction& action : kBlueActions) {
    tables.actions.push_back({action.kind, action.host, action.decoy});
    tables.fitting[action.host] |= action.decoy_bit;
    tables.possible.push_back(action.kind != BlueKind::kDecoy || action.decoy_bit != 0);
  }
  return tables;
}

inline constexpr FeatureGroups kAllGroups{true, true, true, true, true, true, true, true};

}  // namespace cagepool
