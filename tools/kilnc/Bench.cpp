// Measures lines over sizes, and writes them as a table, as CSV and as a picture.

#include "tools/kilnc/Run.h"

#include "models/train/chart.h"
#include "runtime/Compile.h"
#include "runtime/Files.h"
#include "runtime/Findings.h"
#include "runtime/Streams.h"
#include "tools/kilnc/Arguments.h"
#include "tools/kilnc/Expression.h"
#include "tools/kilnc/Measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <set>
#include <unistd.h>

namespace kiln::tools {

namespace {
/// A line at a size.
struct BenchRow {
  int64_t size = 0;
  size_t line = 0;
  std::string label; // with the config of KILN_FINDINGS, if it is that
  Spread time;
  double bytes = 0, flops = 0; // of a launch
  double ratio = 1;            // the baseline's median by this one

  double gigabytes() const { return bytes / time.median * 1e-3; }
  double teraflops() const { return flops / time.median * 1e-6; }
};

/// The measurements of one size.
class SizeBench {
public:
  SizeBench(const std::vector<BenchLine> &lines, const BenchOptions &options, const Sweep &sweep, int64_t size,
            const std::shared_ptr<Device> &device, const std::vector<std::unique_ptr<PythonPeer>> &peers, bool quiet);
  std::vector<BenchRow> run(int64_t size);

private:
  /// A line, with its launch.
  struct Prepared {
    std::string label;
    std::shared_ptr<const Executable> executable; // null: a peer
    PythonPeer *peer = nullptr;
    Grid grid;
    double flops = 0;
    int times = 1; // launches in a row that one measurement takes
    std::vector<double> values;
  };
  double measureOne(const Prepared &line) {
    return line.peer ? line.peer->measure(line.times) : measure(*line.executable, line.grid, memory.args, line.times);
  }
  void startPeers(Device &device, const Kernel &kernel, const std::vector<std::unique_ptr<PythonPeer>> &peers);

  const Forgetting forgetting;
  const int repeat;
  const LaunchMemory memory;
  Measure measure;
  std::vector<Prepared> prepared;
};
} // namespace

/// The line's label, with the config that KILN_FINDINGS has for it if there is one.
static std::string labelOf(const BenchLine &line, const std::string &found) {
  const std::string name = line.label.empty() && found.empty() ? "default config" : line.label;
  if (found.empty())
    return name;
  return fmt::format("{}{}{} of KILN_FINDINGS", name, name.empty() ? "" : ": ", found);
}

SizeBench::SizeBench(const std::vector<BenchLine> &lines, const BenchOptions &options, const Sweep &sweep, int64_t size,
                     const std::shared_ptr<Device> &device, const std::vector<std::unique_ptr<PythonPeer>> &peers,
                     bool quiet)
    : repeat(options.repeat), memory(device, *lines[0].kernel, lines[0].config,
                                     parseRunArguments(*lines[0].kernel, sweep.replacedIn(options.args, size)), quiet),
      measure(*device) {
  for (const BenchLine &line : lines) {
    const bool asks = line.config.empty() && line.usesFindings;
    const std::string found = asks ? tuned(*device, *line.kernel, memory.args) : "";
    const std::string &config = line.config.empty() ? found : line.config;
    Prepared one;
    one.label = labelOf(line, found);
    one.grid = evaluateGrid(sweep.replacedIn(line.grid, size), *line.kernel, memory.args, config);
    if (!options.flops.empty())
      one.flops = static_cast<double>(
          evaluate("--flops", sweep.replacedIn(options.flops, size), *line.kernel, memory.args, config));
    one.executable = compile(*device, *line.kernel, memory.args, config);
    prepared.push_back(std::move(one));
  }
  startPeers(*device, *lines[0].kernel, peers);
}

/// Adds the peers as lines, and compares their results with those of a launch of the first line.
void SizeBench::startPeers(Device &device, const Kernel &kernel,
                           const std::vector<std::unique_ptr<PythonPeer>> &peers) {
  if (peers.empty())
    return;
  for (const std::unique_ptr<PythonPeer> &peer : peers) {
    peer->start(device, kernel, memory.args);
    Prepared one;
    one.label = peer->expression;
    one.peer = peer.get();
    one.flops = prepared[0].flops;
    prepared.push_back(std::move(one));
  }
  measureOne(prepared[0]);
  std::vector<size_t> written;
  const std::vector<Signature::Parameter> &parameters = prepared[0].executable->signature().parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (memory.args[i].kind == Arg::Kind::tensor && parameters[i].written)
      written.push_back(i);
  for (const std::unique_ptr<PythonPeer> &peer : peers)
    peer->expectResults(device, kernel, memory.args, written);
}

std::vector<BenchRow> SizeBench::run(int64_t size) {
  for (Prepared &line : prepared) {
    measureOne(line); // warms the caches, as an earlier launch does
    if (measure.isExact())
      continue;
    // Enough launches in a row that the clock's overhead does not matter.
    const double one = measureOne(line);
    line.times = static_cast<int>(std::clamp(std::ceil(500 / std::max(one, 0.01)), 1.0, 1000.0));
  }
  const size_t rounds = measure.isExact() ? 1 : static_cast<size_t>(repeat);
  for (size_t round = 0; round < rounds; ++round)
    for (size_t i = 0; i < prepared.size(); ++i) {
      Prepared &line = prepared[(round + i) % prepared.size()]; // each line is first in its turn
      line.values.push_back(measureOne(line));
    }
  std::vector<BenchRow> rows;
  double bytes = 0;
  for (const Arg &arg : memory.args)
    if (arg.kind != Arg::Kind::scalar)
      bytes += static_cast<double>(arg.ref.bytes());
  for (size_t i = 0; i < prepared.size(); ++i) {
    rows.push_back({size, i, prepared[i].label, spreadOf(prepared[i].values), bytes, prepared[i].flops, 1});
    rows.back().ratio = rows[0].time.median / rows.back().time.median;
  }
  return rows;
}

// --- Reporting -------------------------------------------------------------------------------------------------------

namespace {
/// The rows of a benchmark, and the units of its table.
struct BenchResult {
  size_t lines; // with peers
  const Sweep &sweep;
  std::vector<BenchRow> rows;
  std::string unit;
  bool isExact = false, hasFlops = false;

