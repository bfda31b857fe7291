// Measures lines over sizes, and writes them as a table, as CSV and as a picture.

#include "tools/kilnc/Bench.h"

#include "models/train/chart.h"
#include "runtime/Compile.h"
#include "runtime/OutputFile.h"
#include "runtime/Streams.h"
#include "tools/kilnc/Expression.h"
#include "tools/kilnc/Measure.h"
#include "tools/kilnc/Run.h"
#include "tools/kilnc/RunArguments.h"
#include "tools/kilnc/Sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <unistd.h>

namespace kiln::tools {

namespace {
/// A line at a size.
struct BenchRow {
  int64_t size = 0;
  size_t line = 0;
  double median = 0, low = 0, high = 0; // low: 20 % of the launches took less; high: 80 %
  double bytes = 0, flops = 0;          // of a launch
  double ratio = 1;                     // the baseline's median by this one

  double gigabytes() const { return bytes / median * 1e-3; }
  double teraflops() const { return flops / median * 1e-6; }
};

/// The measurements of one size.
class SizeBench {
public:
  SizeBench(const std::vector<BenchLine> &lines, const BenchOptions &options, const Sweep &sweep, int64_t size,
            const std::shared_ptr<Device> &device, bool quiet);
  std::vector<BenchRow> run(int64_t size);

private:
  /// A line with what is launched.
  struct Prepared {
    std::shared_ptr<const Executable> executable;
    Grid grid;
    double flops = 0;
    int times = 1; // launches in a row that one measurement takes
    std::vector<double> values;
  };
  void measureOne(Prepared &line) {
    line.values.push_back(measure(*line.executable, line.grid, memory.args, line.times));
  }

  const Forgetting forgetting;
  const int repeat;
  const LaunchMemory memory;
  Measure measure;
  std::vector<Prepared> prepared;
};
} // namespace

SizeBench::SizeBench(const std::vector<BenchLine> &lines, const BenchOptions &options, const Sweep &sweep, int64_t size,
                     const std::shared_ptr<Device> &device, bool quiet)
    : repeat(options.repeat), memory(device, *lines[0].kernel, lines[0].config,
                                     parseRunArguments(*lines[0].kernel, sweep.replacedIn(options.args, size)), quiet),
      measure(*device) {
  for (const BenchLine &line : lines) {
    const std::string config = configFor(*device, *line.kernel, memory.args, line.config);
    Prepared one;
    one.grid = evaluateGrid(sweep.replacedIn(line.grid, size), *line.kernel, memory.args, config);
    if (!options.flops.empty())
      one.flops = static_cast<double>(
          evaluate("--flops", sweep.replacedIn(options.flops, size), *line.kernel, memory.args, config));
    one.executable = compile(*device, *line.kernel, memory.args, config);
    prepared.push_back(std::move(one));
  }
}

std::vector<BenchRow> SizeBench::run(int64_t size) {
  for (Prepared &line : prepared) {
    const double first = measure(*line.executable, line.grid, memory.args); // loads what a later launch finds loaded
    // Enough launches in a row that the clock's overhead does not matter.
    if (!measure.isExact())
      line.times = static_cast<int>(std::clamp(std::ceil(500 / std::max(first, 0.01)), 1.0, 1000.0));
  }
  const size_t rounds = measure.isExact() ? 1 : static_cast<size_t>(repeat);
  for (size_t round = 0; round < rounds; ++round)
    for (size_t i = 0; i < prepared.size(); ++i)
      measureOne(prepared[(round + i) % prepared.size()]); // each line is first in its turn
  std::vector<BenchRow> rows;
  double bytes = 0;
  for (const Arg &arg : memory.args)
    if (arg.kind != Arg::Kind::scalar)
      bytes += static_cast<double>(arg.ref.bytes());
  for (size_t i = 0; i < prepared.size(); ++i) {
    std::vector<double> &values = prepared[i].values;
    std::sort(values.begin(), values.end());
    const auto at = [&](double part) { return values[static_cast<size_t>(part * static_cast<double>(values.size()))]; };
    rows.push_back({size, i, at(0.5), at(0.2), at(0.8), bytes, prepared[i].flops, 1});
    rows.back().ratio = rows[0].median / rows.back().median;
  }
  return rows;
}

// --- Reporting -------------------------------------------------------------------------------------------------------

namespace {
/// All rows, with what their texts need.
struct BenchResult {
  const std::vector<BenchLine> &lines;
  const Sweep &sweep;
  std::vector<BenchRow> rows;
  std::string unit;
  bool isExact = false, hasFlops = false;

