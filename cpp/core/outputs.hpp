#pragma once
// The arrays that a batch writes, one element per game. Each output is a member of `Outputs` and a
// row of `kOutputFields`; the size checks, the Python bindings and the allocation in Python follow
// the table.

#include <span>
#include <tuple>

#include "core/compliance.hpp"
#include "core/observe.hpp"

namespace cagepool {

template <class Value>
using Observation = std::array<Value, kObservationSize>;

/// Observations as floats or as bytes; the other span is empty.
struct ObservationArray {
  std::span<Observation<float>> floats;
  std::span<Observation<std::uint8_t>> bytes;

  bool is_bytes() const { return !bytes.empty(); }
  std::size_t size() const { return is_bytes() ? bytes.size() : floats.size(); }
  template <class Value>
  std::span<Observation<Value>> as() const {
    if constexpr (std::is_same_v<Value, float>)
      return floats;
    else
      return bytes;
  }
};

/// The memory belongs to the caller and must outlive the batch.
struct Outputs {
  ObservationArray observations;
  std::span<double> rewards;
  std::span<bool> truncations;
  std::span<Moves> moves;
  std::span<TrueState> true_state;
  // Of the last finished episode of each game.
  ObservationArray final_observations;
  std::span<TrueState> final_true_state;
  std::span<double> episode_returns;
  std::span<std::int32_t> episode_lengths;
  std::span<Counters> episode_counters;
  // Compliance with a workflow order; `orders` is an input, which the caller may change between
  // episodes.
  std::span<Order> orders;
  std::span<Counters> counters;
  std::span<double> alignment;  // reward of the last step

  bool tracks_compliance() const { return !counters.empty(); }
};

/// Batches that have an output; in others it is empty.
enum class OutputCondition : std::uint8_t { kAlways, kSameStepReset, kOrder };

template <class Array>
struct OutputField {
  const char* name;
  Array Outputs::* array;
  OutputCondition condition = OutputCondition::kAlways;
};

inline constexpr std::tuple kOutputFields{
    OutputField{"observations", &Outputs::observations},
    OutputField{"rewards", &Outputs::rewards},
    OutputField{"truncations", &Outputs::truncations},
    OutputField{"moves", &Outputs::moves},
    OutputField{"true_state", &Outputs::true_state},
    OutputField{"final_observations", &Outputs::final_observations,
                OutputCondition::kSameStepReset},
    OutputField{"final_true_state", &Outputs::final_true_state, OutputCondition::kSameStepReset},
    OutputField{"episode_returns", &Outputs::episode_returns},
    OutputField{"episode_lengths", &Outputs::episode_lengths},
    OutputField{"episode_counters", &Outputs::episode_counters, OutputCondition::kOrder},
    OutputField{"orders", &Outputs::orders, OutputCondition::kOrder},
    OutputField{"counters", &Outputs::counters, OutputCondition::kOrder},
    OutputField{"alignment", &Outputs::alignment, OutputCondition::kOrder},
};

/// Call `visit` with each field.
template <class Visitor>
void for_each_output(Visitor visit) {
  std::apply([&visit](const auto&... fields) { (visit(fields), ...); }, kOutputFields);
}

}  // namespace cagepool
