#include "policy/encoder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace cagepool {
namespace {

constexpr auto kMonitor = static_cast<std::size_t>(BlueKind::kMonitor);
constexpr auto kMisinform = static_cast<std::size_t>(BlueKind::kMisinform);

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

/// Decoys whose port is taken, by the decoys that are placed.
constexpr auto kBlockedDecoys = [] {
  std::array<std::uint8_t, 256> table{};
  for (unsigned placed = 0; placed < table.size(); ++placed) {
    for (unsigned decoy = 0; decoy < kDecoyCount; ++decoy) {
      if ((kPortsOfDecoys[placed] & kDecoyFreePort[decoy]) != 0)
        table[placed] = static_cast<std::uint8_t>(table[placed] | 1u << decoy);
    }
  }
  return table;
}();

/// Decoys that open a port that Misinform could.
constexpr unsigned kTakesMisinform = [] {
  unsigned decoys = 0;
  for (unsigned decoy = 0; decoy < kDecoyCount; ++decoy) {
    for (const MisinformDecoy& other : kMisinformDecoys)
      decoys |= unsigned{(kDecoyPort[decoy] & other.port) != 0} << decoy;
  }
  return decoys;
}();

/// Eight floats, 0 or 1, by the bits of a byte.
constexpr auto kFloatsOfByte = [] {
  std::array<std::array<float, 8>, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (unsigned i = 0; i < 8; ++i) table[byte][i] = static_cast<float>((byte >> i) & 1u);
  }
  return table;
}();

/// Write the lowest `count` bits as floats; returns the end of the output.
float* write_bits(std::uint64_t bits, std::size_t count, float* out) {
  for (; count >= 8; count -= 8, bits >>= 8)
    out = std::ranges::copy(kFloatsOfByte[bits & 255u], out).out;
  return std::copy_n(kFloatsOfByte[bits & 255u].data(), count, out);
}

/// Slots with any activity, and slots with an exploit, in an observation.
std::pair<WideMask, WideMask> active_and_exploited(const float* observation, std::size_t slots) {
  WideMask active = 0;
  WideMask exploited = 0;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const WideMask first = observation[4 * slot] != 0.0F;
    const WideMask second = observation[4 * slot + 1] != 0.0F;
    active |= (first | second) << slot;
    exploited |= (first & second) << slot;
  }
  return {active, exploited};
}

constexpr WideMask slot_bit(std::size_t slot) { return WideMask{1} << slot; }

constexpr std::size_t kSlotTotal = [] {
  std::size_t total = 0;
  for (const auto& [name, count] : kSlotFeatures) total += count;
  return total;
}();

}  // namespace

FeatureEncoder::FeatureEncoder(EncoderTables tables, FeatureGroups groups, EncoderForm form,
                               int horizon, std::size_t appended)
    : tables_(std::move(tables)), flat_kinds_(kMisinform), groups_(groups), form_(form) {
  if (tables_.choices.empty()) throw std::invalid_argument("there must be at least one choice");
  if (horizon < 1) throw std::invalid_argument("the horizon must be at least 1");
  for (std::size_t choice = 0; choice < choices(); ++choice) {
    const LayoutAction& action = tables_.actions[static_cast<std::size_t>(tables_.choices[choice])];
    if (action.kind != BlueKind::kDecoy && action.kind != BlueKind::kMisinform) continue;
    decoys_.push_back({action, choice});
    if (action.kind == BlueKind::kDecoy && ((tables_.fitting[action.slot] >> action.decoy) & 1u))
      flat_decoys_.push_back(action);
  }
  for (const LayoutAction& action : tables_.actions)
    flat_kinds_ = std::max(flat_kinds_, static_cast<std::size_t>(action.kind) + 1);
  const std::size_t slots = tables_.slots;
  facts_per_slot_ = tables_.facts.size() / tables_.fitting.size();
  size_ = appended;
  if (form == EncoderForm::kBlocks) {
    size_ += kSharedFeatures + (groups.order_input ? kOrderFeatures : 0) +
             slots * (facts_per_slot_ + kSlotTotal);
  } else {
    if (groups.observation) size_ += 4 * slots;
    if (groups.scan_memory) size_ += 3 * slots;
    if (groups.decoys_placed) size_ += flat_decoys_.size();
    if (groups.last_action) size_ += flat_kinds_ + slots;
    if (groups.time_left) size_ += 1;
    if (groups.order_input) size_ += kOrderFeatures;
    if (groups.clock) size_ += kClockFeatures;
    if (groups.hosts_restored) size_ += slots;
  }
  for (int step = 0; step <= horizon; ++step) clock_.push_back(make_clock_row(step, horizon));
}

