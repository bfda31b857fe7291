// Some steps of a run, profiled: `--profile A:B`.

#pragma once

#include "models/observe/profiler.h"
#include "models/observe/step_range.h"

namespace kiln {

class ProfiledSteps {
public:
  /// All that it is given must outlive it. The trace goes to `trace`.
  ProfiledSteps(Trainer &trainer, const StepRange &steps, std::string trace)
      : trainer(trainer), steps(steps), trace(std::move(trace)) {}

  /// Who watches step `number`, from before it begins; nobody where that is none of the steps.
  Profiler *at(int64_t number);
  /// After step `number`, or where the run ends behind it: the tables, once the last of the steps is among those taken.
  /// Then the trace is written. Throws Error (device) where it cannot be. Where the run ends and took none of the
  /// steps, that is said.
  std::optional<std::string> after(int64_t number, bool ends);

private:
  Trainer &trainer;
  const StepRange steps;
  const std::string trace;
  Roof roof;
  std::optional<Profiler> profiler;
  bool isTold = false; // what there was to tell
};

} // namespace kiln
