#include "policy/features.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace cagepool {
namespace {

constexpr std::size_t kBlueKinds = 6;
constexpr std::size_t kOrderInputs = std::size_t{kTypes} * kTypes;
constexpr std::array<std::array<std::uint8_t, kTypes>, kOrders> make_orders() {
  std::array<std::array<std::uint8_t, kTypes>, kOrders> table{};
  std::array<std::uint8_t, kTypes> order{0, 1, 2, 3, 4};
  for (auto& row : table) {
    row = order;
    std::ranges::next_permutation(order);
  }
  return table;
}
constexpr auto kTypesInOrder = make_orders();

/// Set bits as ones, the others as zeros.
float* write_bits(unsigned bits, int count, float* out) {
  for (int i = 0; i < count; ++i) *out++ = static_cast<float>((bits >> i) & 1u);
  return out;
}

/// Hosts whose activity bits, the first two of four, are set: any, and those of an exploit.
std::pair<Mask, Mask> activity(const float* observation) {
  unsigned active = 0;
  unsigned exploits = 0;
  for (std::size_t host = 0; host < kHosts; ++host) {
    const unsigned first = observation[4 * host] != 0.0F;
    const unsigned second = observation[4 * host + 1] != 0.0F;
    active |= (first | second) << host;
    exploits |= (first & second) << host;
  }
  return {static_cast<Mask>(active), static_cast<Mask>(exploits)};
}

bool can_work(const BlueAction& action, const Memory& memory) {
  if (action.kind != BlueKind::kDecoy) return true;
  return action.places != 0 && (kOpened[memory.decoys[action.host]] & action.needs) == 0;
}

}  // namespace

Inputs::Inputs(const std::vector<int>& choices, InputGroups groups, int horizon)
    : groups_(groups), horizon_(horizon) {
  if (choices.empty()) throw std::invalid_argument("there must be at least one choice");
  if (horizon < 1) throw std::invalid_argument("the horizon must be at least 1");
  for (const int number : choices) {
    if (number < 0 || number >= kActions)
      throw std::out_of_range("a choice must be below 145, got " + std::to_string(number));
    const BlueAction& action = kBlueActions[static_cast<std::size_t>(number)];
    if (action.places != 0) decoys_.push_back({action, possible_.size()});
    possible_.push_back(action.kind != BlueKind::kDecoy || action.places != 0);
  }
  size_ = kObservationSize;
  if (groups.scans) size_ += std::size_t{3} * kHosts;
  if (groups.decoys) size_ += decoys_.size();
  if (groups.last_action) size_ += kBlueKinds + kHosts;
  if (groups.time) size_ += 1;
  if (groups.order) size_ += kOrderInputs;
}

void Inputs::advance(std::span<const std::int64_t> actions, std::span<const float> observations,
                     std::span<Memory> memories) const {
  for (std::size_t game = 0; game < memories.size(); ++game) {
    Memory& memory = memories[game];
    const BlueAction& action = kBlueActions[static_cast<std::size_t>(actions[game])];
    if (action.kind == BlueKind::kDecoy && can_work(action, memory))
      memory.decoys[action.host] |= action.places;
    if (action.kind == BlueKind::kRestore) memory.decoys[action.host] = 0;
    memory.last_kind = static_cast<std::uint8_t>(action.kind);
    memory.last_host = action.host;
    ++memory.step;
    const auto [active, exploits] = activity(&observations[game * kObservationSize]);
    memory.scanned |= active;
    memory.exploited |= exploits;
    if (active != 0) memory.latest = active;
  }
}

void Inputs::write(std::span<const float> observations, std::span<const Memory> memories,
                   std::span<float> inputs, std::span<std::uint8_t> masks) const {
  std::uint8_t* mask = masks.data();
  for (std::size_t game = 0; game < memories.size(); ++game) {
    float* row = &inputs[game * size_];
    std::copy_n(&observations[game * kObservationSize], kObservationSize, row);
    write_groups(memories[game], row + kObservationSize);
    if (masks.empty()) continue;
    std::copy_n(possible_.data(), possible_.size(), mask);
    for (const Decoy& decoy : decoys_) mask[decoy.choice] = can_work(decoy.action, memories[game]);
    mask += possible_.size();
  }
}

float* Inputs::write_groups(const Memory& memory, float* out) const {
  if (groups_.scans) {
    for (const Mask hosts : {memory.scanned, memory.exploited, memory.latest})
      out = write_bits(hosts, kHosts, out);
  }
  if (groups_.decoys) {
    for (const auto& [action, choice] : decoys_)
      *out++ = (memory.decoys[action.host] & action.places) != 0 ? 1.0F : 0.0F;
  }
  if (groups_.last_action) {
    const bool none = memory.step == 0;
    const bool names_host = memory.last_kind > static_cast<std::uint8_t>(BlueKind::kMonitor);
    out = write_bits(none ? 0 : 1u << memory.last_kind, kBlueKinds, out);
    out = write_bits(none || !names_host ? 0 : 1u << memory.last_host, kHosts, out);
  }
  if (groups_.time) {
    const float left = static_cast<float>(horizon_ - memory.step) / static_cast<float>(horizon_);
    *out++ = std::max(left, 0.0F);
  }
  if (groups_.order) {
    for (const std::uint8_t type : kTypesInOrder[memory.order])
      out = write_bits(1u << type, kTypes, out);
  }
  return out;
}

}  // namespace cagepool
