#pragma once
// Arrays that Python owns and the core reads and writes.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

namespace cagepool {

namespace nb = nanobind;

template <class Value>
using Row = nb::ndarray<Value, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class Value>
using Rows = nb::ndarray<Value, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
/// Structs cross as rows of bytes.
using Bytes = Rows<std::uint8_t>;

template <class Array>
auto span_of(const Array& array) {
  return std::span(array.data(), array.size());
}

template <class Value>
std::span<const Value> span_of(const std::optional<Row<const Value>>& array) {
  return array ? std::span<const Value>(array->data(), array->size()) : std::span<const Value>();
}

/// The rows of a byte array as structs; each row must be exactly one.
template <class Struct>
std::span<Struct> structs_of(const Bytes& array, const char* name) {
  if (array.shape(1) != sizeof(Struct)) {
    throw std::invalid_argument(std::string(name) + " must have rows of " +
                                std::to_string(sizeof(Struct)) + " bytes, got " +
                                std::to_string(array.shape(1)));
  }
  return {reinterpret_cast<Struct*>(array.data()), array.shape(0)};
}

}  // namespace cagepool
