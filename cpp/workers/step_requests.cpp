#include "workers/step_requests.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "workers/worker_loop.hpp"

namespace cagepool {
namespace {

/// Write as many words as fit; returns the rest.
std::span<const std::int32_t> write_words(int pipe, std::span<const std::int32_t> words) {
  while (!words.empty()) {
    const ssize_t written = ::write(pipe, words.data(), words.size_bytes());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    // The capacity of a pipe and all writes to it are whole words.
    words = words.subspan(static_cast<std::size_t>(written) / sizeof(std::int32_t));
  }
  return words;
}

}  // namespace

std::vector<StepRequests::Unwritten> StepRequests::write_all() const {
  std::vector<Unwritten> unwritten;
  for (std::size_t worker = 0; worker < pipes_.size(); ++worker) {
    const int pipe = pipes_[worker];
    if (pipe >= 0 && !write_words(pipe, {&kAllWord, 1}).empty())
      unwritten.push_back({static_cast<std::int32_t>(worker), {kAllWord}});
  }
  return unwritten;
}

std::vector<StepRequests::Unwritten> StepRequests::write(std::span<const std::int64_t> envs) {
  std::vector<Unwritten> unwritten;
  words_.assign(envs.begin(), envs.end());
  const auto by_worker = [this](std::int32_t env) { return worker_of(env); };
  if (!std::ranges::is_sorted(words_, {}, by_worker))
    std::ranges::stable_sort(words_, {}, by_worker);
  for (auto begin = words_.begin(); begin != words_.end();) {
    const std::int32_t worker = worker_of(*begin);
    const auto end =
        std::find_if(begin, words_.end(), [&](auto env) { return worker_of(env) != worker; });
    const int pipe = pipes_[static_cast<std::size_t>(worker)];
    if (pipe >= 0) {
      const auto rest = write_words(pipe, {begin, end});
      if (!rest.empty()) unwritten.push_back({worker, {rest.begin(), rest.end()}});
    }
    begin = end;
  }
  return unwritten;
}

}  // namespace cagepool
