// Memory-bound kernels: the minimum of bytes to move over the time, compared with a plain copy of as many bytes (up to
// 1 GB) in the same run.

#include "tools/kiln-bench/bench.h"

#include <algorithm>
#include <fmt/format.h>

using namespace kiln;

void bench::benchLayerNorm(Setting &setting) {
  setting.report.section(fmt::format("{}: least bytes over time, baseline: a copy", nameOf(setting.type)));
  // Equal bytes for every type, more than the caches hold.
  const int64_t times = bytesOf(f32) / bytesOf(setting.type);
  KernelSizes sizes = {
      .N = times * 8192, .T = 1024, .losses = times * 256, .activations = times * 8192 * 3072, .weights = 124439808};
  if (setting.quick)
    sizes = {.N = 256, .T = 64, .losses = 16, .activations = 1 << 16, .weights = 1 << 20};
  for (const auto plans : {rowPlans, flatPlans}) {
    std::vector<std::unique_ptr<Tensor>> held;
    Operands make(spaceOf(setting, held, /*zeroed=*/false));
    for (const KernelPlan &each : plans(setting.target(), setting.type, sizes, make)) {
      if (each.bytes == 0)
        continue;
      const auto count = static_cast<int64_t>(std::min(each.bytes, 1e9) / 8); // a copied float is read and written
      const Tensor from = zeroTensor(setting, {count});
      Tensor to = zeroTensor(setting, {count});
      const std::vector<double> seconds = setting.measure({Runner(setting, each.plan), copyOf(setting, from, to)});
      setting.report.add({.bench = "layernorm",
                          .shape = each.name,
                          .metric = "gb_per_s",
                          .value = each.bytes / seconds[0] / 1e9,
                          .peer = "copy",
                          .peerValue = 8.0 * static_cast<double>(count) / seconds[1] / 1e9,
                          .dtype = nameOf(setting.type)});
    }
  }
}
