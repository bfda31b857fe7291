// Combinations of fields, and rounds of measurements.

#include "tools/kilnc/Tune.h"

#include "runtime/KernelImage.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace kiln::tools {

// --- Candidates ------------------------------------------------------------------------------------------------------

Candidates candidatesOf(const Kernel &kernel, const std::string &fixed, const Target &target, bool variesResults,
                        const SettingNames &names) {
  kernel.configText(fixed); // throws for an unknown field
  const std::map<std::string, std::string> given = fieldsOf(fixed);
  struct Varied {
    std::string name;
    std::vector<std::string> values; // the default first
  };
  std::vector<Varied> varied;
  int64_t count = 1;
  bool hasChanging = false;
  for (const Field &field : kernel.fields) {
    if (field.candidates.empty() || given.count(field.name))
      continue;
    if (field.changesResults && !variesResults) {
      hasChanging = true;
      continue;
    }
    Varied each{field.name, {field.byDefault}};
    for (const std::string &value : field.candidates)
      if (!llvm::is_contained(each.values, value))
        each.values.push_back(value);
    count *= static_cast<int64_t>(each.values.size());
    if (count > 100000)
      throw Error(fmt::format("kernel '{}': expected at most 100000 configs to try; fix some fields with {}",
                              kernel.name, names.config));
    varied.push_back(std::move(each));
  }
  if (count == 1 && hasChanging)
    throw Error(fmt::format("kernel '{}': all fields with candidates are `.changing()`: pass {}", kernel.name,
                            names.variesResults));
  if (count == 1 && isLoaded(kernel))
    throw Error(fmt::format("kernel '{}': expected several configs of the image to choose among, but it has one; "
                            "compile others by kilnc --emit=image --config=…, and concatenate the files",
                            kernel.name));
  if (count == 1)
    throw Error(fmt::format("kernel '{}': expected a field with candidates that {} leaves open, as by "
                            "field(...).among({{32, 64}}); kilnc --list shows them",
                            kernel.name, names.config));
  std::vector<std::pair<int, std::string>> all; // fields that differ, config
  for (int64_t number = 0; number < count; ++number) {
    int64_t rest = number;
    int differing = 0;
    std::string config = fixed;
    for (const Varied &each : varied) {
      const auto size = static_cast<int64_t>(each.values.size());
      const int64_t choice = rest % size;
      rest /= size;
      differing += choice != 0;
      config += (config.empty() ? "" : ",") + each.name + "=" + each.values[choice];
    }
    all.emplace_back(differing, std::move(config));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  Candidates result;
  for (auto &[differing, config] : all) {
    if (differing && kernel.allows && !kernel.allows(config, target))
      ++result.refused;
    else
      result.configs.push_back(std::move(config));
  }
  return result;
}

bool changesResults(const Kernel &kernel, const std::string &config, const std::string &byDefault) {
  const std::map<std::string, std::string> values = fieldsOf(config), others = fieldsOf(byDefault);
  return llvm::any_of(kernel.fields, [&](const Field &field) {
    const auto in = [&](const std::map<std::string, std::string> &given) {
      const auto value = given.find(field.name);
      return value == given.end() ? field.byDefault : value->second;
    };
    return field.changesResults && in(values) != in(others);
  });
}

// --- Rounds ----------------------------------------------------------------------------------------------------------

/// The lower quartile, and how many times as long the slowest fifth of the values takes as the fastest fifth. Other
/// programs make times longer and never shorter, so the median of a busy machine says little.
static Ranked rankedBy(std::vector<double> values, size_t index) {
  std::sort(values.begin(), values.end());
  const size_t last = values.size() - 1, fifth = values.size() / 5;
  return {index, values[last / 4], static_cast<int>(values.size()), values[last - fifth] / values[fifth]};
}

namespace {
struct Interval {
  double low, high;
};
} // namespace

/// An interval that has the true lower quartile with a probability of about 95 %, for values of any distribution. Of n
/// values, the number below the quartile is binomial: n / 4, with the deviation √(3 n) / 4, of which this takes two.
static Interval quartileWithin(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double last = static_cast<double>(values.size()) - 1, by = std::sqrt(3 * (last + 1)) / 2;
  return {values[static_cast<size_t>(std::max(0.0, std::floor(last / 4 - by)))],
          values[static_cast<size_t>(std::min(last, std::ceil(last / 4 + by)))]};
}

std::vector<Ranked> search(size_t count, SearchOptions options, const std::function<double(size_t)> &measure,
                           const std::function<bool()> &hasTime) {
  constexpr int enough = 9, mostRounds = 36, nearFrom = 4;
  constexpr double slowdown = 1.3, equal = 1.02, equalLeast = 1.01;
  std::vector<std::vector<double>> values(count); // for each candidate, the fastest measurement of each round
  std::vector<bool> wasSlow(count);
  std::vector<size_t> alive = allOf(count);
  const auto rank = [&](std::vector<size_t> of) {
    std::vector<Ranked> ranked;
    for (const size_t i : of)
      if (!values[i].empty())
        ranked.push_back(rankedBy(values[i], i));
    std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked &a, const Ranked &b) { return a.value < b.value; });
    return ranked;
  };
  const auto isDecided = [&](const Ranked &each, const Ranked &best) { // which one is faster, or that both are equal
    const Interval one = quartileWithin(values[each.index]), other = quartileWithin(values[best.index]);
    if (one.low > other.high || std::max(one.high, other.high) <= equal * std::min(one.low, other.low))
      return true;
    // On a busy machine quartiles vary, but the fastest of nine rounds was hardly disturbed.
    const double least = *llvm::min_element(values[each.index]), leastOfBest = *llvm::min_element(values[best.index]);
    return std::max(least, leastOfBest) <= equalLeast * std::min(least, leastOfBest);
  };
  bool isOpen = false; // which one is the fastest
  const int most = options.isExact ? 1 : options.rounds;
  for (int round = 1; round <= (isOpen && most >= enough ? mostRounds : most); ++round) {
    const bool keepsAll = options.exhaustive && round < most;
    double best = 0; // the best of this round
    for (const size_t i : alive) {
      if (i != 0 && !hasTime())
        break;
      std::vector<double> samples = {measure(i)};
      // One measurement is enough for a candidate that is far slower, and for a second one that says so, too.
      const double limit = values[i].size() == 1 && wasSlow[i] ? slowdown : 2 * slowdown;
      while (!options.isExact && samples.size() < 3 &&
             ((options.exhaustive && round <= most) || best == 0 || samples[0] <= limit * best))
        samples.push_back(measure(i));
      values[i].push_back(*llvm::min_element(samples));
      best = best == 0 ? values[i].back() : std::min(best, values[i].back());
    }
    if (!hasTime())
      break;
    const std::vector<Ranked> ranked = rank(alive);
    alive.clear();
    isOpen = false;
    for (const Ranked &each : ranked) {
      const size_t place = &each - ranked.data();
      wasSlow[each.index] = each.value > slowdown * ranked[0].value;
      // A busy machine may double the times of all rounds so far.
      const double limit = round < nearFrom ? 2 * slowdown : place > 1 ? 1 : slowdown;
      const double low = quartileWithin(values[each.index]).low;
      if (each.index != 0 && !keepsAll && round >= options.dropFrom && low > limit * ranked[0].value)
        continue;
      alive.push_back(each.index);
      isOpen |= place > 0 && !isDecided(each, ranked[0]);
    }
    llvm::sort(alive);
  }
  std::vector<Ranked> ranked = rank(allOf(count));
  // The best must be among the candidates of all rounds, because few rounds may be fast by chance.
  int longest = 0;
  for (const Ranked &each : ranked)
    longest = std::max(longest, each.rounds);
  const auto first = llvm::find_if(ranked, [&](const Ranked &each) { return each.rounds >= longest - 1; });
  std::rotate(ranked.begin(), first, first == ranked.end() ? first : first + 1);
  return ranked;
}

} // namespace kiln::tools
