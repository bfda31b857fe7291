// Launches a kernel, measures it, and writes its results.

#include "tools/kilnc/Run.h"

#include "runtime/Compile.h"
#include "runtime/Files.h"
#include "runtime/Findings.h"
#include "runtime/Npy.h"
#include "runtime/Streams.h"
#include "runtime/simulator/Findings.h"
#include "tools/kiln-bench/sample.h"
#include "tools/kilnc/Arguments.h"
#include "tools/kilnc/Expression.h"
#include "tools/kilnc/Measure.h"
#include "tools/kilnc/report/Report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>

namespace kiln::tools {

static void write(const Tensor &tensor, const std::string &path) {
  NpyArray array{tensor.type(), tensor.extents(), std::vector<char>(tensor.bytes())};
  tensor.download(array.data.data(), tensor.bytes());
  writeOutput(path, npyFile(array));
}

/// `, the median of 20 launches (20%: 0.090, 80%: 0.120 ms), 31.2 GB/s, 1.204 TFLOP/s`, after the median itself.
static std::string measured(std::vector<double> values, const Measure &measure, double bytes, double flops) {
  const size_t count = values.size();
  const Spread spread = spreadOf(std::move(values));
  const double scale = measure.isExact() ? 1 : 1e-3; // ms to µs
  const char *const unit = measure.isExact() ? "cycles" : "ms";
  std::string text =
      fmt::format("{} {}, the median of {} launches (20%: {}, 80%: {} {})", measuredText(scale * spread.median, 3),
                  unit, count, measuredText(scale * spread.low, 3), measuredText(scale * spread.high, 3), unit);
  if (measure.isExact())
    return text;
  text += fmt::format(", {} GB/s", measuredText(bytes / spread.median * 1e-3, 1));
  if (flops > 0)
    text += fmt::format(", {} TFLOP/s", measuredText(flops / spread.median * 1e-6, 3));
  return text;
}

/// A report with the content that is known before the launch.
static Report reportOf(const Kernel &kernel, const RunOptions &options, Device &device, const Launch &launch) {
  Report report({.kernel = kernel.name,
                 .target = device.name(),
                 .config = kernel.configText(launch.config),
                 .arguments = options.args,
                 .grid = fmt::format("{}", fmt::join(launch.grid, " x ")),
                 .isBuiltIn = options.isBuiltIn});
  report.add(recordOf(device, launch));
  return report;
}

/// Launches the kernel once, and returns the time in milliseconds. On a simulator the report gets the counts and the
/// findings, even if the launch fails.
static double launchOnce(Device &device, const Executable &executable, const Launch &launch, Report *report) {
  auto *const simulator = report ? dynamic_cast<SimulatorDevice *>(&device) : nullptr;
  if (simulator)
    simulator->setCounting(true);
  const auto begin = std::chrono::steady_clock::now();
  device.launch(executable, launch.grid, launch.args);
  const auto addCounts = [&] {
    if (simulator && bench::programsOf(launch) > 0)
      device.target().visit(
          [](const CpuFacts &) {},
          [&](const GpuFacts &gpu) { report->add(launch, executable.signature(), simulator->lastRecord(), gpu); });
  };
  try {
    device.synchronize();
  } catch (const Error &error) {
    if (report)
      report->setError(error.what());
    addCounts();
    throw;
  }
  const double time = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  addCounts();
  if (simulator)
    simulator->setCounting(false);
  return time;
}

/// The config, or if it is empty that of KILN_FINDINGS, which is said on stderr.
static std::string configFor(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                             const std::string &config) {
  if (!config.empty())
    return config;
  const std::string found = tuned(device, kernel, args);
  if (!found.empty())
    say(fmt::format("kilnc: config {} from {}\n", found, std::getenv("KILN_FINDINGS")));
  return found;
}

std::string runKernel(const Kernel &kernel, const RunOptions &options) {
  if (!options.report.empty())
    expectWritable(options.report);
  const std::vector<RunArgument> arguments = parseRunArguments(kernel, options.args);
  kernel.configText(options.config); // its errors are reported before those of files
  const std::shared_ptr<Device> device = Device::open(options.device);
  const LaunchMemory memory(device, kernel, options.config, arguments);
  const std::vector<Arg> &args = memory.args;
  const std::string config = configFor(*device, kernel, args, options.config);
  const Grid grid = evaluateGrid(options.grid, kernel, args, config);
  const double flops =
      options.flops.empty() ? 0 : static_cast<double>(evaluate("--flops", options.flops, kernel, args, config));
  const Forgetting forgetting;
  const auto executable = compile(*device, kernel, args, config);
  const Launch launch{.kernel = &kernel, .config = config, .grid = grid, .args = args};
  std::optional<Report> report;
  if (!options.report.empty())
    report.emplace(reportOf(kernel, options, *device, launch));
  double first = 0;
  try {
    first = launchOnce(*device, *executable, launch, report ? &*report : nullptr);
  } catch (const Error &) {
    if (report)
      writeOutput(options.report, report->page());
    throw;
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].output.empty())
      write(memory.tensors[i], arguments[i].output);
  Measure measure(*device);
  std::string times = (measure.isExact() ? "simulated in " : "") + measuredText(first, 3) + " ms";
  if (options.repeat) {
    std::vector<double> values(options.repeat);
    std::generate(values.begin(), values.end(), [&] { return measure(*executable, grid, args); });
    const auto bytes = static_cast<double>(launch.bytes());
    times = measured(std::move(values), measure, bytes, flops);
  }
  if (report) {
    report->setTime(times);
    writeOutput(options.report, report->page());
  }
  return fmt::format("{} on {} ({}), {}x{}x{} programs: {}\n", kernel.name, device->name(), device->target().name,
                     grid[0], grid[1], grid[2], times);
}

} // namespace kiln::tools
