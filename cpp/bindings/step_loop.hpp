#pragma once
// The loop of a worker process over environments that are written in Python. It deals with the
// usual step itself and leaves all others to Python.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "waiter.hpp"

namespace cagepool {

namespace nb = nanobind;

/// Words from 0 on are environments.
constexpr std::int32_t kAllWord = -1;      // all environments of a worker, with one answer
constexpr std::int32_t kMessageWord = -2;  // a message follows

/// Memory of Python's, held as long as this lives.
class Buffer {
 public:
  explicit Buffer(nb::handle object, bool is_written = true);
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const Py_buffer& view() const { return view_; }
  template <class Value>
  Value& at(std::int32_t place) const {
    return static_cast<Value*>(view_.buf)[place];
  }

 private:
  Py_buffer view_{};
};

/// What the loop calls. Places count the environments of its worker.
struct Calls {
  nb::list steps;       // `step` of each environment
  nb::object take;      // gives the action of a place
  nb::object put;       // puts an observation down at a place
  nb::object finish;    // of a place and what its step gave, if unusual: pickled infos or None
  nb::object carried;   // bytes of a message, of pickled infos and their environments
  nb::object no_numpy;  // NumPy's False
};

/// Where the loop writes, a row for each place.
struct Places {
  std::unique_ptr<Buffer> observations;  // none: they are not one array
  Buffer rewards;                        // double
  Buffer terminations, truncations;      // bool
  Buffer states;                         // bytes; if not 0, the next step is unusual
  Buffer mark;                           // int64, the environment that is being stepped
};

class StepLoop {
 public:
  /// @param first Environment at the first place.
  /// @param plain Whether any step is usual.
  StepLoop(Calls calls, std::unique_ptr<Places> places, std::int32_t first, bool plain);

  /// Answer requests until one is a message, or there are none any more; returns its bytes.
  nb::bytes serve(int requests, int answers, bool looks);

  /// Step these environments and answer as they get ready; false: nobody hears it.
  bool answer(int answers, std::span<const std::int32_t> words);

 private:
  bool answer_all(int answers);
  void step(std::int32_t place);
  bool is_usual(std::int32_t place, PyObject* outcome) const;
  bool put_down(std::int32_t place, PyObject* seen) const;
  void finish(std::int32_t place, nb::handle outcome);
  bool send(int answers, std::span<const std::int32_t> words);

  Calls calls_;
  std::unique_ptr<Places> places_;
  std::int32_t first_;
  bool plain_;
  nb::list given_;  // infos for the next answer
  std::vector<std::int32_t> everything_;
};

/// Add what worker processes need to the module.
void bind_workers(nb::module_& m);

}  // namespace cagepool
