// Tests of the request loop of a worker process, of its spin-wait and of its watch over its parent.

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/checks.hpp"
#include "workers/completions.hpp"
#include "workers/parent_watch.hpp"
#include "workers/rehearsal.hpp"
#include "workers/spin_wait.hpp"
#include "workers/step_requests.hpp"
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

/// Completion flags of 16 environments.
struct Board {
  std::vector<std::uint8_t> flags = std::vector<std::uint8_t>(16);
  std::int32_t countdown = 0;

  Completions completions() { return {flags, countdown}; }
  Words take() {
    Words envs(flags.size());
    envs.resize(completions().take(envs));
    return envs;
  }
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
  Board board;
  WorkerLoop loop(envs, board.completions(), 4, kFirstEnv);
  const Pipe requests;
  Pipe answers;
  const Request request = request_of({12, 10}, requests, loop);
  check(loop.answer(answers.writer(), request.steps));
  check(envs.stepped == Words{2, 0});
  check(answers.read_bytes().empty());  // nobody waits
  check(board.take() == Words{10, 12});
}

void test_steps_with_a_message_are_answered_in_the_pipe() {
  FakeEnvs envs;
  Board board;
  WorkerLoop loop(envs, board.completions(), 4, kFirstEnv);
  Pipe answers;
  check(loop.answer(answers.writer(), Words{11}));
  check(board.take().empty());
  check(answers.read_bytes() == "infos" + as_bytes({11}));
}

void test_the_last_completion_that_the_parent_waits_for_wakes_it() {
  FakeEnvs envs;
  Board board;
  WorkerLoop loop(envs, board.completions(), 4, kFirstEnv);
  Pipe answers;
  check(board.completions().arm(2));
  check(loop.answer(answers.writer(), Words{10}));
  check(loop.answer(answers.writer(), Words{12}));
  check(loop.answer(answers.writer(), Words{13}));
  check(board.take() == Words{10, 12, 13});
  check(answers.read_bytes() == as_bytes({kWakeWord}));
}

void test_completions_that_are_there_need_no_wait() {
  Board board;
  Completions completions = board.completions();
  check(!completions.post(Words{3, 5}));
  check(!completions.arm(2));
  check(completions.arm(3));
  check(completions.post(Words{4}));
  completions.disarm();
  check(!completions.post(Words{6}));
  check(board.take() == Words{3, 4, 5, 6});
  check(board.take().empty());
}

/// Two workers post in turn while the parent waits for random numbers of completions.
void test_no_completion_and_no_wake_up_is_lost() {
  constexpr int kRounds = 2000;
  Board board;
  const Pipe wake_ups;
  std::array<std::atomic<int>, 2> requested{};
  std::vector<std::thread> workers;
  workers.reserve(2);
  for (std::int32_t env = 0; env < 2; ++env) {
    workers.emplace_back([&, env] {
      for (int round = 1; round <= kRounds; ++round) {
        while (requested[static_cast<std::size_t>(env)].load() < round) std::this_thread::yield();
        if (board.completions().post(Words{env})) wake_ups.write_words({kWakeWord});
      }
    });
  }
  SpinWait wait(wake_ups.reader(), false);
  for (int round = 1; round <= kRounds; ++round) {
    for (auto& number : requested) number.store(round);
    for (std::int32_t missing = 2; missing > 0;) {
      const bool is_armed = board.completions().arm(round % 2 == 0 ? missing : 1);
      if (is_armed) check(wait.wait(20.0));
      board.completions().disarm();
      missing -= static_cast<std::int32_t>(board.take().size());
      Words read_words(16);
      if (is_armed) check(read(wake_ups.reader(), read_words.data(), 64) > 0);
    }
  }
  for (std::thread& worker : workers) worker.join();
}

