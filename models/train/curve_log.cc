// Reads curves from a run's log, by step, time or tokens.

#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "models/train/curves.h"

#include <filesystem>
#include <fmt/format.h>
#include <sstream>

namespace kiln {

/// The largest step that a double counts exactly.
static constexpr int64_t mostSteps = int64_t{1} << 53;

/// Whether a line is incomplete because the run was killed: the last one, without a line end, and not JSON.
static bool breaksOff(const std::string &path, const std::string &line, bool isLast) {
  if (!isLast)
    return false;
  try {
    const JsonObject row(path, line);
    return false;
  } catch (const Error &) {
    return true;
  }
}

namespace {
/// The x coordinates of a log's rows; a resumed run restarts its clock.
class Places {
public:
  explicit Places(Over over) : over(over) {}
  double of(const JsonObject &row, int64_t step) {
    if (over == Over::steps)
      return static_cast<double>(step);
    if (over == Over::tokens)
      return sum += row.number("tokens");
    const double seconds = row.number("seconds");
    if (seconds < last)
      sum += last;
    last = seconds;
    return sum + seconds;
  }

private:
  const Over over;
  double sum = 0, last = 0;
};
} // namespace

Curve readCurve(const std::string &folder, const CurveOf &of) {
  const std::string path = folder + "/log.jsonl";
  Curve curve;
  const std::filesystem::path place = std::filesystem::path(folder).lexically_normal();
  curve.name = place.has_filename() ? place.filename() : place.parent_path().filename();
  Places places(of.over);
  const bool isLoss = of.tag == CurveOf().tag; // every row has it
  std::istringstream lines(readFile(path));
  for (std::string line; std::getline(lines, line) && !breaksOff(path, line, lines.eof());) {
    const JsonObject row(path, line);
    const int64_t step = row.integer("step");
    if (step < 0 || step > mostSteps)
      row.reject("step", fmt::format("from 0 to {}", mostSteps));
    const double at = places.of(row, step);
    if (isLoss || row.has(of.tag))
      curve.training.push_back({at, row.number(of.tag)});
    if (row.has("val_" + of.tag))
      curve.validation.push_back({at, row.number("val_" + of.tag)});
  }
  if (curve.training.empty() && curve.validation.empty())
    throw Error(fmt::format("expected steps{} in '{}', but there are none",
                            isLoss ? "" : fmt::format(" with '{}'", of.tag), path));
  return curve;
}

} // namespace kiln