  std::string sizeName() const { return fmt::format("{}", fmt::join(sweep.names, ",")); }
  std::set<int64_t> sizes() const;
  std::string table() const;
  std::string csv() const;
  std::string picture(const std::string &title) const;
};
} // namespace

/// The sizes that have rows.
std::set<int64_t> BenchResult::sizes() const {
  std::set<int64_t> sizes;
  for (const BenchRow &row : rows)
    sizes.insert(row.size);
  return sizes;
}

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
    line.push_back(row.label);
    line.push_back(measuredText(row.time.median, 2));
    if (!isExact)
      for (const std::string &text :
           {measuredText(row.time.low, 2), measuredText(row.time.high, 2), measuredText(row.gigabytes(), 1)})
        line.push_back(text);
    if (!isExact && hasFlops)
      line.push_back(measuredText(row.teraflops(), 3));
    line.push_back(measuredText(row.ratio, 2));
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
    for (const char c : row.label)
      label += c == '"' ? "\"\"" : std::string(1, c);
    text += fmt::format("\"{}\",{:.9g}", label, row.time.median);
    if (!isExact)
      text += fmt::format(",{:.9g},{:.9g},{:.4g}", row.time.low, row.time.high, row.gigabytes());
    if (hasFlops && !isExact)
      text += fmt::format(",{:.4g}", row.teraflops());
    text += fmt::format(",{:.4g}\n", row.ratio);
  }
  return text;
}

/// Curves over the sizes: TFLOP/s, GB/s without FLOPs, cycles on a simulator. Sizes that grow eightfold or more have a
/// logarithmic axis.
std::string BenchResult::picture(const std::string &title) const {
  const std::set<int64_t> measured = sizes();
  const bool isLogarithmic = *measured.rbegin() >= 8 * *measured.begin();
  const auto placeOf = [&](int64_t size) {
    return isLogarithmic ? std::log2(static_cast<double>(size)) : static_cast<double>(size);
  };
  const auto valueOf = [&](const BenchRow &row) {
    return isExact ? row.time.median : hasFlops ? row.teraflops() : row.gigabytes();
  };
  std::vector<std::vector<CurvePoint>> curves(lines);
  std::vector<std::string> labels(lines);
  Span places, values;
  values.add(0);
  for (const BenchRow &row : rows) {
    const CurvePoint point{placeOf(row.size), valueOf(row)};
    places.add(point.at);
    values.add(point.loss);
    curves[row.line].push_back(point);
    std::string &label = labels[row.line];
    label = label.empty() || label == row.label ? row.label : "configs of KILN_FINDINGS";
  }
  for (std::vector<CurvePoint> &curve : curves)
    std::stable_sort(curve.begin(), curve.end(), [](CurvePoint a, CurvePoint b) { return a.at < b.at; });
  std::vector<std::pair<double, std::string>> ticks;
  const size_t every = (measured.size() + 9) / 10;
  for (size_t i = 0; const int64_t size : measured)
    if (i++ % every == 0)
      ticks.emplace_back(placeOf(size), std::to_string(size));
  const Panel panel(28, 260, places, values);
  const char *const unit = isExact ? "cycles" : hasFlops ? "TFLOP/s" : "GB/s";
  std::string body = chartTitle(fmt::format("{}: {} over {}", title, unit, sizeName())) + panel.axes(ticks);
  for (size_t i = 0; i < curves.size(); ++i)
    body += drawn(panel, curves[i], curves[i], i) +
            legend(labels[i], fmt::format(" {:.4g}", curves[i].back().loss), i, curves.size());
  return wrapChart(316, body);
}

