// Starts and stops the profiler, and writes its results.

#include "models/observe/profiled_steps.h"
#include "models/observe/profile_table.h"
#include "models/train/number_text.h"
#include "runtime/Files.h"

#include <fmt/format.h>

namespace kiln {

StepRange stepRangeNamed(const std::string &flag, const std::string &text) {
  const size_t colon = text.find(':');
  const auto first = numberIn<int64_t>(flag, text.substr(0, colon));
  const StepRange range = {first, colon == std::string::npos ? first : numberIn<int64_t>(flag, text.substr(colon + 1))};
  if (range.first < 1 || range.last < range.first)
    throw Error(fmt::format("expected '{}' to be A:B (steps A to B, with 1 <= A <= B) or A (one step), but got '{}'",
                            flag, text));
  return range;
}

Profiler *ProfiledSteps::at(int64_t number) {
  if (number < steps.first || number > steps.last)
    return nullptr;
  if (!profiler) {
    roof = roofOf(*trainer.machine(), trainer.trained().type(), trainer.precision());
    profiler.emplace(trainer);
  }
  return &*profiler;
}

std::optional<std::string> ProfiledSteps::after(int64_t number, bool ends) {
  if (isTold || (!profiler && !ends))
    return {};
  if (!profiler)
    return fmt::format("nothing is profiled: expected to take one of steps {} to {}, but the run ends at step {}",
                       steps.first, steps.last, number);
  profiler->endStep();
  if (number < steps.last && !ends)
    return {};
  isTold = true;
  const TraceFacts facts = profiler->facts(roof);
  const std::vector<Stretch> stretches = profiler->stretches();
  const bool isTime = profiler->isTime();
  profiler.reset();
  writeOutput(trace, chromeTrace(stretches, facts));
  return fmt::format("profile, whose trace is '{}': {}", trace, profileText(stretches, facts, isTime));
}

} // namespace kiln
