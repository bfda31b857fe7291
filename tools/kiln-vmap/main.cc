// kiln-vmap: what a batch of examples takes as a loop of launches, and as one launch of what vmap makes.
//
// Two functions: `dot`, the product of two vectors, and `attention` of one head without a mask, on `--batch` examples
// of shape `--extents`. It prints a line of CSV: the mean of the time and of the resident memory over `--calls` calls
// behind the first, their deviation, the median and the 99th percentile, what the device holds, and the first call
// with its compilation, from no cache. Exit codes: 0 measured; 2, 3 and 4 as everywhere.

#include "kernels/attention.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "runtime/Version.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <unistd.h>

using namespace kiln;

namespace {

struct Options {
  std::string device = "cpu", function = "dot", how = "vmap";
  int64_t batch = 100;
  std::vector<int64_t> extents = {10000};
  int calls = 1000;
};

/// x, y (N); out (1), their product: one program, 1024 elements at a time.
void dotRow(View x, View y, View out) {
  Tile sums = zeros(f32, {1024});
  for (Tile n : range(0, x.dim(0), 1024))
    sums += load(x, {n}, {1024}) * load(y, {n}, {1024});
  store(out, {0}, sum(sums));
}
const Kernel dotKernel = kernel("dot_row", dotRow, {"x (N)", "y (N)", "out (1), their product"});

/// The tensors of a batch, and the plan of one example.
struct Problem {
  std::vector<Tensor> tensors;
  std::function<Plan(const std::vector<TensorRef> &)> one;
};

struct Spread {
  double mean = 0, deviation = 0;
};

} // namespace

static Tensor numbers(const std::shared_ptr<Device> &device, const Shape &extents, uint32_t seed) {
  Tensor tensor(device, f32, extents);
  std::vector<float> values(static_cast<size_t>(tensor.ref().count()));
  for (float &value : values)
    value = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) * 0x1p-24f - 0.5f;
  tensor.uploadFloats(values);
  return tensor;
}

static Problem problemOf(const Options &options, const std::shared_ptr<Device> &device) {
  const int64_t B = options.batch, N = options.extents[0];
  Problem problem;
  const auto add = [&](Shape extents) {
    extents.insert(extents.begin(), B);
    problem.tensors.push_back(numbers(device, extents, static_cast<uint32_t>(problem.tensors.size())));
  };
  if (options.function == "dot") {
    add({N}), add({N}), add({1});
    problem.one = [](const std::vector<TensorRef> &t) {
      return Plan{{Launch{&dotKernel, "", {1}, {t[0], t[1], t[2]}}}};
    };
    return problem;
  }
  const int64_t D = options.extents.back();
  for (int i = 0; i < 4; ++i)
    add({1, 1, N, D});
  add({1, 1, N});
  problem.one = [target = device->target(), D](const std::vector<TensorRef> &t) {
    return planAttention(target, t[0], t[1], t[2], t[3], t[4], 1 / std::sqrt(static_cast<float>(D)), {.causal = false});
  };
  return problem;
}

/// Memory of this process that is resident now, in bytes.
static double residentBytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

static Spread spreadOf(const std::vector<double> &values) {
  Spread spread;
  for (const double value : values)
    spread.mean += value / static_cast<double>(values.size());
  for (const double value : values)
    spread.deviation += (value - spread.mean) * (value - spread.mean) / static_cast<double>(values.size());
  spread.deviation = std::sqrt(spread.deviation);
  return spread;
}

/// The plans of a call: one of all examples, or one for each.
static std::vector<Plan> plansOf(const Options &options, const Problem &problem) {
  std::vector<Plan> plans;
  if (options.how == "vmap") {
    std::vector<Batched> batch;
    for (const Tensor &tensor : problem.tensors)
      batch.push_back({tensor.ref(), 0});
    return {vmap(problem.one, batch)};
  }
  for (int64_t example = 0; example < options.batch; ++example) {
    std::vector<TensorRef> own;
    for (const Tensor &tensor : problem.tensors)
      own.push_back(tensor.ref().select(0, example));
    plans.push_back(problem.one(own));
  }
  return plans;
}

static void measure(const Options &options) {
  const auto device = Device::open(options.device);
  const Problem problem = problemOf(options, device);
  const auto seconds = [&](const auto &call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    device->synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<PreparedPlan> prepared;
  std::vector<Tensor> workspaces;
  const auto call = [&] {
    for (const PreparedPlan &plan : prepared)
      plan.run();
  };
  const double cold = seconds([&] {
    for (const Plan &plan : plansOf(options, problem)) {
      workspaces.emplace_back(device, f32, Shape{ceildiv(plan.workspaceBytes, 4)});
      prepared.push_back(prepare(*device, plan, workspaces.back().ref()));
    }
    call();
  });
  std::vector<double> times, memory;
  for (int i = 0; i < options.calls; ++i) {
    times.push_back(seconds(call));
    memory.push_back(residentBytes());
  }
  int64_t held = 0;
  for (const std::vector<Tensor> *tensors : {&problem.tensors, static_cast<const std::vector<Tensor> *>(&workspaces)})
    for (const Tensor &tensor : *tensors)
      held += tensor.ref().bytes();
  const Spread time = spreadOf(times), resident = spreadOf(memory);
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double part) {
    return times[static_cast<size_t>(part * static_cast<double>(times.size() - 1))];
  };
  fmt::print("kiln {},{},{},{:.4g},{:.4g},{:.4g},{:.4g},{:.0f},{:.0f},{},{:.4g}\n", options.how, options.function,
             device->name(), time.mean, time.deviation, quantile(0.5), quantile(0.99), resident.mean,
             resident.deviation, held, cold);
}

int main(int argc, char **argv) {
  Options options;
  CLI::App app("kiln-vmap: a loop of launches beside one launch of a batch");
  app.add_option("--device", options.device, "where it runs")->capture_default_str();
  app.add_option("--function", options.function)->check(CLI::IsMember({"dot", "attention"}))->capture_default_str();
  app.add_option("--how", options.how)->check(CLI::IsMember({"loop", "vmap"}))->capture_default_str();
  app.add_option("--batch", options.batch, "examples")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--extents", options.extents, "of an example: N of a dot, T and D of attention")
      ->delimiter(',')
      ->expected(1, 2)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--calls", options.calls, "that are measured")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.set_version_flag("--version", versionText("kiln-vmap"), "print which Kiln this is");
  try {
    app.parse(argc, argv);
    measure(options);
    return 0;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 2 : 0;
  } catch (const Error &error) {
    fmt::print(stderr, "kiln-vmap: {}\n", error.what());
    return error.fault == Fault::user ? 2 : error.fault == Fault::device ? 3 : 4;
  }
}
