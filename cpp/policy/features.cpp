#include "policy/features.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace cagepool {
namespace {

constexpr std::size_t kBlueKinds = 6;
constexpr std::size_t kOrderFeatures = std::size_t{kTypeCount} * kTypeCount;

/// Host types by order and position.
constexpr auto kTypesInOrder = [] {
  std::array<std::array<std::uint8_t, kTypeCount>, kOrderCount> table{};
  std::array<std::uint8_t, kTypeCount> order{0, 1, 2, 3, 4};
  for (auto& row : table) {
    row = order;
    std::ranges::next_permutation(order);
  }
  return table;
}();

/// Write the lowest `count` bits as floats; returns the end of the output.
float* write_bits(unsigned bits, int count, float* out) {
  for (int i = 0; i < count; ++i) *out++ = static_cast<float>((bits >> i) & 1u);
  return out;
}

/// Hosts with any activity, and hosts with an exploit, in an observation.
std::pair<Mask, Mask> active_and_exploited(const float* observation) {
  unsigned active = 0;
  unsigned exploited = 0;
  for (std::size_t host = 0; host < kHostCount; ++host) {
    const unsigned first = observation[4 * host] != 0.0F;
    const unsigned second = observation[4 * host + 1] != 0.0F;
    active |= (first | second) << host;
    exploited |= (first & second) << host;
  }
  return {static_cast<Mask>(active), static_cast<Mask>(exploited)};
}

/// Share of the horizon that has passed, how near the end is on three time scales, the official
/// lengths that have passed, and the first ten steps, one-hot.
ClockRow make_clock_row(int step, int horizon) {
  const auto left = static_cast<float>(horizon - step);
  ClockRow row{static_cast<float>(step) / static_cast<float>(horizon),
               std::exp2(-left / 2.0F),
               std::exp2(-left / 5.0F),
               std::exp2(-left / 12.0F),
               step >= 30 ? 1.0F : 0.0F,
               step >= 50 ? 1.0F : 0.0F};
  constexpr std::size_t kFirstStep = 6;
  if (kFirstStep + static_cast<std::size_t>(step) < row.size())
    row[kFirstStep + static_cast<std::size_t>(step)] = 1.0F;
  return row;
}

/// Whether an action can have an effect, given the decoys that were placed.
bool can_work(const BlueAction& action, const History& history) {
  if (action.kind != BlueKind::kDecoy) return true;
  return action.decoy_bit != 0 &&
         (kPortsOfDecoys[history.decoys[action.host]] & action.free_port) == 0;
}

}  // namespace

bool is_possible(const History& history) {
  const Mask hosts = history.scanned | history.exploited | history.latest | history.restored;
  return (hosts & ~kAllHosts) == 0 && history.last_kind < kBlueKinds &&
         history.last_host < kHostCount && history.order < kOrderCount;
}

FeatureEncoder::FeatureEncoder(const std::vector<int>& choices, FeatureGroups groups, int horizon,
                               std::size_t appended)
    : groups_(groups), horizon_(horizon) {
  if (choices.empty()) throw std::invalid_argument("there must be at least one choice");
  if (horizon < 1) throw std::invalid_argument("the horizon must be at least 1");
  for (const int index : choices) {
    if (index < 0 || index >= kActionCount)
      throw std::out_of_range("a choice must be below 145, got " + std::to_string(index));
    const BlueAction& action = kBlueActions[static_cast<std::size_t>(index)];
    if (action.decoy_bit != 0) decoys_.push_back({action, can_ever_work_.size()});
    can_ever_work_.push_back(action.kind != BlueKind::kDecoy || action.decoy_bit != 0);
  }
  size_ = appended;
  if (groups.observation) size_ += kObservationSize;
  if (groups.scans) size_ += std::size_t{3} * kHostCount;
  if (groups.decoys) size_ += decoys_.size();
  if (groups.last_action) size_ += kBlueKinds + kHostCount;
  if (groups.time) size_ += 1;
  if (groups.order) size_ += kOrderFeatures;
  if (groups.clock) size_ += kClockFeatures;
  if (groups.restored) size_ += kHostCount;
  for (int step = 0; groups.clock && step <= horizon; ++step)
    clock_.push_back(make_clock_row(step, horizon));
}

void FeatureEncoder::update(std::span<const std::int64_t> actions,
                            std::span<const float> observations,
                            std::span<History> histories) const {
  for (std::size_t game = 0; game < histories.size(); ++game) {
    History& history = histories[game];
    const BlueAction& action = kBlueActions[static_cast<std::size_t>(actions[game])];
    if (action.kind == BlueKind::kDecoy && can_work(action, history))
      history.decoys[action.host] |= action.decoy_bit;
    if (action.kind == BlueKind::kRestore) {
      history.decoys[action.host] = 0;
      history.restored |= bit(action.host);
    }
    history.last_kind = static_cast<std::uint8_t>(action.kind);
    history.last_host = action.host;
    ++history.step;
    const auto [active, exploited] = active_and_exploited(&observations[game * kObservationSize]);
    history.scanned |= active;
    history.exploited |= exploited;
    if (active != 0) history.latest = active;
  }
}

void FeatureEncoder::encode(std::span<const float> observations, std::span<const History> histories,
                            std::span<float> features, std::span<std::uint8_t> masks) const {
  std::uint8_t* mask = masks.data();
  for (std::size_t game = 0; game < histories.size(); ++game) {
    float* row = &features[game * size_];
    if (groups_.observation)
      row = std::copy_n(&observations[game * kObservationSize], kObservationSize, row);
    write_groups(histories[game], row);
    if (masks.empty()) continue;
    std::copy_n(can_ever_work_.data(), can_ever_work_.size(), mask);
    for (const auto& [action, choice] : decoys_) mask[choice] = can_work(action, histories[game]);
    mask += can_ever_work_.size();
  }
}

float* FeatureEncoder::write_groups(const History& history, float* out) const {
  if (groups_.scans) {
    for (const Mask hosts : {history.scanned, history.exploited, history.latest})
      out = write_bits(hosts, kHostCount, out);
  }
  if (groups_.decoys) {
    for (const auto& [action, choice] : decoys_)
      *out++ = (history.decoys[action.host] & action.decoy_bit) != 0 ? 1.0F : 0.0F;
  }
  if (groups_.last_action) {
    const bool has_action = history.step != 0;
    const bool has_host =
        has_action && history.last_kind > static_cast<std::uint8_t>(BlueKind::kMonitor);
    out = write_bits(has_action ? 1u << history.last_kind : 0, kBlueKinds, out);
    out = write_bits(has_host ? 1u << history.last_host : 0, kHostCount, out);
  }
  if (groups_.time) {
    const float left = static_cast<float>(horizon_ - history.step) / static_cast<float>(horizon_);
    *out++ = std::max(left, 0.0F);
  }
  if (groups_.order) {
    for (const std::uint8_t type : kTypesInOrder[history.order])
      out = write_bits(1u << type, kTypeCount, out);
  }
  if (groups_.clock) {
    const ClockRow& row = clock_[std::min<std::size_t>(history.step, clock_.size() - 1)];
    out = std::ranges::copy(row, out).out;
  }
  if (groups_.restored) out = write_bits(history.restored, kHostCount, out);
  return out;
}

}  // namespace cagepool
