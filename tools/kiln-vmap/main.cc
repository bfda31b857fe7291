// kiln-vmap: what a batch of examples takes as a loop of launches, as one launch of what vmap makes, and by a kernel
// whose author has batched it by hand.
//
// Functions: `dot`, the product of two vectors, `attention` of one head without a mask, `softmax` of rows, and
// `matmul`, on `--batch` examples of shape `--extents`. It prints a line of CSV: the mean of the time and of the
// resident memory over `--calls` calls behind the first, their deviation, the median and the 99th percentile, what the
// device holds, and the first call with its compilation, from no cache. With `--beside` another way takes turns with
// `--how`, and the line has the quotient of their processor times: the median of `--pairs`, the least and the largest.
// Exit codes: 0 measured; 2, 3 and 4 as everywhere.

#include "kernels/attention.h"
#include "kernels/softmax.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "runtime/Version.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <unistd.h>

using namespace kiln;

namespace {

struct Options {
  std::string device = "cpu", function = "dot", how = "vmap", beside;
  int64_t batch = 100;
  std::vector<int64_t> extents = {10000};
  int calls = 1000, pairs = 15;
};

/// x, y (N); out (1), their product: one program, 1024 elements at a time.
void dotRow(View x, View y, View out) {
  Tile sums = zeros(f32, {1024});
  for (Tile n : range(0, x.dim(0), 1024))
    sums += load(x, {n}, {1024}) * load(y, {n}, {1024});
  store(out, {0}, sum(sums));
}
const Kernel dotKernel = kernel("dot_row", dotRow, {"x (N)", "y (N)", "out (1), their product"});

/// The same of rows of matrices, one a program.
void dotRows(View x, View y, View out) {
  Tile b = program_id(0), sums = zeros(f32, {1024});
  for (Tile n : range(0, x.dim(1), 1024))
    sums += load(x, {b, n}, {1024}) * load(y, {b, n}, {1024});
  store(out, {b, 0}, sum(sums));
}
const Kernel dotRowsKernel = kernel("dot_rows", dotRows, {"x (B, N)", "y (B, N)", "out (B, 1), their products"});

constexpr int64_t tile = 64; // rows, columns and terms of products

/// c = a · b of matrices (M, K) and (K, N).
void multiply(View a, View b, View c) {
  Tile m = program_id(0) * tile, n = program_id(1) * tile, acc = zeros(f32, {tile, tile});
  for (Tile k : range(0, a.dim(1), tile))
    acc = dot(load(a, {m, k}, {tile, tile}), load(b, {k, n}, {tile, tile}), acc);
  store(c, {m, n}, acc);
}
const Kernel multiplyKernel = kernel("multiply", multiply, {"a (M, K)", "b (K, N)", "c (M, N), a · b"});

/// The same of many pairs.
void multiplyMany(View a, View b, View c) {
  Tile m = program_id(0) * tile, n = program_id(1) * tile, e = program_id(2), acc = zeros(f32, {tile, tile});
  for (Tile k : range(0, a.dim(2), tile))
    acc = dot(load(a, {e, m, k}, {tile, tile}), load(b, {e, k, n}, {tile, tile}), acc);
  store(c, {e, m, n}, acc);
}
const Kernel multiplyManyKernel =
    kernel("multiply_many", multiplyMany, {"a (B, M, K)", "b (B, K, N)", "c (B, M, N), a · b"});

using Tensors = std::vector<TensorRef>;

/// The tensors of a batch, the plan of one example, and that of all which somebody has written for them.
struct Problem {
  std::vector<Tensor> tensors;
  std::function<Plan(const Tensors &)> one, byHand;
};

/// A way to do a batch, ready to run.
struct Way {
  std::vector<Tensor> workspaces;
  std::vector<PreparedPlan> prepared;

