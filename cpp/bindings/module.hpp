#pragma once
// The parts of the module, one function per file of bindings.

#include <nanobind/nanobind.h>

namespace cagepool {

namespace nb = nanobind;

void bind_batch(nb::module_& m);
void bind_belief(nb::module_& m);
void bind_mlp(const nb::module_& m);
void bind_policy(nb::module_& m);
void bind_workers(nb::module_& m);

}  // namespace cagepool
