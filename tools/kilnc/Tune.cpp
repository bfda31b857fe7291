// Measures candidates, and writes the fastest to a file of findings.

#include "tools/kilnc/Tune.h"

#include "runtime/Files.h"
#include "runtime/Findings.h"
#include "runtime/Streams.h"
#include "tools/kilnc/Tuning.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <limits>
#include <unistd.h>

namespace kiln::tools {

Tuning::Tuning(Device &device, const Kernel &kernel, const std::vector<Arg> &args, const std::vector<Trial> &trials,
               const TuneOptions &options)
    : device(device), kernel(kernel), args(args), options(options), buckets(bucketsAsked()), measure(device),
      rates(ratesFor(device)), simulator(dynamic_cast<SimulatorDevice *>(&device)) {
  for (const Trial &trial : trials)
    candidates.push_back({.config = trial.config, .grid = trial.grid});
  if (isPredicted())
    simulator->setCounting(true);
}

Tuning::~Tuning() {
  if (isPredicted())
    simulator->setCounting(false);
  try {
    upload(originals);
  } catch (const Error &) { // the device failed, which was reported before
  }
}

/// A line that the next one overwrites on a terminal.
void Tuning::progress(const std::string &text) const {
  if (options.showsProgress && ::isatty(2))
    say("\r\033[K" + (text.empty() ? "" : fmt::format("{:.0f} s: {}", elapsed(), text)));
}

// --- Measuring -------------------------------------------------------------------------------------------------------

/// Leaves out candidates that a GPU would run much more slowly than the best, as the pipe model predicts.
void Tuning::dropSlow() {
  constexpr double slowdown = 2;
  if (!rates || simulator || options.exhaustive)
    return;
  double best = std::numeric_limits<double>::infinity();
  for (Candidate &candidate : candidates) {
    if (!candidate.executable || elapsed() > 0.6 * options.budget)
      continue;
    progress(fmt::format("predicting {}", candidate.config));
    candidate.predicted = predictedTime(*rates, device, {&kernel, candidate.config, candidate.grid, args});
    best = std::min(best, candidate.predicted.value_or(best));
  }
  for (Candidate &candidate : candidates)
    if (&candidate != candidates.data() && candidate.predicted.value_or(0) > slowdown * best) {
      candidate.error =
          fmt::format("expected a predicted time of at most {} times the best, {:.2f} us, but got {:.2f} us", slowdown,
                      best, *candidate.predicted);
      candidate.executable = {};
    }
}

double Tuning::measureOne(Candidate &candidate) {
  if (isPredicted())
    return candidate.predicted.value();
  progress(fmt::format("measuring {}", candidate.config));
  const double value = measure(*candidate.executable, candidate.grid, args, candidate.times);
  // 2 ms of consecutive launches, so that the clock's overhead and short interruptions matter little.
  if (!measure.isExact() && candidate.times == 1)
    candidate.times = static_cast<int>(std::clamp(std::ceil(2000 / std::max(value, 0.01)), 1.0, 1000.0));
  return value;
}

TuneReport Tuning::run() {
  compileAll();
  dropSlow();
  checkAll();
  std::vector<size_t> sound; // indices of candidates that compile and have correct results
  for (size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].executable)
      sound.push_back(i);
  std::vector<Ranked> ranked = search(
      sound.size(), {measure.isExact(), options.exhaustive}, [&](size_t i) { return measureOne(candidates[sound[i]]); },
      [&] { return elapsed() < options.budget; });
  progress("");
  for (Ranked &each : ranked)
    each.index = sound[each.index];
  const Ranked byDefault = *std::find_if(ranked.begin(), ranked.end(), [](const Ranked &r) { return r.index == 0; });
  // The default is kept for a gain below one per cent.
  if (!measure.isExact() && byDefault.rounds == ranked[0].rounds && byDefault.value < 1.01 * ranked[0].value)
    ranked.insert(ranked.begin(), byDefault);
  if (!options.output.empty() && faults.empty())
    enter(ranked[0], byDefault);
  else if (!options.output.empty())
    faults += fmt::format("no finding was written to '{}'\n", options.output);
  return {candidates[ranked[0].index].config, table(ranked), faults};
}

// --- Reporting -------------------------------------------------------------------------------------------------------

