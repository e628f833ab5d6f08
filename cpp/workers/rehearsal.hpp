#pragma once
// Measures, under the present load of the machine, whether worker processes would pay.

#include <cstdint>
#include <vector>

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
  std::int32_t rounds = 1;
  double turn_s = 0;  // of each side in a round
};

/// Seconds per step of all environments.
struct RehearsalTimes {
  double loop_s;
  double workers_s;
};

/// Take steps without environments, in this thread and in worker threads in turn; returns the times
/// of each round. Worker threads use the pipes, the waits and the loop of worker processes, so that
/// the scheduler treats both alike.
std::vector<RehearsalTimes> rehearse(const RehearsalPlan& plan);

}  // namespace cagepool
