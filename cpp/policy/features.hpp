#pragma once
// What blue can remember of an episode, and the policy inputs made of it.

#include <cstdint>
#include <span>
#include <vector>

#include "core/actions.hpp"
#include "core/compliance.hpp"

namespace cagepool {

/// What blue remembers of one game. Plain bytes, so that the caller can keep, copy and save them.
struct Memory {
  Mask scanned;    // hosts on which activity was ever seen
  Mask exploited;  // hosts on which an exploit was ever seen
  Mask latest;     // hosts that were active when any last was
  std::uint16_t step;
  std::uint8_t last_kind;
  std::uint8_t last_host;
  std::uint8_t order;
  std::uint8_t decoys[kHosts];
};
static_assert(sizeof(Memory) == 24);

/// Which inputs a policy gets beside the observation, in this order.
struct InputGroups {
  bool scans;        // three values a host: ever active, ever exploited, active last
  bool decoys;       // a value for each decoy among the choices: placed or not
  bool last_action;  // kind and host, one-hot
  bool time;         // share of the horizon that is left
  bool order;        // 5 x 5, one-hot, row = position
};

/// Turns observations into policy inputs and masks of choices, for many games at once.
class Inputs {
 public:
  /// `choices`: the actions among which the policy picks, by their official numbers.
  Inputs(const std::vector<int>& choices, InputGroups groups, int horizon);

  std::size_t size() const { return size_; }
  std::size_t choices() const { return possible_.size(); }

  /// Take note of what was played in each game and of what blue saw next.
  void advance(std::span<const std::int64_t> actions, std::span<const float> observations,
               std::span<Memory> memories) const;
  /// Write a row of inputs, and one of masks (1: can work) unless there is none, for each game.
  void write(std::span<const float> observations, std::span<const Memory> memories,
             std::span<float> inputs, std::span<std::uint8_t> masks) const;

 private:
  float* write_groups(const Memory& memory, float* out) const;

  struct Decoy {
    BlueAction action;
    std::size_t choice;
  };
  std::vector<std::uint8_t> possible_;  // by choice: whether it can work at all
  std::vector<Decoy> decoys_;           // the choices that can work at some times only
  InputGroups groups_;
  int horizon_;
  std::size_t size_;
};

}  // namespace cagepool
