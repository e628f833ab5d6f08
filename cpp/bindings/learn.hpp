#pragma once

#include <nanobind/nanobind.h>

namespace cagepool {

/// Add what a learner needs to the module.
void bind_learn(nanobind::module_& m);

}  // namespace cagepool
