// Python bindings of the request loop of a worker process and of its spin-wait.

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>
#include <vector>

#include "bindings/buffers.hpp"
#include "bindings/module.hpp"
#include "workers/completions.hpp"
#include "workers/parent_watch.hpp"
#include "workers/rehearsal.hpp"
#include "workers/spin_wait.hpp"
#include "workers/step_requests.hpp"
#include "workers/worker_loop.hpp"
#if defined(__linux__)
#include "workers/python_envs.hpp"
#endif

using namespace nanobind::literals;

namespace cagepool {

#if defined(__linux__)
namespace {

class BoundCompletions {
 public:
  BoundCompletions(nb::handle flags, nb::handle countdown)
      : flags_(flags, "flags"),
        countdown_(countdown, "countdown"),
        completions_(flags_.rows<std::uint8_t>(), countdown_.rows<std::int32_t>()[0]) {}

  bool arm(std::int32_t count) { return completions_.arm(count); }
  void disarm() { completions_.disarm(); }
  std::size_t take(nb::handle envs) {
    const Buffer taken(envs, "envs");
    const auto rows = taken.rows<std::int32_t>();
    if (rows.size() < flags_.rows<std::uint8_t>().size())
      throw std::invalid_argument("envs must have one entry per flag");
    return completions_.take(rows);
  }
  Completions& value() { return completions_; }

 private:
  Buffer flags_, countdown_;
  Completions completions_;
};

class BoundStepRequests {
 public:
  BoundStepRequests(nb::handle worker_of_env, nb::handle pipes)
      : worker_of_env_(worker_of_env, "worker_of_env", Buffer::Access::kRead),
        pipes_(pipes, "pipes", Buffer::Access::kRead),
        requests_(worker_of_env_.rows<const std::int32_t>(), pipes_.rows<const std::int32_t>()) {}

  nb::list write(nb::handle envs) {
    const IntRow given(envs, "envs");
    std::vector<StepRequests::Unwritten> unwritten;
    {
      const nb::gil_scoped_release release;
      unwritten = requests_.write(given.span());
    }
    return to_list(unwritten);
  }

  // With the GIL: writing some words to pipes that do not block is shorter than releasing it.
  nb::list write_all() const { return to_list(requests_.write_all()); }

 private:
  static nb::list to_list(const std::vector<StepRequests::Unwritten>& unwritten) {
    nb::list rest;
    for (const auto& [worker, words] : unwritten)
      rest.append(nb::make_tuple(worker, nb::bytes(words.data(), words.size() * sizeof(words[0]))));
    return rest;
  }

  Buffer worker_of_env_, pipes_;
  StepRequests requests_;
};

class BoundWorkerLoop {
 public:
  BoundWorkerLoop(EnvCalls calls, std::unique_ptr<EnvArrays> arrays, const Completions& completions,
                  std::int32_t first_env, bool fast_path)
      : env_count_(static_cast<std::int32_t>(nb::len(calls.steps))),
        envs_(std::move(calls), std::move(arrays), first_env, fast_path),
        loop_(envs_, completions, env_count_, first_env) {}

  nb::bytes serve(int requests, int answers, bool spin) {
    SpinWait wait(requests, spin);
    while (true) {
      Request request;
      {
        const nb::gil_scoped_release release;
        request = loop_.read_request(requests, wait);
      }
      if (request.steps.empty()) return nb::bytes(request.bytes.data(), request.bytes.size());
      if (!loop_.answer(answers, request.steps)) return nb::bytes("", 0);
    }
  }

  bool answer(int answers, nb::handle words) {
    const Buffer given(words, "words", Buffer::Access::kRead);
    const std::size_t count = static_cast<std::size_t>(given.view().len) / sizeof(std::int32_t);
    return loop_.answer(answers, {&given.at<std::int32_t>(0), count});
  }

