#include "workers/rehearsal.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "workers/completions.hpp"
#include "workers/spin_wait.hpp"
#include "workers/worker_loop.hpp"

namespace cagepool {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void perform(const StepWork& work) {
  const double end_s = thread_cpu_s() + work.compute_s;
  if (work.wait_s > 0) std::this_thread::sleep_for(Seconds(work.wait_s));
  while (thread_cpu_s() < end_s) {
  }
}

class FakeEnvs : public EnvStepper {
 public:
  explicit FakeEnvs(const StepWork& work) : work_(work) {}
  void step(std::int32_t /*local_index*/) override { perform(work_); }
  std::string take_message() override { return {}; }

 private:
  StepWork work_;
};

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::runtime_error("a pipe cannot be created");
  }
  ~Pipe() {
    close(reader());
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// A thread that runs the loop of a worker with one fake environment, until its pipe is closed.
class WorkerThread {
 public:
  explicit WorkerThread(const StepWork& work)
      : envs_(work),
        loop_(envs_, Completions(flags_, countdown_), 1, 0),
        thread_([this] { run(); }) {}
  ~WorkerThread() {
    requests_.close_writer();
    thread_.join();
  }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  int answers() const { return answers_.reader(); }
  bool request() const { return write(requests_.writer(), &kAllWord, sizeof(kAllWord)) > 0; }
  bool take_answer() const {
    std::int32_t word = 0;
    return read(answers(), &word, sizeof(word)) > 0;
  }

 private:
  void run() {
    SpinWait wait(requests_.reader(), true);
    while (true) {
      const Request request = loop_.read_request(requests_.reader(), wait);
      if (request.steps.empty() || !loop_.answer(answers_.writer(), request.steps)) return;
    }
  }

  Pipe requests_, answers_;
  FakeEnvs envs_;
  std::array<std::uint8_t, 1> flags_{};
  std::int32_t countdown_ = 0;
  WorkerLoop loop_;
  std::thread thread_;
};

/// The worker threads and the parent's wait for them.
class Workers {
 public:
  explicit Workers(const RehearsalPlan& plan)
      : epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wait_(epoll_, true),
        parent_{.compute_s = plan.parent_s} {
    if (epoll_ < 0) throw std::runtime_error("an epoll instance cannot be created");
    for (std::int32_t worker = 0; worker < plan.workers; ++worker) {
      threads_.push_back(std::make_unique<WorkerThread>(plan.worker));
      epoll_event event{.events = EPOLLIN, .data = {.u32 = static_cast<std::uint32_t>(worker)}};
      epoll_ctl(epoll_, EPOLL_CTL_ADD, threads_.back()->answers(), &event);
    }
  }
  ~Workers() { close(epoll_); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void step() {
    perform(parent_);
    for (const auto& thread : threads_) thread->request();
    for (std::size_t answered = 0; answered < threads_.size();) {
      wait_.wait(-1.0);
      epoll_event event{};
      if (epoll_wait(epoll_, &event, 1, 0) <= 0) continue;
      threads_[event.data.u32]->take_answer();
      ++answered;
    }
  }

 private:
  int epoll_;
  SpinWait wait_;
  StepWork parent_;
  std::vector<std::unique_ptr<WorkerThread>> threads_;
};

/// Mean seconds of a step; there is at least one.
template <class Step>
double mean_step_s(double turn_s, Step step) {
  const auto start = Clock::now();
  Seconds elapsed{0};
  int steps = 0;
  do {
    step();
    ++steps;
    elapsed = Clock::now() - start;
  } while (elapsed.count() < turn_s);
  return elapsed.count() / steps;
}

}  // namespace

std::vector<RehearsalTimes> rehearse(const RehearsalPlan& plan) {
  Workers workers(plan);
  workers.step();  // the threads start
  std::vector<RehearsalTimes> rounds;
  for (std::int32_t round = 0; round < plan.rounds; ++round) {
    const double loop_s = mean_step_s(plan.turn_s, [&] { perform(plan.loop); });
    const double workers_s = mean_step_s(plan.turn_s, [&] { workers.step(); });
    rounds.push_back({.loop_s = loop_s, .workers_s = workers_s});
  }
  return rounds;
}

}  // namespace cagepool
