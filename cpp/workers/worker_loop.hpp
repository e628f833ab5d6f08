#pragma once
// Request loop of a worker process: reads step requests from a pipe, steps the environments and
// writes the answers to another pipe. Independent of Python; `EnvStepper` steps the environments.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workers/completions.hpp"
#include "workers/spin_wait.hpp"

namespace cagepool {

// Words of the pipe protocol. A word of at least 0 is the index of an environment: as a request to
// step it, or as the answer that its step is done.
constexpr std::int32_t kAllWord = -1;      // step all environments of the worker, with one answer
constexpr std::int32_t kMessageWord = -2;  // a control message follows; Python handles it
constexpr std::int32_t kWakeWord =
    -3;  // answer: the completions that the parent waits for are there

/// The environments of one worker. `local_index` is an index within the worker.
class EnvStepper {
 public:
  EnvStepper() = default;
  virtual ~EnvStepper() = default;
  EnvStepper(const EnvStepper&) = delete;
  EnvStepper& operator=(const EnvStepper&) = delete;

  /// Step one environment: read its action, write its results.
  virtual void step(std::int32_t local_index) = 0;
  /// Return and clear the message that must be sent before the next answer; empty if there is none.
  virtual std::string take_message() = 0;
};

/// Bytes that one read of the request pipe returned.
struct Request {
  std::span<const char> bytes;          // empty: the pipe was closed
  std::span<const std::int32_t> steps;  // the same as step requests; empty: Python must handle it
};

class WorkerLoop {
 public:
  /// @param first_env Index, among the environments of all workers, of this worker's first.
  WorkerLoop(EnvStepper& envs, Completions completions, std::int32_t env_count,
             std::int32_t first_env);

  /// Wait for a request and read it. The result is valid until the next call.
  Request read_request(int requests, SpinWait& wait);

  /// Step the environments that `words` name and post each group that is done, or write it to the
  /// answer pipe if a message comes with it. False if the answer pipe has no reader.
  bool answer(int answers, std::span<const std::int32_t> words);

 private:
  bool answer_all(int answers);
  bool post(int answers, std::span<const std::int32_t> words);
  bool send(int answers, const std::string& message, std::span<const std::int32_t> words);

  EnvStepper& envs_;
  Completions completions_;
  std::int32_t first_env_;
  std::vector<std::int32_t> all_envs_;
  std::vector<std::int32_t> buffer_;
};

}  // namespace cagepool