 private:
  std::int32_t env_count_;
  PythonEnvs envs_;
  WorkerLoop loop_;
};

void bind_worker_loop(nb::module_& m) {
  m.def("exit_with_parent", &exit_with_parent, "life_pipe"_a, "parent_pidfd"_a,
        "Start a thread that ends this process and its process group when its parent has ended, "
        "without the GIL.\n\n"
        "Args:\n"
        "    life_pipe: File descriptor of a pipe that closes when the parent ends.\n"
        "    parent_pidfd: Process file descriptor of the parent, or -1 where there is none.");

  nb::class_<BoundCompletions>(m, "Completions", "Completion flags in shared memory.")
      .def(nb::init<nb::handle, nb::handle>(), nb::kw_only(), "flags"_a, "countdown"_a,
           nb::sig("def __init__(self, *, flags: object, countdown: object) -> None"),
           "Use one uint8 per environment, and one int32, which hold 0 at first.")
      .def("arm", &BoundCompletions::arm, "count"_a,
           "Begin to wait for so many completions; False if they are there already.")
      .def("disarm", &BoundCompletions::disarm, "Stop waiting.")
      .def("take", &BoundCompletions::take, "envs"_a,
           nb::sig("def take(self, envs: object) -> int"),
           "Write the environments whose step is done to an int32 array, clear their flags, and "
           "return their number.");

  nb::class_<SpinWait>(m, "SpinWait", "Spin-then-block wait until a file descriptor is readable.")
      .def(nb::init<int, bool>(), "descriptor"_a, nb::kw_only(), "spin"_a)
      .def("wait", &SpinWait::wait, "timeout_s"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Wait until the descriptor is readable; False if the timeout passed before. A negative "
           "timeout means no limit.")
      .def(
          "wait_for",
          [](SpinWait& wait, BoundCompletions& completions, int count, double timeout_s) {
            const nb::gil_scoped_release release;
            wait.wait_for(completions.value(), count, timeout_s);
          },
          "completions"_a, "count"_a, "timeout_s"_a,
          "Wait in the same way until there are so many completions or the descriptor is "
          "readable.");

  m.def(
      "rehearse",
      [](std::pair<double, double> loop, std::pair<double, double> worker, double parent_s,
         int workers, int rounds, double turn_s) {
        const nb::gil_scoped_release release;
        std::vector<std::pair<double, double>> seconds;
        for (const RehearsalTimes& times : rehearse({.loop = {loop.first, loop.second},
                                                     .worker = {worker.first, worker.second},
                                                     .parent_s = parent_s,
                                                     .workers = workers,
                                                     .rounds = rounds,
                                                     .turn_s = turn_s}))
          seconds.emplace_back(times.loop_s, times.workers_s);
        return seconds;
      },
      nb::kw_only(), "loop"_a, "worker"_a, "parent_s"_a, "workers"_a, "rounds"_a, "turn_s"_a,
      "Measure a step of all environments in one loop and in workers, under the present load, "
      "without environments.\n\n"
      "Args:\n"
      "    loop: Seconds that the loop computes and waits per step.\n"
      "    worker: Seconds that each worker computes and waits per step.\n"
      "    parent_s: Seconds that the parent of the workers computes per step.\n"
      "    workers: Number of workers.\n"
      "    rounds: Number of measurements.\n"
      "    turn_s: Approximate duration of each side in a round.\n\n"
      "Returns:\n"
      "    Seconds per step of the loop and of the workers, by round.");

  nb::class_<BoundStepRequests>(m, "StepRequests", "Writes step requests to workers.")
      .def(nb::init<nb::handle, nb::handle>(), nb::kw_only(), "worker_of_env"_a, "pipes"_a,
           nb::sig("def __init__(self, *, worker_of_env: object, pipes: object) -> None"),
           "Use an int32 array with the worker of each environment, and one with the pipe to each "
           "worker: below 0 while the worker must get no requests.")
      .def("write", &BoundStepRequests::write, "envs"_a,
           nb::sig("def write(self, envs: object) -> list[tuple[int, bytes]]"),
           "Request steps of environments, an int64 array, whose indices must be valid. Returns "
           "the bytes that could not be written, with their workers.")
      .def("write_all", &BoundStepRequests::write_all,
           nb::sig("def write_all(self) -> list[tuple[int, bytes]]"),
           "Request one step of all environments, with one answer per worker; returns the same.");

  nb::class_<BoundWorkerLoop>(m, "WorkerLoop", "Request loop of a worker process.")
      .def(
          "__init__",
          [](BoundWorkerLoop* self, nb::list steps, nb::object read_action,
             nb::object write_observation, nb::object finish_step, nb::object pack_infos,
             nb::object numpy_false, nb::handle observations, nb::handle rewards,
             nb::handle terminations, nb::handle truncations, nb::handle needs_reset,
             nb::handle current_env, BoundCompletions& completions, int first_env, bool fast_path) {
            std::unique_ptr<EnvArrays> arrays(new EnvArrays{
                observations.is_none() ? nullptr
                                       : std::make_unique<Buffer>(observations, "observations"),
                Buffer(rewards, "rewards"), Buffer(terminations, "terminations"),
                Buffer(truncations, "truncations"), Buffer(needs_reset, "needs_reset"),
                Buffer(current_env, "current_env")});
            new (self) BoundWorkerLoop(
                {std::move(steps), std::move(read_action), std::move(write_observation),
                 std::move(finish_step), std::move(pack_infos), std::move(numpy_false)},
                std::move(arrays), completions.value(), first_env, fast_path);
          },
          nb::kw_only(), "steps"_a, "read_action"_a, "write_observation"_a, "finish_step"_a,
          "pack_infos"_a, "numpy_false"_a, "observations"_a.none(), "rewards"_a, "terminations"_a,
          "truncations"_a, "needs_reset"_a, "current_env"_a, "completions"_a, "first_env"_a,
          "fast_path"_a, nb::keep_alive<1, 14>(),
          nb::sig("def __init__(self, *, steps: list[object], read_action: object, "
                  "write_observation: object, finish_step: object, pack_infos: object, "
                  "numpy_false: object, observations: object | None, rewards: object, "
                  "terminations: object, truncations: object, needs_reset: object, "
                  "current_env: object, completions: Completions, first_env: int, fast_path: bool) "
                  "-> None"),
          "Create the loop over the environments of a worker. A local index is that of an "
          "environment within the worker.\n\n"
          "Args:\n"
          "    steps: Method `step` of each environment.\n"
          "    read_action: `(local_index) -> action`.\n"
          "    write_observation: `(local_index, observation)`; used if `observations` is None.\n"
          "    finish_step: `(local_index, result or exception or None) -> pickled infos or None`; "
          "handles "
          "every step but the common one: episode not over, no infos.\n"
          "    pack_infos: `(list of (environment, pickled infos)) -> bytes of a message`.\n"
          "    numpy_false: `numpy.False_`.\n"
          "    observations: The array of the observations, if they are one array.\n"
          "    needs_reset: One byte per environment; not 0: `finish_step` handles the next step, "
          "with "
          "None.\n"
          "    current_env: One int64, the index of the environment that is being stepped, or -1.\n"
          "    completions: Flags of the environments of all workers.\n"
          "    first_env: Index, among the environments of all workers, of this worker's first.\n"
          "    fast_path: False: `finish_step` handles every step.")
      .def("serve", &BoundWorkerLoop::serve, "requests"_a, "answers"_a, nb::kw_only(), "spin"_a,
           "Answer step requests until other bytes arrive, and return them; b\"\" if a pipe was "
           "closed.")
      .def("answer", &BoundWorkerLoop::answer, "answers"_a, "words"_a,
           nb::sig("def answer(self, answers: int, words: bytes) -> bool"),
           "Step the environments that `words` name and answer; False if the answer pipe has no "
           "reader.");
}

}  // namespace
#endif

// NOLINTNEXTLINE(misc-const-correctness): all parts of the module have this signature
void bind_workers(nb::module_& m) {
  m.attr("ALL_WORD") = kAllWord;
  m.attr("MESSAGE_WORD") = kMessageWord;
  m.attr("WAKE_WORD") = kWakeWord;
  // Python checks the platform before it starts workers, so other platforms do not need the
  // classes.
#if defined(__linux__)
  bind_worker_loop(m);
#endif
}

}  // namespace cagepool
