#pragma once

#include <cstdint>
#include <span>

namespace cagepool {

/// Completion flags in memory that the parent process shares with its workers: one byte per
/// environment whose step is done and was not yet taken.
///
/// A worker that posts does not wake the parent, which saves a system call in each process per
/// step. A parent that has to wait first arms the countdown with the number of completions that it
/// needs; the worker whose completion ends the countdown then wakes the parent through its pipe.
/// A worker may end at any point: its posted flags stay valid, and its closed pipe wakes the
/// parent.
class Completions {
 public:
  /// @param countdown Completions until the parent must be woken; 0 or less: it does not wait.
  Completions(std::span<std::uint8_t> flags, std::int32_t& countdown)
      : flags_(flags), countdown_(countdown) {}

  /// Mark steps as done, in a worker. True: the worker must wake the parent.
  bool post(std::span<const std::int32_t> envs);

  /// Begin to wait for `count` completions, in the parent. False: they are there already, and no
  /// worker will wake the parent. A wake-up may come early.
  bool arm(std::int32_t count);

  /// Number of completions that were posted and not taken.
  std::int32_t posted() const;

  /// Stop waiting. A worker that is about to wake the parent still does so.
  void disarm();

  /// Write the environments whose flags are set to `envs`, clear the flags, and return their
  /// number. `envs` must have room for all environments.
  std::size_t take(std::span<std::int32_t> envs);

 private:
  std::span<std::uint8_t> flags_;
  std::int32_t& countdown_;
};

}  // namespace cagepool
