#pragma once
// A batch with the arrays of Python that it writes.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/buffers.hpp"
#include "core/batch.hpp"

namespace cagepool {

template <>
struct RowType<Counters> {
  using Scalar = std::int32_t;
  static constexpr std::size_t kColumns = kCounterCount;
};

template <class Element>
void set_array(const Buffer& buffer, std::span<Element>& array) {
  array = buffer.rows<Element>();
}
template <class Scenario>
void set_array(const Buffer& buffer, Observations<Scenario>& array) {
  array = {};
  const bool is_bytes = buffer.has_type<std::uint8_t>();
  if (is_bytes)
    buffer.check_type<std::uint8_t>(2);
  else
    buffer.check_type<float>(2);
  array.rows = buffer.row_count();
  array.column_count = buffer.column_count();
  if (is_bytes)
    array.bytes = static_cast<std::uint8_t*>(buffer.view().buf);
  else
    array.floats = static_cast<float*>(buffer.view().buf);
}

/// The arrays that a batch writes, by name. They stay alive as long as this lives.
template <class Scenario>
class OutputBuffers {
 public:
  explicit OutputBuffers(const nb::dict& arrays) {
    for_each_output<BasicOutputs<Scenario>>([&](const auto& field) {
      if (!arrays.contains(field.name))
        throw std::invalid_argument("outputs must have an array `" + std::string(field.name) + "`");
      const auto entry =
          buffers_.emplace(field.name, std::make_unique<Buffer>(arrays[field.name], field.name));
      set_array(*entry.first->second, spans_.*field.array);
    });
    for (const auto& [name, array] : arrays) {
      if (!buffers_.contains(nb::cast<std::string>(name)))
        throw std::invalid_argument("outputs must be arrays of a batch, got `" +
                                    nb::cast<std::string>(name) + "`");
    }
  }

  const BasicOutputs<Scenario>& spans() const { return spans_; }
  void replace(const char* name, std::unique_ptr<Buffer> buffer) {
    buffers_[name] = std::move(buffer);
  }

 private:
  std::map<std::string_view, std::unique_ptr<Buffer>> buffers_;
  BasicOutputs<Scenario> spans_;
};

/// Name, possible NumPy types, columns and condition of one output.
using OutputDescription =
    std::tuple<const char*, std::vector<std::string>, std::size_t, OutputCondition>;

template <class Outputs, class Element>
OutputDescription description(const OutputField<Outputs, std::span<Element>>& field) {
  return {field.name,
          {numpy_type<typename RowType<Element>::Scalar>()},
          RowType<Element>::kColumns,
          field.condition};
}
/// The columns follow from the number of slots.
template <class Outputs, class Scenario>
OutputDescription description(const OutputField<Outputs, Observations<Scenario>>& field) {
  return {field.name, {numpy_type<float>(), numpy_type<std::uint8_t>()}, 0, field.condition};
}

template <class Scenario>
std::vector<OutputDescription> output_fields() {
  std::vector<OutputDescription> fields;
  for_each_output<BasicOutputs<Scenario>>(
      [&](const auto& field) { fields.push_back(description(field)); });
  return fields;
}

inline std::vector<GameConfig> configs_of(nb::handle array) {
  const Buffer buffer(array, "configs", Buffer::Access::kRead);
  const auto configs = buffer.rows<const GameConfig>();
  return {configs.begin(), configs.end()};
}

// With fewer games, a step takes less time than releasing and acquiring the GIL.
inline constexpr std::size_t kMinGamesToReleaseGil = 16;

template <class Scenario>
class BoundBatch {
 public:
  BoundBatch(BatchScenarios<Scenario> scenarios, nb::handle configs, const nb::dict& outputs,
             Autoreset autoreset, const ComplianceRule& rule, int threads)
      : buffers_(outputs),
        batch_(std::move(scenarios), configs_of(configs), buffers_.spans(), autoreset, rule,
               threads) {}

  BasicBatch<Scenario>& batch() { return batch_; }

  std::size_t step(nb::handle actions, nb::handle red_actions, nb::handle ids) {
    const IntRow blue(actions, "actions");
    const IntRow red(red_actions, "red_actions", true);
    const IntRow games(ids, "ids", true);
    const auto chosen = games.is_given() ? std::optional(games.span()) : std::nullopt;
    std::optional<nb::gil_scoped_release> release;
    if (blue.span().size() >= kMinGamesToReleaseGil) release.emplace();
    return batch_.step(blue.span(), red.span(), chosen);
  }

  void redirect_observations(nb::handle observations) {
    auto buffer = std::make_unique<Buffer>(observations, "observations");
    Observations<Scenario> array;
    set_array(*buffer, array);
    batch_.redirect_observations(array);
    buffers_.replace("observations", std::move(buffer));
  }

 private:
  OutputBuffers<Scenario> buffers_;
  BasicBatch<Scenario> batch_;
};

}  // namespace cagepool