void test_a_wait_for_completions_ends_with_the_last_of_them() {
  for (const bool spin : {false, true}) {
    Board board;
    const Pipe wake_ups;
    SpinWait wait(wake_ups.reader(), spin);
    for (int i = 0; i < 20; ++i) {
      std::thread worker([&] {
        for (std::int32_t env = 0; env < 2; ++env)
          if (board.completions().post(Words{env})) wake_ups.write_words({kWakeWord});
      });
      Completions completions = board.completions();
      for (std::size_t taken = 0; taken < 2;) {
        wait.wait_for(completions, 2 - static_cast<std::int32_t>(taken), 20.0);
        taken += board.take().size();
      }
      worker.join();
    }
  }
}

void test_requests_are_grouped_by_worker() {
  const Words worker_of_env{0, 0, 1, 1, 2};
  Pipe first;
  Pipe second;
  const Words pipes{first.writer(), second.writer(), -1};
  StepRequests requests(worker_of_env, pipes);
  check(requests.write(std::vector<std::int64_t>{3, 1, 4, 2, 0}).empty());
  check(first.read_bytes() == as_bytes({1, 0}));
  check(second.read_bytes() == as_bytes({3, 2}));
}

void test_a_request_of_all_is_one_word_for_each_worker_that_takes_requests() {
  const Words worker_of_env{0, 0, 1, 1, 2};
  Pipe first;
  Pipe second;
  const Words pipes{first.writer(), second.writer(), -1};
  check(StepRequests(worker_of_env, pipes).write_all().empty());
  check(first.read_bytes() == as_bytes({kAllWord}));
  check(second.read_bytes() == as_bytes({kAllWord}));
}

void test_requests_that_do_not_fit_or_have_no_reader_are_returned() {
  const Pipe full;
  Pipe closed;
  check(fcntl(full.writer(), F_SETFL, O_NONBLOCK) == 0);
  const std::vector<std::int32_t> filler(1024);
  while (write(full.writer(), filler.data(), 4096) > 0) {
  }
  closed.close_reader();
  const Words worker_of_env{0, 1};
  const Words pipes{full.writer(), closed.writer()};
  StepRequests requests(worker_of_env, pipes);
  const auto unwritten = requests.write(std::vector<std::int64_t>{0, 1});
  check(unwritten.size() == 2);
  check(unwritten[0].worker == 0 && unwritten[0].words == Words{0});
  check(unwritten[1].worker == 1 && unwritten[1].words == Words{1});
  const auto of_all = requests.write_all();
  check(of_all.size() == 2);
  for (const auto& [worker, words] : of_all) check(words == Words{kAllWord});
}

void test_a_rehearsal_does_the_work() {
  const std::vector<RehearsalTimes> rounds =
      rehearse({.loop = {.compute_s = 2e-3, .wait_s = 0},
                .worker = {.compute_s = 1e-3, .wait_s = 1e-3},
                .parent_s = 1e-5,
                .workers = 2,
                .rounds = 2,
                .turn_s = 0.005});
  check(rounds.size() == 2);
  for (const RehearsalTimes& times : rounds) check(times.loop_s >= 2e-3 && times.workers_s >= 2e-3);
}

void test_one_word_steps_all_environments() {
  FakeEnvs envs;
  Board board;
  WorkerLoop loop(envs, board.completions(), 3, kFirstEnv);
  const Pipe requests;
  Pipe answers;
  const Request request = request_of({kAllWord}, requests, loop);
  check(loop.answer(answers.writer(), request.steps));
  check(envs.stepped == Words{0, 1, 2});
  check(answers.read_bytes() == "infos" + as_bytes({10, 11, 12}));
}

