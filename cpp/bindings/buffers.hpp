#pragma once
// Arrays that Python owns and C++ reads or writes. Nothing is converted or copied: an array of
// another type is refused with a TypeError.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace cagepool {

namespace nb = nanobind;

template <class Value>
using Row = nb::ndarray<Value, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class Value>
using Rows = nb::ndarray<Value, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto span_of(const Array& array) {
  return std::span(array.data(), array.size());
}

/// NumPy's name of a type, such as "f4". An enumeration counts as its integer.
template <class Value>
std::string numpy_type() {
  if constexpr (std::is_enum_v<Value>) {
    return numpy_type<std::underlying_type_t<Value>>();
  } else if constexpr (std::is_same_v<Value, bool>) {
    return "?";
  } else {
    const char kind = std::is_floating_point_v<Value> ? 'f' : std::is_signed_v<Value> ? 'i' : 'u';
    return kind + std::to_string(sizeof(Value));
  }
}

/// Row of an array of `Element`: NumPy's scalar type, and columns (1: one dimension). A struct is a
/// row of bytes.
template <class Element>
struct RowType {
  using Scalar = Element;
  static constexpr std::size_t kColumns = 1;
};
template <class Struct>
  requires std::is_class_v<Struct>
struct RowType<Struct> {
  using Scalar = std::uint8_t;
  static constexpr std::size_t kColumns = sizeof(Struct);
};
template <class Value, std::size_t kSize>
  requires std::is_class_v<std::array<Value, kSize>>
struct RowType<std::array<Value, kSize>> {
  using Scalar = Value;
  static constexpr std::size_t kColumns = kSize;
};

/// Memory of an object that supports Python's buffer protocol, C-contiguous. The object stays alive
/// and keeps its size as long as this lives. Cheaper than nanobind's arrays, which go through
/// DLPack: that takes several times as long as stepping a game.
class Buffer {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };

  Buffer(nb::handle object, const char* name, Access access = Access::kWrite) : name_(name) {
    const bool is_written = access == Access::kWrite;
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) == 0) return;
    PyErr_Clear();
    throw wrong_type(is_written ? "a writable C-contiguous array" : "a C-contiguous array",
                     nb::repr(object).c_str());
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const Py_buffer& view() const { return view_; }

  template <class Value>
  Value& at(std::int32_t index) const {
    return static_cast<Value*>(view_.buf)[index];
  }

  template <class Scalar>
  bool has_type() const {
    constexpr const char* kCodes = std::is_same_v<Scalar, bool>       ? "?"
                                   : std::is_floating_point_v<Scalar> ? "fd"
                                   : std::is_signed_v<Scalar>         ? "bhilq"
                                                                      : "BHILQ";
    return std::strlen(view_.format) == 1 && std::strchr(kCodes, *view_.format) != nullptr &&
           view_.itemsize == sizeof(Scalar);
  }

  /// The array as a span of rows; throws if it has another type or shape.
  template <class Element>
  std::span<Element> rows() const {
    using Scalar = typename RowType<std::remove_const_t<Element>>::Scalar;
    constexpr std::size_t kColumns = RowType<std::remove_const_t<Element>>::kColumns;
    const int rank = kColumns == 1 ? 1 : 2;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(view_.buf) % alignof(Element) == 0;
    if (!has_type<Scalar>() || view_.ndim != rank || !is_aligned) {
      throw wrong_type(
          "an aligned array of type " + numpy_type<Scalar>() + " and rank " + std::to_string(rank),
          "type " + std::string(view_.format) + " and rank " + std::to_string(view_.ndim));
    }
    if (rank == 2 && std::cmp_not_equal(view_.shape[1], kColumns)) {
      throw std::invalid_argument(std::string(name_) + " must have " + std::to_string(kColumns) +
                                  " columns, got " + std::to_string(view_.shape[1]));
    }
    return {static_cast<Element*>(view_.buf), static_cast<std::size_t>(view_.shape[0])};
  }

  nb::builtin_exception wrong_type(const std::string& wanted, const std::string& given) const {
    return nb::type_error((std::string(name_) + " must be " + wanted + ", got " + given).c_str());
  }

 private:
  const char* name_;  // a literal
  Py_buffer view_{};
};

/// An int64 array of one dimension, or None. Used in every step, so it is leaner than `Buffer`.
class IntRow {
 public:
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
    if (is_given()) PyBuffer_Release(&view_);
  }
  IntRow(const IntRow&) = delete;
  IntRow& operator=(const IntRow&) = delete;

  bool is_given() const { return view_.obj != nullptr; }
  std::span<const std::int64_t> span() const {
    if (!is_given()) return {};
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
