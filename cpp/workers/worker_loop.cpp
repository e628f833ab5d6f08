#include "workers/worker_loop.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <numeric>

namespace cagepool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPipeBytes = 1 << 16;  // capacity of a pipe

// Completions are held back for at most this time, so that environments whose step takes
// microseconds are posted together: each post may wake the parent.
constexpr auto kMaxPostDelay = std::chrono::microseconds(200);

/// Write all bytes; false if the pipe has no reader.
bool write_all(int pipe, const void* bytes, std::size_t count) {
  const auto* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = write(pipe, next, count);
    if (written < 0 && errno != EINTR) return false;
    if (written < 0) continue;
    next += written;
    count -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

WorkerLoop::WorkerLoop(EnvStepper& envs, Completions completions, std::int32_t env_count,
                       std::int32_t first_env)
    : envs_(envs),
      completions_(completions),
      first_env_(first_env),
      all_envs_(static_cast<std::size_t>(env_count)),
      buffer_(kPipeBytes / sizeof(std::int32_t)) {
  std::iota(all_envs_.begin(), all_envs_.end(), first_env);
}

Request WorkerLoop::read_request(int requests, SpinWait& wait) {
  ssize_t read_bytes = -1;
  do {
    if (wait.spins()) wait.wait(-1.0);
    read_bytes = read(requests, buffer_.data(), kPipeBytes);
  } while (read_bytes < 0 && errno == EINTR);
  if (read_bytes <= 0) return {};
  const auto count = static_cast<std::size_t>(read_bytes);
  const std::span words(buffer_.data(), count / sizeof(std::int32_t));
  const bool has_steps_only =
      count % sizeof(std::int32_t) == 0 && std::ranges::find(words, kMessageWord) == words.end();
  return {.bytes = {reinterpret_cast<const char*>(buffer_.data()), count},
          .steps = has_steps_only ? words : std::span<std::int32_t>()};
}

bool WorkerLoop::answer(int answers, std::span<const std::int32_t> words) {
  if (!words.empty() && words[0] == kAllWord) return answer_all(answers);
  auto group_start = Clock::now();
  std::size_t sent = 0;
  for (std::size_t done = 0; done < words.size();) {
    envs_.step(words[done] - first_env_);
    ++done;
    const auto now = Clock::now();
    if (done < words.size() && now - group_start < kMaxPostDelay) continue;
    if (!post(answers, words.subspan(sent, done - sent))) return false;
    sent = done;
    group_start = now;
  }
  return true;
}

// One answer in the pipe: the parent gets all environments or none, even if this process is killed.
bool WorkerLoop::answer_all(int answers) {
  for (const std::int32_t env : all_envs_) envs_.step(env - first_env_);
  return send(answers, envs_.take_message(), all_envs_);
}

bool WorkerLoop::post(int answers, std::span<const std::int32_t> words) {
  const std::string message = envs_.take_message();
  if (!message.empty()) return send(answers, message, words);
  return !completions_.post(words) || write_all(answers, &kWakeWord, sizeof(kWakeWord));
}

bool WorkerLoop::send(int answers, const std::string& message,
                      std::span<const std::int32_t> words) {
  return write_all(answers, message.data(), message.size()) &&
         write_all(answers, words.data(), words.size_bytes());
}

}  // namespace cagepool
