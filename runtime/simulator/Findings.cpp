// A table by line and check.

#include "runtime/simulator/Findings.h"

namespace kiln::simulator {

const char *nameOf(Check check) {
  static constexpr const char *names[] = {"bounds",  "alignment", "uninitialised", "race",      "in-flight",
                                          "barrier", "shuffle",   "deadlock",      "read-only", "trap"};
  return names[static_cast<int>(check)];
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
