#include "step_loop.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

namespace cagepool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kChunk = 1 << 16;  // bytes, what a pipe holds

/// Results that are ready wait for others about this long at most, so that environments that take
/// microseconds do not cost a wake-up each.
constexpr auto kSlice = std::chrono::microseconds(200);

/// Write all of it; false: nobody is there to read it.
bool write_all(int pipe, const void* bytes, std::size_t count) {
  auto* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = write(pipe, next, count);
    if (written < 0 && errno != EINTR) return false;
    if (written < 0) continue;
    next += written;
    count -= static_cast<std::size_t>(written);
  }
  return true;
}

/// The exception that was raised, as an object with its traceback.
nb::object caught() {
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  PyErr_NormalizeException(&kind, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_XDECREF(kind);
  Py_XDECREF(traceback);
  return nb::steal(value);
}

}  // namespace

Buffer::Buffer(nb::handle object, bool is_written) {
  const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) nb::raise_python_error();
}

StepLoop::StepLoop(Calls calls, std::unique_ptr<Places> places, std::int32_t first, bool plain)
    : calls_(std::move(calls)),
      places_(std::move(places)),
      first_(first),
      plain_(plain),
      everything_(nb::len(calls_.steps)) {
  std::iota(everything_.begin(), everything_.end(), first);
}

nb::bytes StepLoop::serve(int requests, int answers, bool looks) {
  Waiter waiter(requests, looks);
  std::array<std::int32_t, kChunk / sizeof(std::int32_t)> words;
  while (true) {
    ssize_t bytes = 0;
    {
      nb::gil_scoped_release released;
      if (looks) waiter.wait(-1.0);
      bytes = read(requests, words.data(), kChunk);
    }
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) bytes = 0;
    const auto count = static_cast<std::size_t>(bytes);
    const std::span asked(words.data(), count / sizeof(std::int32_t));
    const bool is_row = count > 0 && count % sizeof(std::int32_t) == 0 &&
                        std::ranges::find(asked, kMessageWord) == asked.end();
    if (!is_row) return nb::bytes(words.data(), count);
    if (!(asked[0] == kAllWord ? answer_all(answers) : answer(answers, asked)))
      return nb::bytes("", 0);
  }
}

bool StepLoop::answer(int answers, std::span<const std::int32_t> words) {
  auto began = Clock::now();
  std::size_t sent = 0;
  for (std::size_t done = 0; done < words.size();) {
    step(words[done] - first_);
    ++done;
    const auto now = Clock::now();
    if (done < words.size() && now - began < kSlice) continue;
    if (!send(answers, words.subspan(sent, done - sent))) return false;
    sent = done;
    began = now;
  }
  return true;
}

bool StepLoop::answer_all(int answers) {
  for (const std::int32_t environment : everything_) step(environment - first_);
  return send(answers, everything_);
}

void StepLoop::step(std::int32_t place) {
  places_->mark.at<std::int64_t>(0) = first_ + place;
  places_->terminations.at<bool>(place) = false;
  places_->truncations.at<bool>(place) = false;
  if (places_->states.at<std::uint8_t>(place) != 0) {
    finish(place, nb::none());
  } else {
    PyObject* outcome = nullptr;
    const nb::object index = nb::steal(PyLong_FromLong(place));
    if (PyObject* action = PyObject_CallOneArg(calls_.take.ptr(), index.ptr())) {
      outcome = PyObject_CallOneArg(PyList_GET_ITEM(calls_.steps.ptr(), place), action);
      Py_DECREF(action);
    }
    const nb::object result = outcome == nullptr ? caught() : nb::steal(outcome);
    if (!plain_ || !is_usual(place, result.ptr())) finish(place, result);
  }
  places_->mark.at<std::int64_t>(0) = -1;
}

/// Whether a step went as most do: then its results have been put down.
bool StepLoop::is_usual(std::int32_t place, PyObject* outcome) const {
  if (!PyTuple_CheckExact(outcome) || PyTuple_GET_SIZE(outcome) != 5) return false;
  const auto part = [outcome](Py_ssize_t index) { return PyTuple_GET_ITEM(outcome, index); };
  const auto is_false = [this](PyObject* flag) {
    return flag == Py_False || flag == calls_.no_numpy.ptr();
  };
  if (!is_false(part(2)) || !is_false(part(3))) return false;
  if (!PyDict_CheckExact(part(4)) || PyDict_GET_SIZE(part(4)) != 0) return false;
  const double reward = PyFloat_AsDouble(part(1));
  if ((reward == -1.0 && PyErr_Occurred() != nullptr) || !put_down(place, part(0))) {
    PyErr_Clear();
    return false;
  }
  places_->rewards.at<double>(place) = reward;
  return true;
}

/// Put an observation down, if it has the very form of its place.
bool StepLoop::put_down(std::int32_t place, PyObject* seen) const {
  if (!places_->observations) {
    const nb::object index = nb::steal(PyLong_FromLong(place));
    PyObject* arguments[] = {index.ptr(), seen};
    return nb::steal(PyObject_Vectorcall(calls_.put.ptr(), arguments, 2, nullptr)).is_valid();
  }
  Py_buffer given;
  if (PyObject_GetBuffer(seen, &given, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) return false;
  const Py_buffer& all = places_->observations->view();
  const bool fits = given.ndim == all.ndim - 1 &&
                    std::equal(given.shape, given.shape + given.ndim, all.shape + 1) &&
                    std::strcmp(given.format, all.format) == 0;
  if (fits) {
    auto* rows = static_cast<char*>(all.buf);
    std::memcpy(rows + place * given.len, given.buf, static_cast<std::size_t>(given.len));
  }
  PyBuffer_Release(&given);
  return fits;
}

/// Leave a step to Python that is not as most are.
void StepLoop::finish(std::int32_t place, nb::handle outcome) {
  const nb::object infos = calls_.finish(place, outcome);
  if (!infos.is_none()) given_.append(nb::make_tuple(first_ + place, infos));
}

bool StepLoop::send(int answers, std::span<const std::int32_t> words) {
  if (nb::len(given_) > 0) {
    const auto message = nb::cast<nb::bytes>(calls_.carried(given_));
    given_ = nb::list();
    if (!write_all(answers, message.c_str(), message.size())) return false;
  }
  return write_all(answers, words.data(), words.size_bytes());
}

}  // namespace cagepool
