// Measures the peak with independent chains of FMAs on native vectors, enough to hide the latency within the registers,
// and with dense GEMMs.

#include "models/train/peak.h"
#include "kernels/add.h"
#include "kernels/matmul.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace kiln {

/// A sample is long compared with waking a thread, and at most a scheduler's time slice.
static constexpr double sampleSeconds = 2e-3;
static constexpr int64_t mostRounds = int64_t{1} << 30;
/// The pause between samples, so that they do not all fall into one time slice of another process.
static constexpr std::chrono::milliseconds pauseBefore(3);
/// The pause between samples during a run.
static constexpr std::chrono::seconds pauseBetween(1);
static constexpr int leastSamples = 8, mostSamples = 100;
/// More samples are taken until the two best are this close.
static constexpr double agreement = 0.97;

namespace {
struct PeakConfig {
  int width = 16;  // elements of a native vector
  int chains = 12; // independent chains
};

void fmaPeak(View factors, View out, Tile rounds, PeakConfig cfg) {
  const Tile a = load(factors, {0, 0}, {cfg.width}); // (W) below 1, so the sums converge
  const Tile b = load(factors, {1, 0}, {cfg.width}); // (W)
  std::vector<Tile> chains;
  for (int c = 0; c < cfg.chains; ++c)
    chains.push_back(b * (c + 1)); // (W)
  for (Tile round : range(0, rounds))
    for (Tile &chain : chains)
      chain = fma(chain, a, b);
  Tile total = zeros(f32, {cfg.width});
  for (const Tile &chain : chains)
    total += chain;
  store(out, {program_id(0), 0}, total);
}

const Kernel fmaPeakKernel = kernel(
    "fma_peak", fmaPeak, {"factors (2, W)", "out (P, W), the sums of the chains", "rounds i64, of multiply-adds"},
    {field("width", &PeakConfig::width, "elements of a native vector"),
     field("chains", &PeakConfig::chains, "results in flight")});
} // namespace

/// Doubles n until `seconds(n)` is long enough, and returns that n. The shortest of three measurements counts, because
/// another process may have taken the core.
static int64_t longEnough(int64_t first, int64_t most, const std::function<double(int64_t)> &seconds) {
  int64_t n = first;
  while (n < most && std::min({seconds(n), seconds(n), seconds(n)}) < sampleSeconds)
    n *= 2;
  return n;
}

static double measureSeconds(Device &device, const std::function<void()> &work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  device.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// FMA chains on every thread.
static PeakSampler chainSampler(Device &device, const CpuFacts &cpu) {
  PeakConfig config;
  config.width = cpu.vectorBits / 32;
  const std::string text = textOf(fmaPeakKernel.fields, config);
  const std::shared_ptr<Device> handle(&device, [](Device *) {});
  const int64_t programs = cpu.cores;
  const auto factors = std::make_shared<Tensor>(handle, f32, Shape{2, config.width});
  const auto out = std::make_shared<Tensor>(handle, f32, Shape{programs, config.width});
  factors->uploadFloats(std::vector<float>(2 * config.width, 0.5f));
  const auto seconds = [&device, factors, out, programs, text](int64_t rounds) {
    return measureSeconds(
        device, [&] { launch(device, fmaPeakKernel, {programs, 1, 1}, {factors->ref(), out->ref(), rounds}, text); });
  };
  seconds(1); // compiles
  const int64_t rounds = longEnough(1000, mostRounds, seconds);
  const double operations =
      2.0 * static_cast<double>(rounds) * config.chains * config.width * static_cast<double>(programs);
  return {[seconds, rounds, operations] { return operations / seconds(rounds); }, "f32 multiply-adds"};
}

/// The rows of the first and of the largest GEMM that is tried.
static constexpr int64_t leastSide = 64, mostSide = 8192;

/// A square GEMM, large enough for a long sample.
static PeakSampler productSampler(Device &device, Type type, std::optional<Precision> precision) {
  Target target = device.target();
  target.precision = precision;
  const std::shared_ptr<Device> handle(&device, [](Device *) {});
  struct Product {
    Tensor a, b, c, workspace;
    PreparedPlan run;
  };
  const auto made = [&](int64_t side) {
    auto product = std::make_shared<Product>();
    for (Tensor *tensor : {&product->a, &product->b, &product->c})
      *tensor = Tensor(handle, type, {side, side});
    const Plan plan = planMatmul(target, Layout::nn, product->a, product->b, product->c);
    product->workspace = Tensor(handle, i8, {plan.workspaceBytes});
    product->run = prepare(device, plan, product->workspace);
    return product;
  };
  const int64_t side = longEnough(leastSide, mostSide, [&](int64_t n) {
    const std::shared_ptr<Product> product = made(n);
    return measureSeconds(device, [&] { product->run.run(); });
  });
  const double operations = 2.0 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
  return {[&device, operations, product = made(side)] {
            return operations / measureSeconds(device, [&] { product->run.run(); });
          },
          fmt::format("{} products", nameOf(type))};
}

PeakSampler peakSampler(Device &device, Type type, std::optional<Precision> precision) {
  return device.target().visit(
      [&](const CpuFacts &cpu) { return type == f32 ? chainSampler(device, cpu) : productSampler(device, type, {}); },
      [&](const GpuFacts &) { return productSampler(device, type, precision); });
}

PeakSampler memorySampler(Device &device) {
  static constexpr int64_t count = int64_t{1} << 24;
  const std::shared_ptr<Device> handle(&device, [](Device *) {});
  const auto arrays = std::make_shared<std::array<Tensor, 3>>();
  for (Tensor &array : *arrays)
    array = Tensor(handle, f32, {count});
  const PreparedPlan sums = prepare(device, planAdd(device.target(), (*arrays)[0], (*arrays)[1], (*arrays)[2]));
  const auto seconds = [&device, sums, arrays] { return measureSeconds(device, [&] { sums.run(); }); };
  seconds();
  const double bytes = 3.0 * count * bytesOf(f32);
  return {[seconds, bytes] { return bytes / seconds(); }, "sums of two arrays"};
}

Peak::Peak(PeakSampler given)
    : sampler(std::move(given)), highest(bestRate([this] {
        std::this_thread::sleep_for(pauseBefore);
        return sampler.sample();
      })),
      next(Clock::now() + pauseBetween) {}

double Peak::shareOfPeak(double rate, Clock::time_point now) {
  if (now >= next) {
    const Clock::time_point begin = Clock::now();
    highest = std::max(highest, sampler.sample());
    next = now + std::max<Clock::duration>(pauseBetween, 200 * (Clock::now() - begin));
  }
  highest = std::max(highest, rate);
  return rate / highest;
}

double bestRate(const std::function<double()> &sample) {
  double best = 0, second = 0;
  for (int taken = 0; taken < mostSamples && (taken < leastSamples || second < agreement * best); ++taken) {
    const double rate = sample();
    second = std::max(second, std::min(rate, best));
    best = std::max(best, rate);
  }
  return best;
}

} // namespace kiln
