#pragma once
// The arrays that a batch writes, one element per game. Each output is a member of `BasicOutputs`
// and a row of `kOutputFields`; the size checks, the Python bindings and the allocation in Python
// follow the table.

#include <span>
#include <tuple>

#include "core/compliance.hpp"
#include "core/observe.hpp"

namespace cagepool {

/// Observations of blue, four columns per slot, as floats or as bytes; the other pointer is null.
template <class Scenario>
struct Observations {
  float* floats = nullptr;
  std::uint8_t* bytes = nullptr;
  std::size_t rows = 0;
  std::size_t column_count = 0;

  bool is_bytes() const { return bytes != nullptr; }
  std::size_t size() const { return rows; }
  /// A constant in Scenario2, so that the compiler sees it.
  std::size_t columns() const {
    if constexpr (Scenario::kIsTable)
      return column_count;
    else
      return kObservationSize;
  }
  template <class Value>
  Value* row(std::size_t id) const {
    if constexpr (std::is_same_v<Value, float>)
      return floats + id * columns();
    else
      return bytes + id * columns();
  }
};

/// The memory belongs to the caller and must outlive the batch.
template <class Scenario>
struct BasicOutputs {
  Observations<Scenario> observations;
  std::span<double> rewards;
  std::span<bool> truncations;
  std::span<Moves> moves;
  std::span<typename Scenario::TrueState> true_state;
  // Of the last finished episode of each game.
  Observations<Scenario> final_observations;
  std::span<typename Scenario::TrueState> final_true_state;
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
using Outputs = BasicOutputs<CompiledScenario>;

/// Batches that have an output; in others it is empty.
enum class OutputCondition : std::uint8_t { kAlways, kSameStepReset, kOrder };

template <class Outputs, class Array>
struct OutputField {
  const char* name;
  Array Outputs::* array;
  OutputCondition condition = OutputCondition::kAlways;
};

template <class Outputs>
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
template <class Outputs, class Visitor>
void for_each_output(Visitor visit) {
  std::apply([&visit](const auto&... fields) { (visit(fields), ...); }, kOutputFields<Outputs>);
}

}  // namespace cagepool
