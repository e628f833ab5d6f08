#pragma once
// Measures, under the present load of the machine, whether worker processes would pay.

#include <cstdint>

namespace cagepool {

/// What a process does in one step of all its environments.
struct StepWork {
  double compute_s = 0;  // CPU time
  double wait_s = 0;     // sleep
};

struct RehearsalPlan {
  StepWork loop;        // one process that steps all environments
  StepWork worker;      // each of the workers
  double parent_s = 0;  // CPU time of the parent of the workers
  std::int32_t workers = 1;
  double budget_s = 0;  // of the rehearsal
};

/// Seconds per step of all environments.
struct RehearsalTimes {
  double loop_s;
  double workers_s;
};

/// Take steps without environments, in this thread and in worker threads in turn, for about
/// `budget_s` seconds. Worker threads use the pipes, the waits and the loop of worker processes, so
/// that the scheduler treats both alike.
RehearsalTimes rehearse(const RehearsalPlan& plan);

}  // namespace cagepool
