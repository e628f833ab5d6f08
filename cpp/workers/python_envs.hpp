#pragma once
// Steps Gymnasium environments, which are Python objects, for the request loop of a worker.

#include <nanobind/nanobind.h>

#include <memory>

#include "bindings/buffers.hpp"
#include "workers/worker_loop.hpp"

namespace cagepool {

/// Python functions that `PythonEnvs` calls.
struct EnvCalls {
  nb::list steps;                // `step` of each environment
  nb::object read_action;        // (local_index) -> action
  nb::object write_observation;  // (local_index, observation); raises if it does not fit
  nb::object finish_step;  // (local_index, result or exception or None) -> pickled infos or None
  nb::object pack_infos;   // (list of (environment, pickled infos)) -> bytes of a message
  nb::object numpy_false;  // numpy.False_
};

/// Shared memory that `PythonEnvs` writes, one row per environment of the worker.
struct EnvArrays {
  std::unique_ptr<Buffer> observations;  // null if observations are not one array
  Buffer rewards;                        // float64
  Buffer terminations, truncations;      // bool
  Buffer needs_reset;                    // uint8; not 0: `finish_step` handles the next step
  Buffer current_env;                    // one int64: the environment that is being stepped, or -1
};

/// Handles the common step without Python code: five results, episode not over, empty infos. All
/// other steps are left to `finish_step`.
class PythonEnvs : public EnvStepper {
 public:
  /// @param fast_path False: `finish_step` handles every step.
  PythonEnvs(EnvCalls calls, std::unique_ptr<EnvArrays> arrays, std::int32_t first_env,
             bool fast_path);

  void step(std::int32_t local_index) override;
  std::string take_message() override;

 private:
  nb::object call_step(std::int32_t local_index) const;
  bool store_common_step(std::int32_t local_index, PyObject* result) const;
  bool store_observation(std::int32_t local_index, PyObject* observation) const;
  void finish_step(std::int32_t local_index, nb::handle result);

  EnvCalls calls_;
  std::unique_ptr<EnvArrays> arrays_;
  std::int32_t first_env_;
  bool fast_path_;
  nb::list infos_;  // of steps since the last answer: (environment, pickled infos)
};

}  // namespace cagepool
