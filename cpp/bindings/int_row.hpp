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
  /// Nothing is converted; None is an empty row if it is allowed.
  IntRow(nanobind::handle object, const char* name, bool may_be_none = false) {
    if (may_be_none && object.is_none()) return;
    const bool is_buffer =
        PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0;
    if (is_buffer && is_row()) return;
    if (is_buffer) PyBuffer_Release(&view_);
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "%s must be a contiguous int64 array of one dimension, got %.200R", name,
                 object.ptr());
    throw nanobind::python_error();
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
