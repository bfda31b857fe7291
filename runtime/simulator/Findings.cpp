// A table of findings by line and check.

#include "runtime/simulator/Findings.h"

#include "dialect/dsl/Nearest.h"
#include "dialect/dsl/Types.h"

#include <array>
#include <fmt/format.h>
#include <sstream>

namespace kiln::simulator {

const char *nameOf(Check check) {
  static constexpr std::array<const char *, checkCount> names = {
      "bounds",    "alignment", "uninitialised", "race",       "race-lanes", "race-programs",
      "in-flight", "proxy",     "barrier",       "uniform",    "shuffle",    "deadlock",
      "read-only", "trap",      "mbarrier",      "tensor-map", "wgmma",      "registers"};
  return names[static_cast<size_t>(check)];
}

bool Checks::needShadow() const {
  return has(Check::uninitialised) || has(Check::race) || has(Check::raceLanes) || has(Check::racePrograms) ||
         has(Check::inFlight) || has(Check::proxy);
}

Checks Checks::named(const std::string &text) {
  Checks checks;
  std::stringstream stream(text);
  bool isFirst = true;
  for (std::string name; std::getline(stream, name, ','); isFirst = false) {
    const bool on = !name.starts_with('-');
    const std::string bare = on ? name : name.substr(1);
    if (bare == "all") {
      checks.bits = on ? ~uint32_t{0} : 0;
      continue;
    }
    if (isFirst && on)
      checks.bits = 0;
    int number = 0;
    while (number < checkCount && bare != nameOf(static_cast<Check>(number)))
      ++number;
    if (number == checkCount) {
      std::vector<std::string> names = {"all"};
      for (int i = 0; i < checkCount; ++i)
        names.emplace_back(nameOf(static_cast<Check>(i)));
      throw Error(unknownName("check", bare, names));
    }
    checks.set(static_cast<Check>(number), on);
  }
  return checks;
}

void Findings::add(Check check, const ptx::Place &place, const std::string &text) {
  const std::lock_guard lock(mutex);
  Finding &finding = found[{place.line, check}];
  if (finding.count++ == 0)
    finding = {check, place, text, 1};
}

bool Findings::empty() const {
  const std::lock_guard lock(mutex);
  return found.empty();
}

std::vector<Finding> Findings::list() const {
  const std::lock_guard lock(mutex);
  std::vector<Finding> all;
  for (const auto &[key, finding] : found)
    all.push_back(finding);
  return all;
}

void Findings::clear() {
  const std::lock_guard lock(mutex);
  found.clear();
}

} // namespace kiln::simulator
