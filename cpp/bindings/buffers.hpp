#pragma once
// Arrays that Python owns and the core reads and writes.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstring>
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

/// Memory of a Python object that supports the buffer protocol. The object stays alive, and is not
/// resized, as long as this lives.
class Buffer {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };

  explicit Buffer(nb::handle object, Access access = Access::kWrite) {
    const int flags =
        PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (access == Access::kWrite ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) nb::raise_python_error();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const Py_buffer& view() const { return view_; }
  template <class Value>
  Value& at(std::int32_t index) const {
    return static_cast<Value*>(view_.buf)[index];
  }

 private:
  Py_buffer view_{};
};

/// A row of int64 that Python owns, taken through the buffer protocol: nanobind's own arrays go
/// through DLPack, which costs several times as much as stepping a game.
class IntRow {
 public:
  /// Nothing is converted; None is an empty row if it is allowed.
  IntRow(nb::handle object, const char* name, bool may_be_none = false) {
    if (may_be_none && object.is_none()) return;
    const bool is_buffer =
        PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0;
    if (is_buffer && is_row()) return;
    if (is_buffer) PyBuffer_Release(&view_);
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "%s must be a contiguous int64 array of one dimension, got %.100s", name,
                 nb::repr(object).c_str());
    throw nb::python_error();
  }
  ~IntRow() {
    if (given()) PyBuffer_Release(&view_);
  }
  IntRow(const IntRow&) = delete;
  IntRow& operator=(const IntRow&) = delete;

  bool given() const { return view_.obj != nullptr; }
  std::span<const std::int64_t> span() const {
    if (!given()) return {};
    return {static_cast<const std::int64_t*>(view_.buf), static_cast<std::size_t>(view_.shape[0])};
  }

 private:
  bool is_row() const {
    const bool is_int64 =
        std::strcmp(view_.format, "l") == 0 || std::strcmp(view_.format, "q") == 0;
    return view_.ndim == 1 && view_.itemsize == sizeof(std::int64_t) && is_int64;
  }

  Py_buffer view_{};
};

}  // namespace cagepool
