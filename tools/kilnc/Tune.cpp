// Measures candidates, and writes the fastest to a file of findings.

#include "tools/kilnc/Tune.h"

#include "runtime/Files.h"
#include "runtime/Findings.h"
#include "runtime/Streams.h"
#include "tools/kilnc/Tuning.h"

#include "llvm/ADT/STLExtras.h"
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
void Tuning::dropSlow(const std::vector<size_t> &batch) {
  constexpr double slowdown = 2;
  if (!rates || simulator || options.exhaustive)
    return;
  for (const size_t i : batch) {
    Candidate &candidate = candidates[i];
    if (!candidate.executable || elapsed() > 0.6 * options.budget)
      continue;
    progress(fmt::format("predicting {}", candidate.config));
    candidate.predicted = predictedTime(*rates, device, {&kernel, candidate.config, candidate.grid, args});
    leastPredicted = std::min(leastPredicted, candidate.predicted.value_or(leastPredicted));
  }
  for (const size_t i : batch)
    if (Candidate &candidate = candidates[i]; i != 0 && candidate.predicted.value_or(0) > slowdown * leastPredicted) {
      candidate.error =
          fmt::format("expected a predicted time of at most {} times the best, {:.2f} us, but got {:.2f} us", slowdown,
                      leastPredicted, *candidate.predicted);
      candidate.executable = {};
    }
}

double Tuning::measureOne(Candidate &candidate) {
  if (isPredicted())
    return candidate.predicted.value();
  if (measure.isExact() && candidate.first.rounds)
    return candidate.first.value;
  progress(fmt::format("measuring {}", candidate.config));
  const double value = measure(*candidate.executable, candidate.grid, args, candidate.times);
  // 2 ms of consecutive launches, so that the clock's overhead and short interruptions matter little.
  if (!measure.isExact() && candidate.times == 1)
    candidate.times = static_cast<int>(std::clamp(std::ceil(2000 / std::max(value, 0.01)), 1.0, 1000.0));
  return value;
}

/// Measures candidates, and the fastest one so far, in two rounds. Returns their times. Small changes of the machine's
/// speed, which that one shows, are taken out; after a large one, all are measured again.
std::vector<double> Tuning::race(const std::vector<size_t> &batch) {
  constexpr double steady = 1.15;
  constexpr int mostTries = 3;
  const Ranked before = candidates[fastest].first;
  std::vector<size_t> racing = {fastest};
  for (const size_t i : batch)
    if (i != fastest && candidates[i].executable)
      racing.push_back(i);
  std::vector<Ranked> least(racing.size());
  const auto hasTime = [&] { return elapsed() < options.budget; };
  for (int tries = 0; tries < mostTries && racing.size() + !before.rounds > 1 && hasTime(); ++tries) {
    for (const Ranked &each : search(
             racing.size(), {.isExact = measure.isExact(), .rounds = 2},
             [&](size_t i) { return measureOne(candidates[racing[i]]); }, hasTime))
      if (Ranked &one = least[each.index]; !one.rounds || each.value < one.value)
        one = each;
    if (!before.rounds || least[0].value <= steady * before.value)
      break;
  }
  const double scale =
      before.rounds && least[0].rounds ? std::clamp(before.value / least[0].value, 1 / steady, steady) : 1;
  std::vector<double> values(batch.size(), std::numeric_limits<double>::infinity());
  for (size_t i = before.rounds ? 1 : 0; i < racing.size(); ++i)
    candidates[racing[i]].first = {racing[i], least[i].value * scale, least[i].rounds};
  for (size_t i = 0; i < batch.size(); ++i)
    if (const Candidate &candidate = candidates[batch[i]]; candidate.executable && candidate.first.rounds)
      values[i] = candidate.first.value;
  for (const size_t i : racing)
    if (candidates[i].first.rounds && candidates[i].first.value < candidates[fastest].first.value)
      fastest = i;
  return values;
}

std::vector<double> Tuning::visit(const std::vector<size_t> &batch) {
  for (const size_t i : batch)
    candidates[i].wasVisited = true;
  compileAll(batch);
  dropSlow(batch);
  checkAll(batch);
  return options.exhaustive ? std::vector<double>(batch.size()) : race(batch);
}