// --- The sweep -------------------------------------------------------------------------------------------------------

/// Throws Error for lines that are wrong at every size.
static void check(const std::vector<BenchLine> &lines, const BenchOptions &options) {
  const Kernel &first = *lines[0].kernel;
  const std::string names = parameterNames(first);
  for (const BenchLine &line : lines) {
    line.kernel->configText(line.config);
    const std::string others = parameterNames(*line.kernel);
    if (options.isNamed && !others.empty() && others != names)
      throw Error(
          fmt::format("expected kernel '{}' to have the parameters of '{}'{}, because --args names them, but it "
                      "has{}",
                      line.kernel->name, first.name, names, others));
  }
}

BenchReport benchmark(const std::vector<BenchLine> &lines, const BenchOptions &options) {
  for (const std::string &file : {options.csv, options.picture})
    if (!file.empty())
      expectWritable(file);
  const Sweep sweep = Sweep::parse(options.sweep);
  sweep.checkUsed(options.args);
  if (!options.picture.empty() && sweep.sizes.size() < 2)
    throw Error("--svg requires --sweep with two sizes or more");
  check(lines, options);
  const std::shared_ptr<Device> device = Device::open(options.device);
  const Measure measure(*device);
  if (!options.peers.expressions.empty() && measure.isExact())
    throw Error(fmt::format("--peer requires a device that measures times, but {} counts cycles", options.device));
  std::vector<std::unique_ptr<PythonPeer>> peers;
  for (const std::string &expression : options.peers.expressions)
    peers.push_back(std::make_unique<PythonPeer>(expression, options.peers, *device));
  BenchResult result{lines.size() + peers.size(), sweep, {}, measure.unit(), measure.isExact(), !options.flops.empty()};
  BenchReport report;
  const bool showsProgress = ::isatty(2) && !sweep.names.empty();
  for (const int64_t size : sweep.sizes) {
    const std::string at = sweep.names.empty() ? "" : fmt::format("{}={}", result.sizeName(), size);
    if (showsProgress)
      say("\r\033[K" + at);
    const auto fail = [&](const std::exception &error, Fault fault) {
      report.error.emplace((at.empty() ? "" : at + ": ") + messageOf(error), fault);
    };
    try {
      const bool isFirst = size == sweep.sizes[0];
      SizeBench bench(lines, options, sweep, size, device, peers, !isFirst);
      const std::vector<BenchRow> rows = bench.run(size);
      result.rows.insert(result.rows.end(), rows.begin(), rows.end());
    } catch (const Error &error) {
      fail(error, error.fault);
    } catch (const std::bad_alloc &error) {
      fail(error, Fault::device);
    }
    if (report.error)
      break;
  }
  if (showsProgress)
    say("\r\033[K");
  if (result.rows.empty())
    throw Error(*report.error);
  const std::string title = fmt::format("{} on {} ({})", lines[0].kernel->name, device->name(), device->target().name);
  if (!options.csv.empty())
    writeOutput(options.csv, result.csv());
  if (!options.picture.empty() && result.sizes().size() > 1)
    writeOutput(options.picture, result.picture(title));
  const std::string how = result.isExact
                              ? "cycles in which all schedulers issue the instructions, which are no times of a GPU"
                              : fmt::format("medians of {} measurements", options.repeat);
  report.table = fmt::format("{}: {}\n{}", title, how, result.table());
  return report;
}

} // namespace kiln::tools