  std::string sizeName() const { return fmt::format("{}", fmt::join(sweep.names, ",")); }
  std::string table() const;
  std::string csv() const;
  std::string picture(const std::string &title) const;
};
} // namespace

/// Columns of the table and of the CSV: a name each, the text of a row, whether it is aligned to the right.
std::string BenchResult::table() const {
  std::vector<std::vector<std::string>> cells = {{}};
  const auto head = [&](const char *name) { cells[0].emplace_back(name); };
  if (!sweep.names.empty())
    cells[0].push_back(sizeName());
  head("line");
  head(unit.c_str());
  if (!isExact)
    for (const char *name : {"20 %", "80 %", "GB/s"})
      head(name);
  if (!isExact && hasFlops)
    head("TFLOP/s");
  head("speed");
  for (const BenchRow &row : rows) {
    std::vector<std::string> &line = cells.emplace_back();
    if (!sweep.names.empty())
      line.push_back(std::to_string(row.size));
    line.push_back(lines[row.line].label);
    line.push_back(fmt::format("{:.2f}", row.median));
    if (!isExact)
      for (const std::string &text :
           {fmt::format("{:.2f}", row.low), fmt::format("{:.2f}", row.high), fmt::format("{:.1f}", row.gigabytes())})
        line.push_back(text);
    if (!isExact && hasFlops)
      line.push_back(fmt::format("{:.3f}", row.teraflops()));
    line.push_back(fmt::format("{:.2f}", row.ratio));
  }
  const size_t label = sweep.names.empty() ? 0 : 1;
  std::string text;
  for (const std::vector<std::string> &line : cells) {
    std::string one;
    for (size_t i = 0; i < line.size(); ++i) {
      size_t width = 0;
      for (const std::vector<std::string> &other : cells)
        width = std::max(width, other[i].size());
      one += i == label ? fmt::format("{:<{}}", line[i], width) : fmt::format("{:>{}}", line[i], width);
      one += i + 1 < line.size() ? "  " : "\n";
    }
    text += one;
  }
  return text;
}

std::string BenchResult::csv() const {
  std::string text;
  for (const std::string &name : sweep.names)
    text += name + ",";
  text += isExact ? "line,cycles" : "line,us,us_20,us_80,gb_per_s";
  text += hasFlops && !isExact ? ",tflop_per_s,speed\n" : ",speed\n";
  for (const BenchRow &row : rows) {
    for (size_t i = 0; i < sweep.names.size(); ++i)
      text += fmt::format("{},", row.size);
    std::string label;
    for (const char c : lines[row.line].label)
      label += c == '"' ? "\"\"" : std::string(1, c);
    text += fmt::format("\"{}\",{:.4g}", label, row.median);
    if (!isExact)
      text += fmt::format(",{:.4g},{:.4g},{:.4g}", row.low, row.high, row.gigabytes());
    if (hasFlops && !isExact)
      text += fmt::format(",{:.4g}", row.teraflops());
    text += fmt::format(",{:.4g}\n", row.ratio);
  }
  return text;
}

/// Curves over the sizes: TFLOP/s, GB/s without FLOPs, cycles on a simulator. Sizes that grow eightfold or more have a
/// logarithmic axis.
std::string BenchResult::picture(const std::string &title) const {
  const auto [least, most] = std::minmax_element(sweep.sizes.begin(), sweep.sizes.end());
  const bool isLogarithmic = *most >= 8 * *least;
  const auto placeOf = [&](int64_t size) {
    return isLogarithmic ? std::log2(static_cast<double>(size)) : static_cast<double>(size);
  };
  const auto valueOf = [&](const BenchRow &row) {
    return isExact ? row.median : hasFlops ? row.teraflops() : row.gigabytes();
  };
  std::vector<std::vector<CurvePoint>> curves(lines.size());
  Span sizes, values;
  values.add(0);
  for (const BenchRow &row : rows) {
    const CurvePoint point{placeOf(row.size), valueOf(row)};
    sizes.add(point.at);
    values.add(point.loss);
    curves[row.line].push_back(point);
  }
  std::vector<std::pair<double, std::string>> ticks;
  const size_t every = (sweep.sizes.size() + 9) / 10;
  for (size_t i = 0; i < sweep.sizes.size(); i += every)
    ticks.emplace_back(placeOf(sweep.sizes[i]), std::to_string(sweep.sizes[i]));
  const Panel panel(28, 260, sizes, values);
  const char *const unit = isExact ? "cycles" : hasFlops ? "TFLOP/s" : "GB/s";
  std::string body = chartTitle(fmt::format("{}: {} over {}", title, unit, sizeName())) + panel.axes(ticks);
  for (size_t i = 0; i < curves.size(); ++i)
    body += drawn(panel, curves[i], curves[i], i) +
            legend(lines[i].label, fmt::format(" {:.4g}", curves[i].back().loss), i, curves.size());
  return chartOf(316, body);
}

std::string benchmark(const std::vector<BenchLine> &lines, const BenchOptions &options) {
  for (const std::string &file : {options.csv, options.picture})
    if (!file.empty())
      expectWritable(file);
  const Sweep sweep = Sweep::parse(options.sweep);
  sweep.checkUsed(options.args);
  if (!options.picture.empty() && sweep.sizes.size() < 2)
    throw Error("--svg requires --sweep with two sizes or more");
  for (const BenchLine &line : lines)
    line.kernel->configText(line.config); // its errors are reported before the work
  const std::shared_ptr<Device> device = Device::open(options.device);
  const Measure measure(*device);
  BenchResult result{lines, sweep, {}, measure.unit(), measure.isExact(), !options.flops.empty()};
  for (const int64_t size : sweep.sizes) {
    if (::isatty(2) && !sweep.names.empty())
      say(fmt::format("\r\033[K{}={}", result.sizeName(), size));
    const bool isFirst = size == sweep.sizes[0];
    SizeBench bench(lines, options, sweep, size, device, !isFirst);
    const std::vector<BenchRow> rows = bench.run(size);
    result.rows.insert(result.rows.end(), rows.begin(), rows.end());
  }
  if (::isatty(2) && !sweep.names.empty())
    say("\r\033[K");
  const std::string title = fmt::format("{} on {} ({})", lines[0].kernel->name, device->name(), device->target().name);
  if (!options.csv.empty())
    writeOutput(options.csv, result.csv());
  if (!options.picture.empty())
    writeOutput(options.picture, result.picture(title));
  const std::string how = result.isExact
                              ? "cycles in which all schedulers issue the instructions, which are no times of a GPU"
                              : fmt::format("medians of {} measurements", options.repeat);
  return fmt::format("{}: {}\n{}", title, how, result.table());
}

} // namespace kiln::tools
