// Python bindings of the request loop of a worker process and of its spin-wait.

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "bindings/buffers.hpp"
#include "bindings/module.hpp"
#include "workers/spin_wait.hpp"
#include "workers/worker_loop.hpp"
#if defined(__linux__)
#include "workers/python_envs.hpp"
#endif

using namespace nanobind::literals;

namespace cagepool {

#if defined(__linux__)
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
    const Buffer given(words, "words", Buffer::Access::kRead);
    const std::size_t count = static_cast<std::size_t>(given.view().len) / sizeof(std::int32_t);
    return loop_.answer(answers, {&given.at<std::int32_t>(0), count});
  }

 private:
  std::int32_t env_count_;
  PythonEnvs envs_;
  WorkerLoop loop_;
};

void bind_worker_loop(const nb::module_& m) {
  nb::class_<SpinWait>(m, "SpinWait", "Spin-then-block wait until a file descriptor is readable.")
      .def(nb::init<int, bool>(), "descriptor"_a, nb::kw_only(), "spin"_a)
      .def("wait", &SpinWait::wait, "timeout_s"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Wait until the descriptor is readable; False if the timeout passed before. A negative "
           "timeout means no limit.");

  nb::class_<BoundWorkerLoop>(m, "WorkerLoop", "Request loop of a worker process.")
      .def(
          "__init__",
          [](BoundWorkerLoop* self, nb::list steps, nb::object read_action,
             nb::object write_observation, nb::object finish_step, nb::object pack_infos,
             nb::object numpy_false, nb::handle observations, nb::handle rewards,
             nb::handle terminations, nb::handle truncations, nb::handle needs_reset,
             nb::handle current_env, int first_env, bool fast_path) {
            std::unique_ptr<EnvArrays> arrays(new EnvArrays{
                observations.is_none() ? nullptr
                                       : std::make_unique<Buffer>(observations, "observations"),
                Buffer(rewards, "rewards"), Buffer(terminations, "terminations"),
                Buffer(truncations, "truncations"), Buffer(needs_reset, "needs_reset"),
                Buffer(current_env, "current_env")});
            new (self) BoundWorkerLoop(
                {std::move(steps), std::move(read_action), std::move(write_observation),
                 std::move(finish_step), std::move(pack_infos), std::move(numpy_false)},
                std::move(arrays), first_env, fast_path);
          },
          nb::kw_only(), "steps"_a, "read_action"_a, "write_observation"_a, "finish_step"_a,
          "pack_infos"_a, "numpy_false"_a, "observations"_a.none(), "rewards"_a, "terminations"_a,
          "truncations"_a, "needs_reset"_a, "current_env"_a, "first_env"_a, "fast_path"_a,
          nb::sig("def __init__(self, *, steps: list[object], read_action: object, "
                  "write_observation: object, finish_step: object, pack_infos: object, "
                  "numpy_false: object, observations: object | None, rewards: object, "
                  "terminations: object, truncations: object, needs_reset: object, "
                  "current_env: object, first_env: int, fast_path: bool) -> None"),
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
  // Python checks the platform before it starts workers, so other platforms do not need the
  // classes.
#if defined(__linux__)
  bind_worker_loop(m);
#endif
}

}  // namespace cagepool
