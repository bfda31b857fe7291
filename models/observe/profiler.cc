// Runs launches one by one, with a device timestamp between each two.

#include "models/observe/profiler.h"
#include "models/observe/trace.h"
#include "models/train/peak.h"
#include "runtime/Files.h"

#include <fmt/format.h>

namespace kiln {

Roof measureRoof(Device &device, Type type, std::optional<Precision> precision) {
  if (!clockOf(device)->isTime())
    return {};
  const PeakSampler products = peakSampler(device, type, precision), sums = memorySampler(device);
  return {bestRate(products.sample), bestRate(sums.sample),
          fmt::format("{}; {}, more where caches hold them", products.what, sums.what)};
}

Profiler::Profiler(Trainer &trainer) : trainer(trainer), clock(clockOf(*trainer.machine())) {
  trainer.watch([this](const std::vector<Trainer::NamedLaunch> &launches) {
    clock->mark();
    for (const Trainer::NamedLaunch &launch : launches) {
      launch.run.run();
      clock->mark();
      asked.push_back({Track::device, launch.label, launch.kernel, 0, 0, launch.flops, launch.bytes, launch.shapes});
    }
    lists.push_back(asked.size());
  });
}

Profiler::~Profiler() { trainer.watch({}); }

void Profiler::endStep() {
  const std::vector<double> times = clock->take();
  size_t mark = 0, launch = 0;
  for (const size_t end : lists) {
    for (; launch < end; ++launch, ++mark) {
      asked[launch].begin = times.at(mark);
      asked[launch].end = times.at(mark + 1);
      noted.push_back(std::move(asked[launch]));
    }
    ++mark; // the next list begins with its own timestamp
  }
  asked.clear();
  lists.clear();
}

TraceFacts Profiler::facts(const Roof &roof) const {
  const std::shared_ptr<Device> &device = trainer.machine();
  return {fmt::format("{} ({} threads)", device->name(), device->threads()), clock->what(), roof};
}

//===-- Some steps of a run -------------------------------------------------------------------------------------===//

Profiler *ProfiledSteps::at(int64_t number) {
  if (number < steps.first || number > steps.last)
    return nullptr;
  if (!profiler) {
    roof = measureRoof(*trainer.machine(), trainer.trained().type(), trainer.precision());
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
