// Independent chains of multiply-adds on native vectors: as many chains as hide the latency and still fit the
// registers.

#include "models/train/peak.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace kiln {

/// A sample is long beside the waking of a thread and not longer than the slice of time that a scheduler gives a
/// process.
static constexpr double sampleSeconds = 2e-3;
static constexpr int64_t mostRounds = int64_t{1} << 30;
/// Between samples, so that they do not all fall into one slice of another process.
static constexpr std::chrono::milliseconds pauseBefore(3);
/// Between the samples of a run.
static constexpr std::chrono::seconds pauseBetween(1);
static constexpr int leastSamples = 8, mostSamples = 100;
/// The two best samples are this close to each other, or more are taken.
static constexpr double agreement = 0.97;

namespace {
struct PeakConfig {
  int width = 16;  // elements of a native vector
  int chains = 12; // results in flight
};

void fmaPeak(View factors, View out, Tile rounds, PeakConfig cfg) {
  const Tile a = load(factors, {0, 0}, {cfg.width}); // (W) below 1: the sums converge
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

std::function<double()> peakSampler(Device &device) {
  PeakConfig config;
  config.width = device.target().visit([](const CpuFacts &cpu) { return cpu.vectorBits / 32; },
                                       [](const GpuFacts &) { return 128; }); // a warp for each scheduler of an SM
  const std::string text = textOf(fmaPeakKernel.fields, config);
  const std::shared_ptr<Device> handle(&device, [](Device *) {});
  const int64_t programs =
      device.target().visit([](const CpuFacts &cpu) { return cpu.cores; }, [](const GpuFacts &gpu) { return gpu.sms; });
  const auto factors = std::make_shared<Tensor>(handle, f32, Shape{2, config.width});
  const auto out = std::make_shared<Tensor>(handle, f32, Shape{programs, config.width});
  factors->uploadFloats(std::vector<float>(2 * config.width, 0.5f));
  const auto run = [&device, factors, out, programs, text](int64_t rounds) {
    const auto begin = std::chrono::steady_clock::now();
    launch(device, fmaPeakKernel, {programs, 1, 1}, {factors->ref(), out->ref(), rounds}, text);
    device.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  run(1); // compiles
  int64_t rounds = 1000;
  // The shortest of three: one that lost its core to another process looks long.
  while (std::min({run(rounds), run(rounds), run(rounds)}) < sampleSeconds && rounds < mostRounds)
    rounds *= 2;
  const double operations =
      2.0 * static_cast<double>(rounds) * config.chains * config.width * static_cast<double>(programs);
  return [run, rounds, operations] { return operations / run(rounds); };
}

Peak::Peak(std::function<double()> given)
    : sample(std::move(given)), highest(bestRate([this] {
        std::this_thread::sleep_for(pauseBefore);
        return sample();
      })),
      next(Clock::now() + pauseBetween) {}

double Peak::shareOf(double rate, Clock::time_point now) {
  if (now >= next) {
    const Clock::time_point begin = Clock::now();
    highest = std::max(highest, sample());
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