void test_messages_and_partial_words_are_left_to_python() {
  FakeEnvs envs;
  Board board;
  WorkerLoop loop(envs, board.completions(), 2, kFirstEnv);
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
  Board board;
  WorkerLoop loop(envs, board.completions(), 2, kFirstEnv);
  Pipe requests;
  requests.close_writer();
  SpinWait wait(requests.reader(), true);
  const Request request = loop.read_request(requests.reader(), wait);
  check(request.bytes.empty() && request.steps.empty());
  Pipe answers;
  answers.close_reader();
  check(board.completions().arm(1));
  check(!loop.answer(answers.writer(), Words{10}));
  check(!loop.answer(answers.writer(), Words{kAllWord}));
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

/// Wait until all writers of the pipe have ended; false after 10 seconds.
bool closes(const Pipe& pipe) {
  SpinWait wait(pipe.reader(), false);
  return wait.wait(10.0);
}

/// Start a caller, which starts a worker that watches it, and let the caller end. The worker, and
/// any process that it started, hold the writing end of `alive`.
void run_caller(Pipe& alive, Pipe& life, bool uses_pidfd, const std::function<void()>& run_worker) {
  const pid_t caller = fork();
  if (caller == 0) {
    const int pidfd = uses_pidfd ? static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)) : -1;
    const Pipe started;
    if (fork() == 0) {
      setpgid(0, 0);
      life.close_writer();
      exit_with_parent(life.reader(), pidfd);
      started.write_words({1});
      run_worker();
    }
    alive.close_writer();
    Words word(1);
    check(read(started.reader(), word.data(), sizeof(std::int32_t)) > 0);
    _exit(0);
  }
  alive.close_writer();
  check(waitpid(caller, nullptr, 0) == caller);
}

[[noreturn]] void block_forever() {
  while (true) pause();
}

void test_a_worker_ends_with_its_caller_though_a_fork_holds_the_life_pipe() {
  for (const bool uses_pidfd : {true, false}) {
    Pipe alive;
    Pipe life;  // this process holds the writing end, as a fork of the caller would
    run_caller(alive, life, uses_pidfd, block_forever);
    check(closes(alive));
  }
}

void test_what_a_worker_started_ends_with_it() {
  Pipe alive;
  Pipe life;
  run_caller(alive, life, true, [] {
    if (fork() == 0) block_forever();
    block_forever();
  });
  check(closes(alive));
}

void test_a_worker_that_lost_its_descriptors_ends_with_its_caller() {
  Pipe alive;
  Pipe life;
  run_caller(alive, life, true, [kept = alive.writer()] {
    for (int descriptor = 3; descriptor < 20; ++descriptor)
      if (descriptor != kept) close(descriptor);
    block_forever();
  });
  check(closes(alive));
}

void test_the_end_of_the_life_pipe_is_the_end_of_the_caller() {
  Pipe life;
  std::thread closer([&life] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    life.close_writer();
  });
  wait_for_parent_end(life.reader(), -1, getppid());
  closer.join();
}

}  // namespace
}  // namespace cagepool

int main() {
  using namespace cagepool;
  std::signal(SIGPIPE, SIG_IGN);  // as in Python
  return run_tests(
      {test_requested_environments_are_stepped_and_answered,
       test_steps_with_a_message_are_answered_in_the_pipe,
       test_the_last_completion_that_the_parent_waits_for_wakes_it,
       test_completions_that_are_there_need_no_wait, test_no_completion_and_no_wake_up_is_lost,
       test_a_wait_for_completions_ends_with_the_last_of_them, test_requests_are_grouped_by_worker,
       test_a_request_of_all_is_one_word_for_each_worker_that_takes_requests,
       test_requests_that_do_not_fit_or_have_no_reader_are_returned, test_a_rehearsal_does_the_work,
       test_one_word_steps_all_environments, test_messages_and_partial_words_are_left_to_python,
       test_closed_pipes_end_the_loop, test_a_wait_ends_at_its_timeout_or_when_bytes_arrive,
       test_a_worker_ends_with_its_caller_though_a_fork_holds_the_life_pipe,
       test_what_a_worker_started_ends_with_it,
       test_a_worker_that_lost_its_descriptors_ends_with_its_caller,
       test_the_end_of_the_life_pipe_is_the_end_of_the_caller});
}
