#include "workers/python_envs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace cagepool {
namespace {

/// Clear the current Python exception and return it with its traceback.
nb::object take_exception() { return nb::borrow(nb::python_error().value()); }

/// Call a Python function with one argument; invalid if it raised.
nb::object call(nb::handle function, nb::handle argument) {
  const std::array<PyObject*, 1> given{argument.ptr()};
  return nb::steal(PyObject_Vectorcall(function.ptr(), given.data(), given.size(), nullptr));
}

}  // namespace

PythonEnvs::PythonEnvs(EnvCalls calls, std::unique_ptr<EnvArrays> arrays, std::int32_t first_env,
                       bool fast_path)
    : calls_(std::move(calls)),
      arrays_(std::move(arrays)),
      first_env_(first_env),
      fast_path_(fast_path) {}

void PythonEnvs::step(std::int32_t local_index) {
  arrays_->current_env.at<std::int64_t>(0) = first_env_ + local_index;
  arrays_->terminations.at<bool>(local_index) = false;
  arrays_->truncations.at<bool>(local_index) = false;
  if (arrays_->needs_reset.at<std::uint8_t>(local_index) != 0) {
    finish_step(local_index, nb::none());
  } else {
    const nb::object result = call_step(local_index);
    if (!fast_path_ || !store_common_step(local_index, result.ptr()))
      finish_step(local_index, result);
  }
  arrays_->current_env.at<std::int64_t>(0) = -1;
}

/// Return the result of the environment's `step`, or the exception that it raised.
nb::object PythonEnvs::call_step(std::int32_t local_index) const {
  const nb::object index = nb::steal(PyLong_FromLong(local_index));
  const nb::object action = call(calls_.read_action, index);
  if (!action.is_valid()) return take_exception();
  nb::object result = call(NB_LIST_GET_ITEM(calls_.steps.ptr(), local_index), action);
  if (!result.is_valid()) result = take_exception();
  return result;
}

/// Store the results of a common step; false, with nothing stored but perhaps the observation, if
/// the step is not one.
bool PythonEnvs::store_common_step(std::int32_t local_index, PyObject* result) const {
  if (!PyTuple_CheckExact(result) || NB_TUPLE_GET_SIZE(result) != 5) return false;
  const auto item = [result](Py_ssize_t index) { return NB_TUPLE_GET_ITEM(result, index); };
  const auto is_false = [this](PyObject* flag) {
    return flag == Py_False || flag == calls_.numpy_false.ptr();
  };
  if (!is_false(item(2)) || !is_false(item(3))) return false;
  if (!PyDict_CheckExact(item(4)) || NB_DICT_GET_SIZE(item(4)) != 0) return false;
  const double reward = PyFloat_AsDouble(item(1));
  if ((reward == -1.0 && PyErr_Occurred() != nullptr) || !store_observation(local_index, item(0))) {
    PyErr_Clear();
    return false;
  }
  arrays_->rewards.at<double>(local_index) = reward;
  return true;
}

/// Store an observation; false if its type or shape is not exactly that of its row.
bool PythonEnvs::store_observation(std::int32_t local_index, PyObject* observation) const {
  if (!arrays_->observations) {
    const nb::object index = nb::steal(PyLong_FromLong(local_index));
    const std::array<PyObject*, 2> arguments{index.ptr(), observation};
    return nb::steal(
               PyObject_Vectorcall(calls_.write_observation.ptr(), arguments.data(), 2, nullptr))
        .is_valid();
  }
  Py_buffer given;
  if (PyObject_GetBuffer(observation, &given, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) return false;
  const Py_buffer& all = arrays_->observations->view();
  const bool fits = given.ndim == all.ndim - 1 &&
                    std::equal(given.shape, given.shape + given.ndim, all.shape + 1) &&
                    std::strcmp(given.format, all.format) == 0;
  if (fits) {
    auto* rows = static_cast<char*>(all.buf);
    std::memcpy(rows + local_index * given.len, given.buf, static_cast<std::size_t>(given.len));
  }
  PyBuffer_Release(&given);
  return fits;
}

void PythonEnvs::finish_step(std::int32_t local_index, nb::handle result) {
  const nb::object infos = calls_.finish_step(local_index, result);
  if (!infos.is_none()) infos_.append(nb::make_tuple(first_env_ + local_index, infos));
}

std::string PythonEnvs::take_message() {
  if (nb::len(infos_) == 0) return {};
  const auto message = nb::cast<nb::bytes>(calls_.pack_infos(infos_));
  infos_ = nb::list();
  return {message.c_str(), message.size()};
}

}  // namespace cagepool
