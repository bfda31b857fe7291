// Inputs shifted by one position.

#include "models/bytelm/shifted.h"
#include "models/data/batches.h"

#include <algorithm>

namespace kiln {

HostBatch shifted(const HostBatch &batch, int64_t context) {
  const std::vector<int32_t> tokens = batch.at("tokens").numbers<int32_t>(),
                             next = batch.at("targets").numbers<int32_t>();
  std::vector<int32_t> before(tokens.size(), -1), targets(tokens.size(), ignoredTarget);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool isFirst = static_cast<int64_t>(i) % context == 0;
    if (isFirst && next[i] == ignoredTarget)
      continue; // padding after the last sequence
    targets[i] = isFirst ? tokens[i] : next[i - 1];
    if (!isFirst && targets[i] != ignoredTarget)
      before[i] = tokens[i - 1];
  }
  return languageBatch(before, targets);
}

int64_t ShiftedData::validationTargets(int64_t first, int64_t count) const {
  const std::vector<int32_t> targets = validation(first, count).at("targets").numbers<int32_t>();
  return std::ssize(targets) - std::count(targets.begin(), targets.end(), ignoredTarget);
}

} // namespace kiln