/// Share of the horizon that is left; share that has passed, how near the end is on three time
/// scales, the official lengths that have passed, and the first ten steps, one-hot.
FeatureEncoder::ClockRow FeatureEncoder::make_clock_row(int step, int horizon) {
  const auto left = static_cast<float>(horizon - step);
  ClockRow row{left / static_cast<float>(horizon),
               {static_cast<float>(step) / static_cast<float>(horizon), std::exp2(-left / 2.0F),
                std::exp2(-left / 5.0F), std::exp2(-left / 12.0F), step >= 30 ? 1.0F : 0.0F,
                step >= 50 ? 1.0F : 0.0F}};
  constexpr std::size_t kFirstStep = 6;
  if (kFirstStep + static_cast<std::size_t>(step) < row.clock.size())
    row.clock[kFirstStep + static_cast<std::size_t>(step)] = 1.0F;
  return row;
}

const FeatureEncoder::ClockRow& FeatureEncoder::clock_row(const History& history) const {
  return clock_[std::min<std::size_t>(history.step, clock_.size() - 1)];
}

bool FeatureEncoder::is_possible(const History& history) const {
  const WideMask slots = history.scanned | history.exploited | history.latest | history.restored;
  const WideMask all = ~WideMask{0} >> (kMaxHosts - tables_.slots);
  return (slots & ~all) == 0 && history.last_kind < flat_kinds_ &&
         history.last_slot < tables_.slots && history.order < kOrderCount &&
         history.scenario < tables_.scenarios();
}

unsigned FeatureEncoder::free_decoys(const History& history, std::size_t slot) const {
  return tables_.fitting[history.scenario * tables_.slots + slot] &
         ~unsigned{kBlockedDecoys[history.decoys[slot]]};
}

bool FeatureEncoder::can_misinform(const History& history, std::size_t slot) const {
  const int taken = std::popcount(history.decoys[slot] & kTakesMisinform);
  return tables_.misinforms[history.scenario * tables_.slots + slot] >
         history.misinforms[slot] + taken;
}

void FeatureEncoder::add_action(const LayoutAction& action, History& history) const {
  const std::size_t slot = action.slot;
  if (action.kind == BlueKind::kDecoy) {
    history.decoys[slot] = static_cast<std::uint8_t>(
        history.decoys[slot] | (free_decoys(history, slot) & (1u << action.decoy)));
  } else if (action.kind == BlueKind::kMisinform) {
    history.misinforms[slot] += can_misinform(history, slot);
  } else if (action.kind == BlueKind::kRestore) {
    history.decoys[slot] = 0;
    history.misinforms[slot] = 0;
    history.restored |= slot_bit(slot);
  }
  history.last_kind = static_cast<std::uint8_t>(action.kind);
  history.last_slot = action.slot;
  ++history.step;
}

void FeatureEncoder::update(std::span<const std::int64_t> actions,
                            std::span<const float> observations,
                            std::span<History> histories) const {
  for (std::size_t game = 0; game < histories.size(); ++game) {
    History& history = histories[game];
    add_action(tables_.actions[static_cast<std::size_t>(actions[game])], history);
    const auto [active, exploited] =
        active_and_exploited(&observations[game * observation_size()], tables_.slots);
    history.scanned |= active;
    history.exploited |= exploited;
    if (active != 0) history.latest = active;
  }
}

void FeatureEncoder::encode(std::span<const float> observations, std::span<const History> histories,
                            std::span<float> features, std::span<std::uint8_t> masks) const {
  for (std::size_t game = 0; game < histories.size(); ++game) {
    const float* const observation = &observations[game * observation_size()];
    float* const row = &features[game * size_];
    if (form_ == EncoderForm::kFlat)
      write_flat(observation, histories[game], row);
    else
      write_blocks(observation, histories[game], row);
    if (!masks.empty()) write_masks(histories[game], &masks[game * choices()]);
  }
}

