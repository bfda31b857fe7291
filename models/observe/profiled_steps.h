// Profiling of some steps of a run: `--profile A:B`.

#pragma once

#include "models/observe/profiler.h"
#include "models/observe/step_range.h"

namespace kiln {

class ProfiledSteps {
public:
  /// All arguments must outlive it. The trace is written to `trace`.
  ProfiledSteps(Trainer &trainer, const StepRange &steps, std::string trace)
      : trainer(trainer), steps(steps), trace(std::move(trace)) {}

  /// The profiler for step `number`, from before it begins; none if that step is not profiled.
  Profiler *at(int64_t number);
  /// To be called after step `number`, or at the end of the run. Returns the tables once the last of the steps is done,
  /// and writes the trace. Throws Error (device) if it cannot be written. If the run ended without any of the steps, it
  /// says so.
  std::optional<std::string> after(int64_t number, bool ends);

private:
  Trainer &trainer;
  const StepRange steps;
  const std::string trace;
  Roof roof;
  std::optional<Profiler> profiler;
  bool isTold = false; // the result was returned
};

} // namespace kiln
