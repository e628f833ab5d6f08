#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cagepool {

/// Writes step requests to the pipes of the workers, in the parent process.
class StepRequests {
 public:
  struct Unwritten {
    std::int32_t worker;
    std::vector<std::int32_t> words;
  };

  /// @param worker_of_env Worker of each environment.
  /// @param pipes Pipe to each worker, not blocking; below 0: the worker gets no requests yet.
  StepRequests(std::span<const std::int32_t> worker_of_env, std::span<const std::int32_t> pipes)
      : worker_of_env_(worker_of_env), pipes_(pipes) {}

  /// Request steps of environments, with one write per worker. Returns what could not be written
  /// because a pipe is full or has no reader.
  std::vector<Unwritten> write(std::span<const std::int64_t> envs);

  /// Request one step of all environments, with one answer per worker; returns the same.
  std::vector<Unwritten> write_all() const;

 private:
  std::int32_t worker_of(std::int32_t env) const {
    return worker_of_env_[static_cast<std::size_t>(env)];
  }

  std::span<const std::int32_t> worker_of_env_, pipes_;
  std::vector<std::int32_t> words_;
};

}  // namespace cagepool
