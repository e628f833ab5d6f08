#pragma once
// A row of int64 that Python owns, taken through the buffer protocol: nanobind's own arrays go
// through DLPack, which costs several times as much as stepping a game.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>
#include <span>

namespace cagepool {

class IntRow {
 public:
  IntRow() = default;
  ~IntRow() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  IntRow(const IntRow&) = delete;
  IntRow& operator=(const IntRow&) = delete;

  /// Whether the object was such a row; nothing is converted.
  bool take(PyObject* object) {
    if (PyObject_GetBuffer(object, &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return false;
    }
    const bool is_int64 =
        std::strcmp(view_.format, "l") == 0 || std::strcmp(view_.format, "q") == 0;
    return view_.ndim == 1 && view_.itemsize == sizeof(std::int64_t) && is_int64;
  }

  bool given() const { return view_.obj != nullptr; }
  std::span<const std::int64_t> span() const {
    if (!given()) return {};
    return {static_cast<const std::int64_t*>(view_.buf), static_cast<std::size_t>(view_.shape[0])};
  }

 private:
  Py_buffer view_{};
};

/// The same, or None.
class OptionalIntRow : public IntRow {};

}  // namespace cagepool

namespace nanobind::detail {

inline constexpr auto kIntRowName = const_name("numpy.typing.NDArray[numpy.int64]");

template <>
struct type_caster<cagepool::IntRow> {
  NB_TYPE_CASTER(cagepool::IntRow, kIntRowName)
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    return value.take(source.ptr());
  }
};

template <>
struct type_caster<cagepool::OptionalIntRow> {
  NB_TYPE_CASTER(cagepool::OptionalIntRow, kIntRowName + const_name(" | None"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    return source.is_none() || value.take(source.ptr());
  }
};

}  // namespace nanobind::detail