  void run() const {
    for (const PreparedPlan &plan : prepared)
      plan.run();
  }
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
  const int64_t B = options.batch, N = options.extents[0], D = options.extents.back();
  const Target &target = device->target();
  Problem problem;
  const auto add = [&](Shape extents) {
    extents.insert(extents.begin(), B);
    problem.tensors.push_back(numbers(device, extents, static_cast<uint32_t>(problem.tensors.size())));
  };
  if (options.function == "dot") {
    add({N}), add({N}), add({1});
    problem.one = [](const Tensors &t) { return Plan{{Launch{&dotKernel, "", {1}, {t[0], t[1], t[2]}}}}; };
    problem.byHand = [B](const Tensors &t) { return Plan{{Launch{&dotRowsKernel, "", {B}, {t[0], t[1], t[2]}}}}; };
  } else if (options.function == "softmax") {
    add({N, D}), add({N, D});
    problem.one = [target](const Tensors &t) { return planSoftmax(target, t[0], t[1]); };
    problem.byHand = [=](const Tensors &t) {
      return planSoftmax(target, t[0].reshape({B * N, D}), t[1].reshape({B * N, D}));
    };
  } else if (options.function == "matmul") {
    const int64_t K = options.extents.size() == 1 ? N : options.extents[1];
    add({N, K}), add({K, D}), add({N, D});
    const int64_t rows = cdiv(N, tile), columns = cdiv(D, tile);
    problem.one = [=](const Tensors &t) {
      return Plan{{Launch{&multiplyKernel, "", {rows, columns}, {t[0], t[1], t[2]}}}};
    };
    problem.byHand = [=](const Tensors &t) {
      return Plan{{Launch{&multiplyManyKernel, "", {rows, columns, B}, {t[0], t[1], t[2]}}}};
    };
  } else {
    for (int i = 0; i < 4; ++i)
      add({1, 1, N, D});
    add({1, 1, N});
    const float scale = 1 / std::sqrt(static_cast<float>(D));
    problem.one = [=](const Tensors &t) {
      return planAttention(target, t[0], t[1], t[2], t[3], t[4], scale, {.causal = false});
    };
    problem.byHand = [=, one = problem.one](const Tensors &t) {
      return one({t[0].select(1, 0), t[1].select(1, 0), t[2].select(1, 0), t[3].select(1, 0), t[4].select(1, 0)});
    };
  }
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
static std::vector<Plan> plansOf(const std::string &how, const Options &options, const Problem &problem) {
  Tensors all;
  std::vector<Batched> batch;
  for (const Tensor &tensor : problem.tensors) {
    all.push_back(tensor.ref());
    batch.push_back({tensor.ref(), 0});
  }
  if (how == "vmap")
    return {vmap(problem.one, batch)};
  if (how == "hand")
    return {problem.byHand(all)};
  std::vector<Plan> plans;
  for (int64_t example = 0; example < options.batch; ++example) {
    Tensors own;
    for (const TensorRef &tensor : all)
      own.push_back(tensor.select(0, example));
    plans.push_back(problem.one(own));
  }
  return plans;
}

static Way wayOf(const std::string &how, const Options &options, const Problem &problem,
                 const std::shared_ptr<Device> &device) {
  Way way;
  for (const Plan &plan : plansOf(how, options, problem)) {
    way.workspaces.emplace_back(device, f32, Shape{cdiv(plan.workspaceBytes, 4)});
    way.prepared.push_back(prepare(*device, plan, way.workspaces.back().ref()));
  }
  return way;
}

static void measure(const Options &options, const std::shared_ptr<Device> &device, const Problem &problem) {
  const auto seconds = [&](const auto &call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    device->synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Way way;
  const double cold = seconds([&] {
    way = wayOf(options.how, options, problem, device);
    way.run();
  });
  std::vector<double> times, memory;
  for (int i = 0; i < options.calls; ++i) {
    times.push_back(seconds([&] { way.run(); }));
    memory.push_back(residentBytes());
  }
  int64_t held = 0;
  for (const std::vector<Tensor> *tensors :
       {&problem.tensors, static_cast<const std::vector<Tensor> *>(&way.workspaces)})
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

/// Seconds that this process's threads have run.
static double processorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

static void compare(const Options &options, const std::shared_ptr<Device> &device, const Problem &problem) {
  const Way first = wayOf(options.how, options, problem, device),
            second = wayOf(options.beside, options, problem, device);
  const auto seconds = [&](const Way &way) {
    const double begin = processorSeconds();
    for (int i = 0; i < options.calls; ++i)
      way.run();
    device->synchronize();
    return processorSeconds() - begin;
  };
  seconds(first), seconds(second);
  std::vector<double> quotients;
  for (int pair = 0; pair < options.pairs; ++pair) {
    const bool turned = pair % 2 == 1; // each is as often the first
    const double a = seconds(turned ? second : first), b = seconds(turned ? first : second);
    quotients.push_back(turned ? b / a : a / b);
  }
  std::sort(quotients.begin(), quotients.end());
  fmt::print("kiln {} beside {},{},{},{:.3f},{:.3f},{:.3f}\n", options.how, options.beside, options.function,
             device->name(), quotients[quotients.size() / 2], quotients.front(), quotients.back());
}

int main(int argc, char **argv) {
  Options options;
  CLI::App app("kiln-vmap: a loop of launches beside one launch of a batch");
  app.add_option("--device", options.device, "where it runs")->capture_default_str();
  app.add_option("--function", options.function)
      ->check(CLI::IsMember({"dot", "attention", "softmax", "matmul"}))
      ->capture_default_str();
  const CLI::IsMember ways({"loop", "vmap", "hand"});
  app.add_option("--how", options.how, "a loop of launches, vmap, or a kernel batched by hand")
      ->check(ways)
      ->capture_default_str();
  app.add_option("--beside", options.beside, "another way, in turns with the first")->check(ways);
  app.add_option("--pairs", options.pairs, "turns of both")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--batch", options.batch, "examples")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--extents", options.extents, "of an example: N of a dot; T, D; rows, columns; M, K, N")
      ->delimiter(',')
      ->expected(1, 3)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--calls", options.calls, "that are measured")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.set_version_flag("--version", versionText("kiln-vmap"), "print which Kiln this is");
  try {
    app.parse(argc, argv);
    const auto device = Device::open(options.device);
    const Problem problem = problemOf(options, device);
    options.beside.empty() ? measure(options, device, problem) : compare(options, device, problem);
    return 0;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 2 : 0;
  } catch (const Error &error) {
    fmt::print(stderr, "kiln-vmap: {}\n", error.what());
    return error.fault == Fault::user ? 2 : error.fault == Fault::device ? 3 : 4;
  }
}
