// Launches a kernel, measures it, and writes its results.

#include "tools/kilnc/Run.h"

#include "runtime/Compile.h"
#include "runtime/Findings.h"
#include "runtime/Npy.h"
#include "runtime/OutputFile.h"
#include "runtime/Streams.h"
#include "tools/kilnc/Expression.h"
#include "tools/kilnc/Measure.h"
#include "tools/kilnc/RunArguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace kiln::tools {

static void write(const Tensor &tensor, const std::string &path) {
  NpyArray array{tensor.type(), tensor.extents(), std::vector<char>(tensor.bytes())};
  tensor.download(array.data.data(), tensor.bytes());
  writeOutput(path, npyFile(array));
}

/// `, the median of 20 launches (20%: 0.090, 80%: 0.120 ms), 31.2 GB/s, 1.204 TFLOP/s`, after the median itself.
static std::string measured(std::vector<double> values, const Measure &measure, double bytes, double flops) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) { return values[static_cast<size_t>(part * static_cast<double>(values.size()))]; };
  const double scale = measure.isExact() ? 1 : 1e-3; // ms to µs
  const char *const unit = measure.isExact() ? "cycles" : "ms";
  std::string text = fmt::format("{:.3f} {}, the median of {} launches (20%: {:.3f}, 80%: {:.3f} {})", scale * at(0.5),
                                 unit, values.size(), scale * at(0.2), scale * at(0.8), unit);
  if (measure.isExact())
    return text;
  text += fmt::format(", {:.1f} GB/s", bytes / at(0.5) * 1e-3);
  if (flops > 0)
    text += fmt::format(", {:.3f} TFLOP/s", flops / at(0.5) * 1e-6);
  return text;
}

std::string runKernel(const Kernel &kernel, const RunOptions &options) {
  const std::vector<RunArgument> arguments = parseRunArguments(kernel, options.args);
  kernel.configText(options.config); // its errors are reported before those of files
  const std::shared_ptr<Device> device = Device::open(options.device);
  const LaunchMemory memory(device, arguments, LaunchMemory::Fresh::zeros);
  const std::vector<Arg> &args = memory.args;
  std::string config = options.config;
  if (config.empty() && !(config = tuned(*device, kernel, args)).empty())
    say(fmt::format("kilnc: config {} from {}\n", config, std::getenv("KILN_FINDINGS")));
  const Grid grid = evaluateGrid(options.grid, kernel, args, config);
  const double flops =
      options.flops.empty() ? 0 : static_cast<double>(evaluate("--flops", options.flops, kernel, args, config));
  const Forgetting forgetting;
  const auto executable = compile(*device, kernel, args, config);
  const auto begin = std::chrono::steady_clock::now();
  device->launch(*executable, grid, args);
  device->synchronize();
  const double first = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].output.empty())
      write(memory.tensors[i], arguments[i].output);
  std::string times = fmt::format("{:.3f} ms", first);
  if (options.repeat) {
    Measure measure(*device);
    std::vector<double> values(options.repeat);
    std::generate(values.begin(), values.end(), [&] { return measure(*executable, grid, args); });
    const auto bytes = static_cast<double>(Launch{.kernel = &kernel, .args = args}.bytes());
    times = measured(std::move(values), measure, bytes, flops);
  }
  return fmt::format("{} on {} ({}), {}x{}x{} programs: {}\n", kernel.name, device->name(), device->target().name,
                     grid[0], grid[1], grid[2], times);
}

} // namespace kiln::tools