void FeatureEncoder::write_masks(const History& history, std::uint8_t* out) const {
  std::copy_n(&tables_.possible[history.scenario * choices()], choices(), out);
  for (const auto& [action, choice] : decoys_) {
    const bool works = action.kind == BlueKind::kDecoy
                           ? ((free_decoys(history, action.slot) >> action.decoy) & 1u) != 0
                           : can_misinform(history, action.slot);
    out[choice] &= static_cast<std::uint8_t>(works);
  }
}

void FeatureEncoder::write_flat(const float* observation, const History& history,
                                float* out) const {
  const std::size_t slots = tables_.slots;
  if (groups_.observation) out = std::copy_n(observation, 4 * slots, out);
  if (groups_.scan_memory) {
    for (const WideMask seen : {history.scanned, history.exploited, history.latest})
      out = write_bits(seen, slots, out);
  }
  if (groups_.decoys_placed) {
    for (const LayoutAction& decoy : flat_decoys_)
      *out++ = static_cast<float>((history.decoys[decoy.slot] >> decoy.decoy) & 1u);
  }
  if (groups_.last_action) {
    const bool has_action = history.step != 0;
    const bool has_slot = has_action && history.last_kind > kMonitor;
    out = write_bits(has_action ? 1u << history.last_kind : 0, flat_kinds_, out);
    out = write_bits(has_slot ? slot_bit(history.last_slot) : 0, slots, out);
  }
  if (groups_.time_left) *out++ = clock_row(history).left;
  if (groups_.order_input) {
    for (const std::uint8_t type : kTypesInOrder[history.order])
      out = write_bits(1u << type, kTypeCount, out);
  }
  if (groups_.clock) out = std::ranges::copy(clock_row(history).clock, out).out;
  if (groups_.hosts_restored) write_bits(history.restored, slots, out);  // the last group
}

float* FeatureEncoder::write_shared(const History& history, float* out) const {
  const ClockRow& row = clock_row(history);
  *out++ = groups_.time_left ? row.left : 0.0F;
  out = groups_.clock ? std::ranges::copy(row.clock, out).out
                      : std::fill_n(out, kClockFeatures, 0.0F);
  const bool shows_action = groups_.last_action && history.step != 0;
  out = write_bits(shows_action ? 1u << history.last_kind : 0, kMonitor + 1, out);
  out = std::copy_n(&tables_.sizes[std::size_t{2} * history.scenario], 2, out);
  if (groups_.order_input) {
    for (const std::uint8_t type : kTypesInOrder[history.order])
      out = write_bits(1u << type, kTypeCount, out);
  }
  return out;
}

void FeatureEncoder::write_blocks(const float* observation, const History& history,
                                  float* out) const {
  out = write_shared(history, out);
  const std::size_t first = history.scenario * tables_.slots;
  const WideMask exploited = groups_.scan_memory ? history.exploited : 0;
  const WideMask latest = groups_.scan_memory ? history.latest : 0;
  const WideMask scanned = groups_.scan_memory ? history.scanned : 0;
  const WideMask restored = groups_.hosts_restored ? history.restored : 0;
  const bool shows_action =
      groups_.last_action && history.step != 0 && history.last_kind > kMonitor;
  for (std::size_t slot = 0; slot < tables_.slots; ++slot) {
    out = std::copy_n(&tables_.facts[(first + slot) * facts_per_slot_], facts_per_slot_, out);
    out = groups_.observation ? std::copy_n(&observation[4 * slot], 4, out)
                              : std::fill_n(out, 4, 0.0F);
    for (const WideMask slots : {scanned, exploited, latest})
      *out++ = static_cast<float>((slots >> slot) & 1u);
    const WideMask links = tables_.revealed_by[first + slot];
    *out++ = (links & exploited) != 0 ? 1.0F : 0.0F;
    *out++ = (links & latest) != 0 ? 1.0F : 0.0F;
    out = write_bits(groups_.decoys_placed ? history.decoys[slot] : 0u, kDecoyCount, out);
    out = write_bits(free_decoys(history, slot), kDecoyCount, out);
    *out++ = groups_.decoys_placed ? static_cast<float>(history.misinforms[slot]) : 0.0F;
    *out++ = groups_.decoys_placed && can_misinform(history, slot) ? 1.0F : 0.0F;
    const bool is_last = shows_action && history.last_slot == slot;
    out = write_bits(is_last ? (1u << history.last_kind) >> (kMonitor + 1) : 0u,
                     kMisinform - kMonitor, out);
    *out++ = static_cast<float>((restored >> slot) & 1u);
  }
}

}  // namespace cagepool
