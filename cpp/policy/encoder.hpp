#pragma once
// Policy features: encodes blue's observation and its history of the episode as input of a network,
// with a mask of the actions that can work. By the slots of a layout, for any scenarios.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/actions.hpp"
#include "core/compliance.hpp"
#include "core/scenario_tables.hpp"

namespace cagepool {

/// History of one game's episode, as far as features depend on it. Plain bytes, so that the caller
/// can store, copy and save it. All zeros at the start of an episode, but for `scenario` and
/// `order`. Sets are sets of slots.
struct History {
  WideMask scanned;    // activity was ever seen
  WideMask exploited;  // an exploit was ever seen
  WideMask latest;     // active in the last step with any activity
  WideMask restored;   // by blue
  std::uint16_t step;
  std::uint16_t scenario;
  std::uint8_t last_kind;
  std::uint8_t last_slot;
  Order order;
  std::uint8_t unused;
  std::array<std::uint8_t, kMaxHosts> decoys;      // that blue has placed, as bits
  std::array<std::uint8_t, kMaxHosts> misinforms;  // number that blue has placed
};
static_assert(sizeof(History) == 168);

/// Groups of features, in the order of a flat row.
struct FeatureGroups {
  bool observation;    // four values per slot
  bool scan_memory;    // three values per slot: `scanned`, `exploited`, `latest` of the history
  bool decoys_placed;  // one value per decoy among the choices: 1 if placed
  bool last_action;    // kind and slot, one-hot
  bool time_left;      // share of the horizon that is left
  bool order_input;    // 5 x 5, one-hot, row = position
  bool clock;  // share of the horizon that has passed, nearness of the end, phase of the game
  bool hosts_restored;  // one value per slot: `restored` of the history
};
inline constexpr auto kFeatureGroups =
    std::to_array<std::pair<const char*, bool FeatureGroups::*>>({
        {"observation", &FeatureGroups::observation},
        {"scan_memory", &FeatureGroups::scan_memory},
        {"decoys_placed", &FeatureGroups::decoys_placed},
        {"last_action", &FeatureGroups::last_action},
        {"time_left", &FeatureGroups::time_left},
        {"order_input", &FeatureGroups::order_input},
        {"clock", &FeatureGroups::clock},
        {"hosts_restored", &FeatureGroups::hosts_restored},
    });

inline constexpr std::size_t kClockFeatures = 16;
inline constexpr std::size_t kOrderFeatures = std::size_t{kTypeCount} * kTypeCount;
/// Features of a block form before those of the slots, without the order: time left, clock, last
/// action if it has no host (Sleep, Monitor), size of the scenario.
inline constexpr std::size_t kSharedFeatures = 1 + kClockFeatures + 2 + 2;
/// Features of a slot in block form after the facts of its host, by name and number.
inline constexpr auto kSlotFeatures = std::to_array<std::pair<const char*, std::size_t>>({
    {"observation", 4},
    {"scans", 3},  // activity so far, exploit so far, last activity
    {"links", 2},  // a host that reveals this one was exploited, or had the last activity
    {"decoys", kDecoyCount},
    {"free", kDecoyCount},  // decoys that can be placed now
    {"misinform", 2},       // number placed, whether another one can be
    {"last_action", 5},     // Analyse, Remove, Decoy, Restore, Misinform
    {"restored", 1},
});

/// What the scenarios of the games decide.
struct EncoderTables {
  std::size_t slots;
  std::vector<LayoutAction> actions;     // of the layout, by index
  std::vector<std::int64_t> choices;     // action of each choice of the policy
  std::vector<std::uint8_t> possible;    // by scenario and choice, 1: it can work at some time
  std::vector<std::uint8_t> fitting;     // by scenario and slot: decoys that the host can take
  std::vector<std::uint8_t> misinforms;  // likewise: Misinforms that find a free port
  std::vector<WideMask> revealed_by;     // likewise: slots of the hosts that reveal this one
  std::vector<float> facts;              // likewise: features that never change, in block form
  std::vector<float> sizes;              // by scenario: two features, in block form

  std::size_t scenarios() const { return possible.size() / choices.size(); }
};

/// A row is flat, group by group, or in blocks: shared features, then one block per slot, where
/// groups that are off are 0.
enum class EncoderForm : std::uint8_t { kFlat, kBlocks };

/// Encodes features and action masks of many games at once.
class FeatureEncoder {
 public:
  /// @param appended Values that the caller appends to each row; `encode` leaves them as they are.
  FeatureEncoder(EncoderTables tables, FeatureGroups groups, EncoderForm form, int horizon,
                 std::size_t appended = 0);

  /// Features per game.
  std::size_t size() const { return size_; }
  std::size_t choices() const { return tables_.choices.size(); }
  std::size_t observation_size() const { return 4 * tables_.slots; }
  const EncoderTables& tables() const { return tables_; }

  /// Whether a history has values that updates can give; the encoder relies on this.
  bool is_possible(const History& history) const;
  /// Add to each history the action that was played and the observation that followed.
  void update(std::span<const std::int64_t> actions, std::span<const float> observations,
              std::span<History> histories) const;
  /// Write one row of features per game and, unless `masks` is empty, one row of masks (1: the
  /// choice can work).
  void encode(std::span<const float> observations, std::span<const History> histories,
              std::span<float> features, std::span<std::uint8_t> masks) const;

 private:
  /// Decoys that can be placed in a slot now, as bits.
  unsigned free_decoys(const History& history, std::size_t slot) const;
  bool can_misinform(const History& history, std::size_t slot) const;
  void add_action(const LayoutAction& action, History& history) const;
  void write_flat(const float* observation, const History& history, float* out) const;
  void write_blocks(const float* observation, const History& history, float* out) const;
  float* write_shared(const History& history, float* out) const;
  void write_masks(const History& history, std::uint8_t* out) const;

  struct ClockRow {
    float left;
    std::array<float, kClockFeatures> clock;
  };
  static ClockRow make_clock_row(int step, int horizon);
  const ClockRow& clock_row(const History& history) const;

  struct DecoyChoice {
    LayoutAction action;
    std::size_t choice;
  };
  EncoderTables tables_;
  std::vector<DecoyChoice> decoys_;        // choices whose mask depends on the decoys
  std::vector<LayoutAction> flat_decoys_;  // decoys of a flat row
  std::size_t flat_kinds_;                 // kinds of actions in a flat row
  std::size_t facts_per_slot_;
  FeatureGroups groups_;
  EncoderForm form_;
  std::vector<ClockRow> clock_;  // by steps that have passed
  std::size_t size_;
};

}  // namespace cagepool