/// The default, and the few fastest of the walk; all if there is no better measurement.
std::vector<size_t> Tuning::finalists() const {
  constexpr double slowdown = 1.1; // two rounds may be wrong by that much
  constexpr size_t most = 6;
  std::vector<size_t> found;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].executable && (i == 0 || options.exhaustive || candidates[i].first.rounds))
      found.push_back(i);
  if (options.exhaustive || measure.isExact())
    return found;
  const auto valueOf = [&](size_t i) { return candidates[i].first.value; };
  std::stable_sort(found.begin() + 1, found.end(), [&](size_t a, size_t b) { return valueOf(a) < valueOf(b); });
  const double limit = slowdown * valueOf(fastest);
  found.erase(std::find_if(found.begin() + 1, found.end(), [&](size_t i) { return valueOf(i) > limit; }), found.end());
  found.resize(std::min(found.size(), most));
  return found;
}

/// Walks among the candidates, without copies where finding them takes little time.
void Tuning::walkAll() {
  constexpr size_t few = 64;
  std::vector<size_t> all = allOf(candidates.size());
  if (candidates.size() <= few)
    findCopies(all);
  llvm::erase_if(all, [&](size_t i) { return candidates[i].isCopy; });
  std::vector<std::string> configs;
  for (const size_t i : all)
    configs.push_back(candidates[i].config);
  walk(
      Space(configs),
      [&](std::vector<size_t> batch) {
        std::transform(batch.begin(), batch.end(), batch.begin(), [&](size_t place) { return all[place]; });
        return visit(batch);
      },
      [&] { return elapsed() < 0.4 * options.budget; });
}

TuneReport Tuning::run() {
  if (options.exhaustive)
    visit(allOf(candidates.size()));
  else
    walkAll();
  ranOut = elapsed() >= 0.4 * options.budget;
  explainDifferences();
  const std::vector<size_t> last = finalists();
  std::vector<Ranked> ranked = search(
      last.size(), {.isExact = measure.isExact(), .exhaustive = options.exhaustive, .dropFrom = 4},
      [&](size_t i) { return measureOne(candidates[last[i]]); }, [&] { return elapsed() < options.budget; });
  progress("");
  for (Ranked &each : ranked)
    each.index = last[each.index];
  const size_t measured = ranked.size();
  for (const Candidate &candidate : candidates)
    if (candidate.executable && candidate.first.rounds && !llvm::is_contained(last, candidate.first.index))
      ranked.push_back(candidate.first);
  std::stable_sort(ranked.begin() + static_cast<ptrdiff_t>(measured), ranked.end(),
                   [](const Ranked &a, const Ranked &b) { return a.value < b.value; });
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
  const double faster = std::find_if(ranked.begin(), ranked.end(), [](const Ranked &r) { return r.index == 0; })->value;
  text += fmt::format("best of {} configs: {}, {:.2f} times as fast as the default, in {:.1f} s\n",
                      ranked.size() - (llvm::count_if(ranked, [](const Ranked &r) { return r.index == 0; }) - 1),
                      candidates[ranked[0].index].config, faster / ranked[0].value, elapsed());
  if (options.refused)
    text += fmt::format("{} more were left out by the kernel's constraint\n", options.refused);
  const auto add = [&](const std::string &why, const auto &isOne) {
    if (const auto count = llvm::count_if(candidates, isOne))
      text += fmt::format("{} more {}\n", count, why);
  };
  const auto isLate = [&](const Candidate &each) {
    const bool isMeasured = llvm::any_of(ranked, [&](const Ranked &r) { return &candidates[r.index] == &each; });
    return !each.isCopy && (each.wasVisited ? each.error.empty() && !isMeasured : ranOut);
  };
  add("have the code of another config", [](const Candidate &each) { return each.isCopy; });
  add(fmt::format("were not measured within {}={:g}", options.names.budget, options.budget), isLate);
  if (!ranOut)
    add("are no neighbours of fast configs" +
            (options.names.exhaustive.empty() ? "" : fmt::format("; {} measures all", options.names.exhaustive)),
        [](const Candidate &each) { return !each.wasVisited && !each.isCopy; });
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
