// Tests of the request loop of a worker process and of its spin-wait, over real pipes.

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/checks.hpp"
#include "workers/spin_wait.hpp"
#include "workers/worker_loop.hpp"

namespace cagepool {
namespace {

using Words = std::vector<std::int32_t>;

constexpr std::int32_t kFirstEnv = 10;

class Pipe {
 public:
  Pipe() { check(pipe(ends_.data()) == 0); }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_reader() { close_end(ends_[0]); }
  void close_writer() { close_end(ends_[1]); }

  void write_words(const Words& words) const {
    const std::size_t bytes = words.size() * sizeof(std::int32_t);
    check(write(writer(), words.data(), bytes) == static_cast<ssize_t>(bytes));
  }
  /// All bytes that are in the pipe.
  std::string read_bytes() {
    close_writer();
    std::string all;
    std::array<char, 256> part{};
    for (ssize_t count = 0; (count = read(reader(), part.data(), part.size())) > 0;)
      all.append(part.data(), static_cast<std::size_t>(count));
    return all;
  }

 private:
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }

  std::array<int, 2> ends_{-1, -1};
};

/// Records the environments that were stepped; has a message after local index 1.
class FakeEnvs : public EnvStepper {
 public:
  void step(std::int32_t local_index) override {
    stepped.push_back(local_index);
    if (local_index == 1) message_ = "infos";
  }
  std::string take_message() override { return std::exchange(message_, {}); }

  Words stepped;

 private:
  std::string message_;
};

std::string as_bytes(const Words& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::int32_t)};
}

Request request_of(const Words& words, const Pipe& requests, WorkerLoop& loop) {
  SpinWait wait(requests.reader(), true);
  requests.write_words(words);
  return loop.read_request(requests.reader(), wait);
}

void test_requested_environments_are_stepped_and_answered() {
  FakeEnvs envs;
  WorkerLoop loop(envs, 4, kFirstEnv);
  const Pipe requests;
  Pipe answers;
  const Request request = request_of({12, 10}, requests, loop);
  check(loop.answer(answers.writer(), request.steps));
  check(envs.stepped == Words{2, 0});
  check(answers.read_bytes() == as_bytes({12, 10}));
}

void test_one_word_steps_all_environments() {
  FakeEnvs envs;
  WorkerLoop loop(envs, 3, kFirstEnv);
  const Pipe requests;
  Pipe answers;
  const Request request = request_of({kAllWord}, requests, loop);
  check(loop.answer(answers.writer(), request.steps));
  check(envs.stepped == Words{0, 1, 2});
  check(answers.read_bytes() == "infos" + as_bytes({10, 11, 12}));
}

void test_messages_and_partial_words_are_left_to_python() {
  FakeEnvs envs;
  WorkerLoop loop(envs, 2, kFirstEnv);
  const Pipe requests;
  const Request message = request_of({10, kMessageWord, 0}, requests, loop);
  check(message.steps.empty() && message.bytes.size() == 12);
  SpinWait wait(requests.reader(), false);
  check(write(requests.writer(), "abc", 3) == 3);
  const Request partial = loop.read_request(requests.reader(), wait);
  check(partial.steps.empty() && std::string(partial.bytes.data(), partial.bytes.size()) == "abc");
}

void test_closed_pipes_end_the_loop() {
  FakeEnvs envs;
  WorkerLoop loop(envs, 2, kFirstEnv);
  Pipe requests;
  requests.close_writer();
  SpinWait wait(requests.reader(), true);
  const Request request = loop.read_request(requests.reader(), wait);
  check(request.bytes.empty() && request.steps.empty());
  Pipe answers;
  answers.close_reader();
  check(!loop.answer(answers.writer(), Words{10}));
}

void test_a_wait_ends_at_its_timeout_or_when_bytes_arrive() {
  for (const bool spin : {false, true}) {
    Pipe bytes;
    SpinWait wait(bytes.reader(), spin);
    for (int i = 0; i < 20; ++i) check(!wait.wait(0.001));
    check(!wait.wait(0.0));
    std::thread writer([&bytes] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      bytes.write_words({1});
    });
    check(wait.wait(-1.0));
    writer.join();
    check(wait.wait(0.0));
  }
}

}  // namespace
}  // namespace cagepool

int main() {
  using namespace cagepool;
  std::signal(SIGPIPE, SIG_IGN);  // as in Python
  return run_tests(
      {test_requested_environments_are_stepped_and_answered, test_one_word_steps_all_environments,
       test_messages_and_partial_words_are_left_to_python, test_closed_pipes_end_the_loop,
       test_a_wait_ends_at_its_timeout_or_when_bytes_arrive});
}
