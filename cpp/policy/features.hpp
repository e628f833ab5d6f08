#pragma once
// Policy features: encodes blue's observation and its history of the episode as input of a network,
// with a mask of the actions that can work.

#include <cstdint>
#include <span>
#include <vector>

#include "core/actions.hpp"
#include "core/compliance.hpp"

namespace cagepool {

/// History of one game's episode, as far as features depend on it. Plain bytes, so that the caller
/// can store, copy and save it. All zeros at the start of an episode, but for `order`.
struct History {
  Mask scanned;    // hosts on which activity was ever seen
  Mask exploited;  // hosts on which an exploit was ever seen
  Mask latest;     // active hosts of the last step with any activity
  std::uint16_t step;
  std::uint8_t last_kind;
  std::uint8_t last_host;
  Order order;
  std::array<std::uint8_t, kHostCount> decoys;
  Mask restored;  // hosts that blue has restored
};
static_assert(sizeof(History) == 26);

/// Whether a history has values that updates can give; the encoder relies on this.
bool is_possible(const History& history);

/// Features, in this order.
struct FeatureGroups {
  bool observation;  // its 52 values
  bool scans;        // three values per host: `scanned`, `exploited`, `latest` of the history
  bool decoys;       // one value per decoy among the choices: 1 if placed
  bool last_action;  // kind and host, one-hot
  bool time;         // share of the horizon that is left
  bool order;        // 5 x 5, one-hot, row = position
  bool clock;        // share of the horizon that has passed, nearness of the end, phase of the game
  bool restored;     // one value per host: `restored` of the history
};

/// Features of `FeatureGroups::clock`.
inline constexpr std::size_t kClockFeatures = 16;
using ClockRow = std::array<float, kClockFeatures>;

/// Encodes features and action masks of many games at once.
class FeatureEncoder {
 public:
  /// @param choices Actions that the policy chooses from, as indices of the 145.
  /// @param appended Values that the caller appends to each row; `encode` leaves them as they are.
  FeatureEncoder(const std::vector<int>& choices, FeatureGroups groups, int horizon,
                 std::size_t appended = 0);

  /// Features per game.
  std::size_t size() const { return size_; }
  std::size_t choices() const { return can_ever_work_.size(); }

  /// Add to each history the action that was played and the observation that followed.
  void update(std::span<const std::int64_t> actions, std::span<const float> observations,
              std::span<History> histories) const;
  /// Write one row of features per game and, unless `masks` is empty, one row of masks (1: the
  /// choice can work).
  void encode(std::span<const float> observations, std::span<const History> histories,
              std::span<float> features, std::span<std::uint8_t> masks) const;

 private:
  float* write_groups(const History& history, float* out) const;

  struct DecoyChoice {
    BlueAction action;
    std::size_t choice;
  };
  std::vector<std::uint8_t> can_ever_work_;  // by choice
  std::vector<DecoyChoice> decoys_;          // choices that can work, unless their port is taken
  FeatureGroups groups_;
  int horizon_;
  std::vector<ClockRow> clock_;  // by steps that have passed
  std::size_t size_;
};

}  // namespace cagepool