std::string Tuning::table(const std::vector<Ranked> &ranked) const {
  std::string text = fmt::format("{} on {}, {}\n", kernel.name, deviceKey(device), argumentsKey(kernel, args));
  if (isPredicted())
    text += fmt::format("times are predicted for {}\n", rates->name);
  if (ranked[0].varied >= 1.2)
    text += fmt::format("times varied by a factor of {:.1f}: the machine is busy\n", ranked[0].varied);
  const auto line = [&](const Ranked &each, const std::string &mark) {
    return fmt::format("{:>12.2f} {:<6} {}{}\n", each.value, unit(), candidates[each.index].config, mark);
  };
  const auto remarks = [&](const Ranked &each) {
    return fmt::format("{}{}", candidates[each.index].rounds ? "  (other rounding)" : "",
                       each.rounds < ranked[0].rounds ? fmt::format("  (dropped in round {})", each.rounds) : "");
  };
  constexpr size_t most = 8;
  bool sawDefault = false;
  size_t notListed = 0;
  for (size_t i = 0; i < ranked.size(); ++i) {
    const bool isDefault = ranked[i].index == 0;
    if (isDefault && sawDefault)
      continue;
    sawDefault |= isDefault;
    if (i < most || isDefault || options.exhaustive)
      text += line(ranked[i], isDefault ? "  (default)" : remarks(ranked[i]));
    else
      ++notListed;
  }
  if (notListed)
    text += fmt::format("{} slower configs are not listed\n", notListed);
  text += leftOut;
  size_t measured = 0, compiled = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    measured += std::any_of(ranked.begin(), ranked.end(), [&](const Ranked &r) { return r.index == i; });
    compiled += candidates[i].executable != nullptr;
  }
  const double faster = std::find_if(ranked.begin(), ranked.end(), [](const Ranked &r) { return r.index == 0; })->value;
  text += fmt::format("best of {} configs: {}, {:.2f} times as fast as the default, in {:.1f} s\n", measured,
                      candidates[ranked[0].index].config, faster / ranked[0].value, elapsed());
  if (options.refused)
    text += fmt::format("{} more were left out by the kernel's constraint\n", options.refused);
  const auto late = std::count_if(candidates.begin(), candidates.end(),
                                  [](const Candidate &c) { return !c.executable && c.error.empty(); });
  if (late || measured < compiled)
    text += fmt::format("{} more were not measured within {}={:g}\n", late + compiled - measured, options.names.budget,
                        options.budget);
  return text;
}

std::set<std::pair<int, int>> Tuning::bucketsAsked() const {
  std::set<std::pair<int, int>> buckets;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(options.buckets).split(parts, ',', -1, false);
  for (const llvm::StringRef part : parts) {
    auto [name, number] = part.trim().rsplit('.');
    size_t argument = 0;
    while (argument < kernel.parameters.size() && kernel.parameters[argument].name != name)
      ++argument;
    size_t dimension;
    if (argument == kernel.parameters.size() || !kernel.parameters[argument].isView() ||
        number.getAsInteger(10, dimension) || dimension >= args[argument].ref.extents.size())
      throw Error(fmt::format("kernel '{}': expected extents such as x.0 in {}, but got '{}'", kernel.name,
                              options.names.bucket, part.trim().str()));
    buckets.insert({static_cast<int>(argument), static_cast<int>(dimension)});
  }
  return buckets;
}

void Tuning::enter(const Ranked &best, const Ranked &byDefault) const {
  FindingsFile findings = std::filesystem::exists(options.output) ? FindingsFile::load(options.output) : FindingsFile();
  findings.add({.kernel = kernel.name,
                .device = deviceKey(device),
                .arguments = argumentsKey(kernel, args, buckets),
                .config = candidates[best.index].config,
                .measured = best.value,
                .byDefault = byDefault.value,
                .unit = unit(),
                .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))});
  writeOutput(options.output, findings.text());
}

TuneReport tuneKernel(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                      const std::vector<Trial> &trials, const TuneOptions &options) {
  if (trials.empty())
    throw Error(fmt::format("kernel '{}': expected a config to try, but got none", kernel.name));
  if (!options.output.empty()) {
    expectFile(options.output);
    if (std::filesystem::exists(options.output))
      FindingsFile::load(options.output); // reports a damaged file before the work
  }
  return Tuning(device, kernel, args, trials, options).run();
}

} // namespace kiln::tools
