// Python bindings of the request loop of a worker process and of its spin-wait.

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "bindings/buffers.hpp"
#include "bindings/module.hpp"
#include "workers/python_envs.hpp"
#include "workers/spin_wait.hpp"
#include "workers/worker_loop.hpp"

using namespace nanobind::literals;

namespace cagepool {
namespace {

class BoundWorkerLoop {
 public:
  BoundWorkerLoop(EnvCalls calls, std::unique_ptr<EnvArrays> arrays, std::int32_t first_env,
                  bool fast_path)
      : env_count_(static_cast<std::int32_t>(nb::len(calls.steps))),
        envs_(std::move(calls), std::move(arrays), first_env, fast_path),
        loop_(envs_, env_count_, first_env) {}

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
    const Buffer given(words, Buffer::Access::kRead);
    return loop_.answer(
        answers, {&given.at<std::int32_t>(0), static_cast<std::size_t>(given.view().len) / 4});
  }

 private:
  std::int32_t env_count_;
  PythonEnvs envs_;
  WorkerLoop loop_;
};

}  // namespace

void bind_workers(nb::module_& m) {
  m.attr("ALL_WORD") = kAllWord;
  m.attr("MESSAGE_WORD") = kMessageWord;

  nb::class_<SpinWait>(m, "Waiter", "Waits until a descriptor can be read.")
      .def(nb::init<int, bool>(), "descriptor"_a, nb::kw_only(), "looks"_a)
      .def("wait", &SpinWait::wait, "limit_s"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Whether it can be read within the limit; a negative one is none.");

  nb::class_<BoundWorkerLoop>(m, "StepLoop", "The loop of a worker process over its environments.")
      .def(
          "__init__",
          [](BoundWorkerLoop* self, nb::list steps, nb::object take, nb::object put,
             nb::object finish, nb::object carried, nb::object no_numpy, nb::object observations,
             nb::object rewards, nb::object terminations, nb::object truncations, nb::object states,
             nb::object mark, int first, bool plain) {
            std::unique_ptr<EnvArrays> arrays(new EnvArrays{
                observations.is_none() ? nullptr : std::make_unique<Buffer>(observations),
                Buffer(rewards), Buffer(terminations), Buffer(truncations), Buffer(states),
                Buffer(mark)});
            new (self) BoundWorkerLoop({steps, take, put, finish, carried, no_numpy},
                                       std::move(arrays), first, plain);
          },
          nb::kw_only(), "steps"_a, "take"_a, "put"_a, "finish"_a, "carried"_a, "no_numpy"_a,
          "observations"_a.none(), "rewards"_a, "terminations"_a, "truncations"_a, "states"_a,
          "mark"_a, "first"_a, "plain"_a,
          nb::sig("def __init__(self, *, steps: list[object], take: object, put: object, "
                  "finish: object, carried: object, no_numpy: object, observations: object | None, "
                  "rewards: object, terminations: object, truncations: object, states: object, "
                  "mark: object, first: int, plain: bool) -> None"))
      .def("serve", &BoundWorkerLoop::serve, "requests"_a, "answers"_a, nb::kw_only(), "looks"_a,
           "Answer requests until one is a message; returns its bytes, none if there are no more.")
      .def("answer", &BoundWorkerLoop::answer, "answers"_a, "words"_a,
           nb::sig("def answer(self, answers: int, words: bytes) -> bool"),
           "Step these environments and answer; false: nobody hears it.");
}

}  // namespace cagepool
