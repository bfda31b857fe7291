// Reads curves from logs, and draws them as SVG.

#include "models/train/curves.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "models/train/flags.h"
#include "runtime/Files.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

namespace kiln {

//===-- Reading -------------------------------------------------------------------------------------------------===//

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

//===-- Drawing -------------------------------------------------------------------------------------------------===//

/// Means of the losses of `length` consecutive steps, each drawn at its last step.
static std::vector<CurvePoint> smoothed(const std::vector<CurvePoint> &points, double length) {
  std::map<double, std::vector<double>> stretches; // by last step
  for (const CurvePoint &p : points)
    stretches[std::ceil(p.at / length) * length].push_back(p.loss);
  std::vector<CurvePoint> means;
  for (const auto &[step, losses] : stretches) {
    double mean = 0;
    for (const double loss : losses)
      mean += loss / static_cast<double>(losses.size()); // avoids overflow of the sum
    means.push_back({std::min(step, points.back().at), mean});
  }
  return means;
}

static constexpr double largest = std::numeric_limits<double>::max();

/// The loss at `at`, interpolated linearly between two points unless x is the step.
static std::optional<double> lossAt(const std::map<double, double> &losses, double at, Over over) {
  const auto after = losses.lower_bound(at);
  if (after == losses.end())
    return {};
  if (after->first == at)
    return after->second;
  if (over == Over::steps || after == losses.begin())
    return {};
  const auto before = std::prev(after);
  const double share = (at - before->first) / (after->first - before->first);
  return before->second * (1 - share) + after->second * share;
}

/// `points` minus those of `base` at the same x.
static std::vector<CurvePoint> differences(const std::vector<CurvePoint> &points, const std::vector<CurvePoint> &base,
                                           Over over) {
  std::map<double, double> losses;
  for (const CurvePoint &p : base)
    losses[p.at] = p.loss;
  std::vector<CurvePoint> out;
  for (const CurvePoint &p : points)
    if (const std::optional<double> loss = lossAt(losses, p.at, over))
      out.push_back({p.at, std::clamp(p.loss - *loss, -largest, largest)});
  return out;
}

/// The last validation loss, for the legend; empty without one.
static std::string formatLast(const Curve &curve) {
  if (curve.validation.empty())
    return "";
  const double loss = curve.validation.back().loss;
  return std::abs(loss) < 1e6 ? fmt::format(" {:.4f}", loss) : fmt::format(" {:.4g}", loss);
}

/// The position of the last point.
static double findEnd(const Curve &curve) {
  double end = 0;
  for (const std::vector<CurvePoint> *points : {&curve.training, &curve.validation})
    if (!points->empty())
      end = std::max(end, points->back().at);
  return end;
}

std::string drawCurves(const std::vector<Curve> &curves, const CurveOf &of) {
  if (curves.empty())
    throw Error("expected runs to draw, but got none");
  Span steps, losses, apart;
  steps.add(0);
  for (const Curve &curve : curves)
    steps.add(findEnd(curve));
  const double hundredth = steps.high / 100;
  const double length = of.over == Over::steps ? std::max(1.0, std::floor(hundredth)) : std::max(hundredth, 1e-9);
  std::vector<Curve> shown, differing;
  for (const Curve &curve : curves) {
    shown.push_back({curve.name, smoothed(curve.training, length), curve.validation});
    differing.push_back({curve.name, differences(shown.back().training, shown.front().training, of.over),
                         differences(curve.validation, curves.front().validation, of.over)});
    losses.add(shown.back().training);
    losses.add(shown.back().validation);
    apart.add(differing.back().training);
    apart.add(differing.back().validation);
  }
  const Panel upper(28, 260, steps, losses), lower(330, 130, steps, apart);
  const bool isAlone = curves.size() == 1; // a single run has no differences
  std::string body = chartTitle(
      fmt::format("{} over {}, dots: validation", shortened(of.tag), overNames.at(static_cast<size_t>(of.over))));
  body += upper.axes();
  if (!isAlone)
    body += chartTitle("less that of " + shortened(curves.front().name), 322) + lower.axes();
  for (size_t i = 0; i < shown.size(); ++i) {
    body += drawn(upper, shown[i].training, shown[i].validation, i) +
            legend(shown[i].name, formatLast(shown[i]), i, shown.size());
    if (!isAlone)
      body += drawn(lower, differing[i].training, differing[i].validation, i);
  }
  return wrapChart(isAlone ? 316 : 490, body);
}

//===-- The command ---------------------------------------------------------------------------------------------===//

CLI::App *addPlot(CLI::App &app, PlotOptions &o) {
  CLI::App *plot = app.add_subcommand("plot", "draw the loss curves of runs");
  plot->add_option("runs", o.runs, "folders of runs; the others are compared with the first")->required();
  plot->add_option("--out,-o", o.out, "the picture (SVG); '-' is standard output")->required();
  plot->add_option("--tag", o.of.tag,
                   "field of the log to draw, such as grad_norm; val_ and its name are drawn as dots")
      ->capture_default_str();
  addChoice<Over>(plot, "--over", o.of.over, overNames, "horizontal axis: steps, seconds, tokens (steps)");
  plot->add_flag("--follow", o.follow, "redraw while the run continues");
  return plot;
}

static void draw(const PlotOptions &options) {
  std::vector<Curve> curves;
  for (const std::string &run : options.runs)
    curves.push_back(readCurve(run, options.of));
  writeOutput(options.out, drawCurves(curves, options.of));
}

/// Whether a run writes to the folder: it holds a lock until it ends.
static bool isWritten(const std::string &run) { return std::filesystem::exists(run + "/.lock"); }

/// The total size of the logs.
static std::uintmax_t sizeOfLogs(const PlotOptions &options) {
  std::uintmax_t size = 0;
  for (const std::string &run : options.runs) {
    std::error_code none;
    const std::uintmax_t more = std::filesystem::file_size(run + "/log.jsonl", none);
    size += none ? 0 : more;
  }
  return size;
}

void plot(const PlotOptions &options) {
  if (options.follow && options.out == "-")
    throw Error("--follow requires a file for --out, but got '-'");
  std::uintmax_t drawn = 0;
  for (bool goesOn = options.follow; goesOn; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
    goesOn = std::any_of(options.runs.begin(), options.runs.end(), isWritten);
    const std::uintmax_t size = sizeOfLogs(options);
    if (goesOn && size != drawn && size > 0) // before its first step a run has no points
      draw(options);
    drawn = size;
  }
  draw(options);
}

} // namespace kiln
