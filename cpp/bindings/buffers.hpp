#pragma once
// Arrays that Python owns and C++ reads or writes. Nothing is converted or copied: an array of
// another type is refused with a TypeError.

#include <nanobind/nanobind.h>

#include <algorithm>
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

/// An object in one line of at most 100 characters, for messages.
inline std::string short_repr(nb::handle object) {
  std::string text = nb::repr(object).c_str();
  if (text.size() > 100) text = text.substr(0, 97) + "...";
  std::ranges::replace(text, '\n', ' ');
  return text;
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
  requires(!std::is_class_v<Value>)
struct RowType<std::array<Value, kSize>> {
  using Scalar = Value;
  static constexpr std::size_t kColumns = kSize;
};

/// An array of structs or of arrays: its bytes.
template <class Value, std::size_t kSize>
  requires std::is_class_v<Value>
struct RowType<std::array<Value, kSize>> {
  using Scalar = std::uint8_t;
  static constexpr std::size_t kColumns = kSize * sizeof(Value);
};

/// Memory of an object that supports Python's buffer protocol, C-contiguous. The object stays alive
/// and keeps its size as long as this lives. Its values may be changed by other threads at any
/// time, even with the GIL held: what must be in range is copied and then checked. Cheaper than
/// nanobind's arrays, which go through DLPack: that takes several times as long as stepping a game.
class Buffer {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };

  Buffer(nb::handle object, const char* name, Access access = Access::kWrite) : name_(name) {
    const bool is_written = access == Access::kWrite;
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) == 0) return;
    PyErr_Clear();
    throw wrong_type(is_written ? "a writable C-contiguous array" : "a C-contiguous array",
                     short_repr(object));
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
    return std::strlen(format()) == 1 && std::strchr(kCodes, *format()) != nullptr &&
           view_.itemsize == sizeof(Scalar);
  }

  /// The array as a span of rows; throws if it has another type or shape.
  template <class Element>
  std::span<Element> rows() const {
    using Scalar = typename RowType<std::remove_const_t<Element>>::Scalar;
    constexpr std::size_t kColumns = RowType<std::remove_const_t<Element>>::kColumns;
    check_type<Scalar>(kColumns == 1 ? 1 : 2, alignof(Element));
    if (kColumns > 1) check_columns(kColumns);
    return {static_cast<Element*>(view_.buf), row_count()};
  }

  std::size_t row_count() const { return static_cast<std::size_t>(view_.shape[0]); }
  std::size_t column_count() const { return static_cast<std::size_t>(view_.shape[1]); }

  template <class Scalar>
  void check_type(int rank, std::size_t alignment = alignof(Scalar)) const {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(view_.buf) % alignment == 0;
    if (has_type<std::remove_const_t<Scalar>>() && view_.ndim == rank && is_aligned) return;
    throw wrong_type("an aligned array of type " + numpy_type<std::remove_const_t<Scalar>>() +
                         " and rank " + std::to_string(rank),
                     (is_aligned ? "type " : "unaligned type ") + std::string(format()) +
                         " and rank " + std::to_string(view_.ndim));
  }

  void check_columns(std::size_t columns) const {
    if (column_count() == columns) return;
    throw std::invalid_argument(std::string(name_) + " must have " + std::to_string(columns) +
                                " columns, got " + std::to_string(column_count()));
  }

  void check_rows(std::size_t rows) const {
    if (row_count() == rows) return;
    throw std::invalid_argument(std::string(name_) + " must have " + std::to_string(rows) +
                                " rows, got " + std::to_string(row_count()));
  }

  nb::builtin_exception wrong_type(const std::string& wanted, const std::string& given) const {
    return nb::type_error((std::string(name_) + " must be " + wanted + ", got " + given).c_str());
  }

 private:
  /// Some exporters leave out the format of bytes.
  const char* format() const { return view_.format == nullptr ? "B" : view_.format; }

  const char* name_;  // a literal
  Py_buffer view_{};
};

/// An array of scalars with one or two dimensions; it is written unless `Scalar` is const.
template <class Scalar, int kRank>
class Array : public Buffer {
 public:
  Array(nb::handle object, const char* name)
      : Buffer(object, name, std::is_const_v<Scalar> ? Access::kRead : Access::kWrite) {
    check_type<Scalar>(kRank);
  }

  std::span<Scalar> span() const {
    const std::size_t columns = kRank == 1 ? 1 : column_count();
    return {static_cast<Scalar*>(view().buf), row_count() * columns};
  }
};
template <class Scalar>
using Row = Array<Scalar, 1>;
template <class Scalar>
using Rows = Array<Scalar, 2>;

/// An int64 array of one dimension, or None. Used in every step, so it is leaner than `Buffer`.
class IntRow {
 public:
  IntRow(nb::handle object, const char* name, bool may_be_none = false) {
    if (may_be_none && object.is_none()) return;
    const bool is_buffer =
        PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0;
    if (is_buffer && is_row()) return;
    if (is_buffer) PyBuffer_Release(&view_);  // clears view_.obj
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s must be a contiguous int64 array of one dimension, got %s",
                 name, short_repr(object).c_str());
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
        view_.format != nullptr && view_.itemsize == sizeof(std::int64_t) &&
        (std::strcmp(view_.format, "l") == 0 || std::strcmp(view_.format, "q") == 0);
    const auto address = reinterpret_cast<std::uintptr_t>(view_.buf);
    return view_.ndim == 1 && is_int64 && address % alignof(std::int64_t) == 0;
  }

  Py_buffer view_{};
};

}  // namespace cagepool
