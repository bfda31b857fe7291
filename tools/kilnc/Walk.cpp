// Walks through the configs of a kernel: from the default and distant configs to the neighbours of the fastest ones.

#include "tools/kilnc/Tune.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

namespace kiln::tools {

std::vector<size_t> allOf(size_t count) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

std::map<std::string, std::string> fieldsOf(const std::string &config) {
  std::map<std::string, std::string> values;
  llvm::SmallVector<llvm::StringRef> fields;
  llvm::StringRef(config).split(fields, ',', -1, false);
  for (const llvm::StringRef field : fields)
    values[field.split('=').first.trim().str()] = field.split('=').second.trim().str();
  return values;
}

// --- The space -------------------------------------------------------------------------------------------------------

Space::Space(const std::vector<std::string> &configs) : points(configs.size()) {
  std::map<std::string, std::vector<std::string>> values; // of each field, without repetition
  std::vector<std::map<std::string, std::string>> all;
  for (const std::string &config : configs)
    for (const auto &[name, value] : all.emplace_back(fieldsOf(config)))
      if (!llvm::is_contained(values[name], value))
        values[name].push_back(value);
  for (auto &[name, ofField] : values) {
    const auto numberOf = [](const std::string &value) {
      double number = 0;
      return llvm::StringRef(value).getAsDouble(number) ? std::nullopt : std::optional(number);
    };
    const bool isOrdered = llvm::all_of(ofField, [&](const std::string &value) { return numberOf(value); });
    if (isOrdered)
      llvm::sort(ofField, [&](const auto &a, const auto &b) { return *numberOf(a) < *numberOf(b); });
    fields.push_back({isOrdered, static_cast<int>(ofField.size())});
    for (size_t i = 0; i < all.size(); ++i)
      points[i].push_back(static_cast<int>(llvm::find(ofField, all[i][name]) - ofField.begin()));
  }
  for (size_t i = points.size(); i-- > 0;)
    indices[points[i]] = i; // of equals the first
}

std::vector<size_t> Space::neighboursOf(size_t index) const {
  std::vector<size_t> found;
  for (size_t f = 0; f < fields.size(); ++f)
    for (const int step : {-1, 1}) {
      std::vector<int> point = points[index];
      while ((point[f] += step) >= 0 && point[f] < fields[f].values)
        if (const auto at = indices.find(point); at != indices.end()) {
          found.push_back(at->second);
          if (fields[f].isOrdered)
            break;
        }
    }
  return found;
}

double Space::distance(size_t one, size_t other) const {
  double sum = 0;
  for (size_t f = 0; f < fields.size(); ++f) {
    const int between = std::abs(points[one][f] - points[other][f]);
    sum += fields[f].isOrdered ? between / std::max(1.0, fields[f].values - 1.0) : between != 0;
  }
  return sum;
}

// --- The walk --------------------------------------------------------------------------------------------------------

/// The default, and configs that are as far as possible from it and from each other.
static std::vector<size_t> startsIn(const Space &space) {
  constexpr size_t distant = 2;
  std::vector<size_t> starts = {0};
  std::vector<double> nearest(space.size(), std::numeric_limits<double>::infinity());
  while (starts.size() <= std::min(distant, space.size() - 1)) {
    for (size_t i = 0; i < space.size(); ++i)
      nearest[i] = std::min(nearest[i], space.distance(i, starts.back()));
    starts.push_back(std::max_element(nearest.begin(), nearest.end()) - nearest.begin());
  }
  return starts;
}

void walk(const Space &space, const std::function<std::vector<double>(const std::vector<size_t> &)> &visit,
          const std::function<bool()> &hasTime) {
  constexpr size_t few = 16, fastest = 3;
  std::vector<double> values(space.size(), std::numeric_limits<double>::infinity());
  std::vector<bool> wasVisited(space.size()), wasLeft(space.size());
  const auto visitAll = [&](std::vector<size_t> batch) {
    std::set<size_t> fresh;
    for (const size_t i : batch)
      if (!wasVisited[i])
        fresh.insert(i);
    batch.assign(fresh.begin(), fresh.end());
    for (const size_t i : batch)
      wasVisited[i] = true;
    const std::vector<double> measured = batch.empty() ? std::vector<double>() : visit(batch);
    for (size_t i = 0; i < batch.size(); ++i)
      values[batch[i]] = measured[i];
  };
  if (space.size() <= few)
    return visitAll(allOf(space.size()));
  visitAll(startsIn(space));
  std::vector<size_t> order = allOf(space.size());
  while (hasTime()) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
    const auto end = order.begin() + std::min(fastest, order.size());
    const auto next =
        std::find_if(order.begin(), end, [&](size_t i) { return !wasLeft[i] && std::isfinite(values[i]); });
    if (next == end)
      return;
    wasLeft[*next] = true;
    visitAll(space.neighboursOf(*next));
  }
}

} // namespace kiln::tools
