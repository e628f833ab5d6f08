#include <nanobind/nanobind.h>

#include "step_loop.hpp"

namespace cagepool {

using namespace nb::literals;

void bind_workers(nb::module_& m) {
  m.attr("ALL_WORD") = kAllWord;
  m.attr("MESSAGE_WORD") = kMessageWord;

  nb::class_<Waiter>(m, "Waiter", "Waits until a descriptor can be read.")
      .def(nb::init<int, bool>(), "descriptor"_a, nb::kw_only(), "looks"_a)
      .def("wait", &Waiter::wait, "limit_s"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Whether it can be read within the limit; a negative one is none.");

  nb::class_<StepLoop>(m, "StepLoop", "The loop of a worker process over its environments.")
      .def(
          "__init__",
          [](StepLoop* self, nb::list steps, nb::object take, nb::object put, nb::object finish,
             nb::object carried, nb::object no_numpy, nb::object observations, nb::object rewards,
             nb::object terminations, nb::object truncations, nb::object states, nb::object mark,
             int first, bool plain) {
            std::unique_ptr<Places> places(new Places{
                observations.is_none() ? nullptr : std::make_unique<Buffer>(observations),
                Buffer(rewards), Buffer(terminations), Buffer(truncations), Buffer(states),
                Buffer(mark)});
            new (self) StepLoop({steps, take, put, finish, carried, no_numpy}, std::move(places),
                                first, plain);
          },
          nb::kw_only(), "steps"_a, "take"_a, "put"_a, "finish"_a, "carried"_a, "no_numpy"_a,
          "observations"_a.none(), "rewards"_a, "terminations"_a, "truncations"_a, "states"_a,
          "mark"_a, "first"_a, "plain"_a,
          nb::sig("def __init__(self, *, steps: list[object], take: object, put: object, "
                  "finish: object, carried: object, no_numpy: object, observations: object | None, "
                  "rewards: object, terminations: object, truncations: object, states: object, "
                  "mark: object, first: int, plain: bool) -> None"))
      .def("serve", &StepLoop::serve, "requests"_a, "answers"_a, nb::kw_only(), "looks"_a,
           "Answer requests until one is a message; returns its bytes, none if there are no more.")
      .def(
          "answer",
          [](StepLoop& self, int answers, nb::handle words) {
            const Buffer given(words, false);
            return self.answer(answers, {&given.at<std::int32_t>(0),
                                         static_cast<std::size_t>(given.view().len) / 4});
          },
          "answers"_a, "words"_a, nb::sig("def answer(self, answers: int, words: bytes) -> bool"),
          "Step these environments and answer; false: nobody hears it.");
}

}  // namespace cagepool
