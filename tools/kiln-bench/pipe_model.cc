// Rates of the A100 are from NVIDIA's data sheet and CUDA's table of arithmetic throughput. Rates of the H200 are from
// public microbenchmarks of the H100 (mma.sync 6.26 clocks for 16×8×16, 64 lanes of integers, 128 of floats) at its
// sustained clock, with the H200's memory. Latencies are from published pointer-chasing benchmarks.

#include "tools/kiln-bench/pipe_model.h"

#include <algorithm>
#include <cmath>

namespace kiln::bench {

std::span<const MachineRates> machines() {
  static const MachineRates all[] = {
      {.name = "A100",
       .sms = 108,
       .clock = 1.41e9,
       .mma16 = 2048,
       .mmaGroup = 0,
       .sharedBytes = 128,
       .mufu = 16,
       .fp = 64,
       .integer = 64,
       .issued = 4,
       .l2Bytes = 64,
       .l2Rate = 7.05e12,
       .memoryRate = 0.9 * 2.04e12,
       .l2Latency = 262,
       .memoryLatency = 466,
       .start = 2e-6},
      {.name = "H200",
       .sms = 132,
       .clock = 1.6e9,
       .mma16 = 4 * 4096 / 6.26,
       .mmaGroup = 4096,
       .sharedBytes = 128,
       .mufu = 16,
       .fp = 128,
       .integer = 64,
       .issued = 4,
       .l2Bytes = 64,
       .l2Rate = 6.5e12,
       .memoryRate = 4.3e12,
       .l2Latency = 263,
       .memoryLatency = 479,
       .start = 2e-6},
  };
  return all;
}

Pipes::Kind Pipes::binding() const {
  return static_cast<Kind>(std::max_element(clocks.begin(), clocks.end()) - clocks.begin());
}

/// The tensor cores' time for operands of this type, relative to 16-bit operands.
static double costOf(const std::string &type) {
  if (type == "tf32")
    return 2;
  if (type == "s8" || type == "f8")
    return 0.5;
  return type == "f64" ? 16 : 1;
}

/// Clocks of the tensor cores; wgmma is faster where available.
static double tensorClocks(const MachineRates &machine, const Work &work) {
  const double groups = machine.mmaGroup > 0 ? work.groupOperations : 0;
  const double clocks = (work.mmaOperations - groups) / machine.mma16;
  return costOf(work.mmaType) * (groups > 0 ? clocks + groups / machine.mmaGroup : clocks);
}

Pipes pipesOf(const MachineRates &machine, const Work &work, double l2Bytes) {
  const Counts &c = work.counts;
  constexpr double lanes = 32;
  Pipes pipes;
  pipes.clocks[Pipes::tensor] = tensorClocks(machine, work);
  pipes.clocks[Pipes::shared] = (work.wavefronts + c[Class::shuffle]) * 128 / machine.sharedBytes;
  pipes.clocks[Pipes::mufu] = c[Class::mufu] * lanes / machine.mufu;
  pipes.clocks[Pipes::fp] = c[Class::fp] * lanes / machine.fp;
  pipes.clocks[Pipes::integer] =
      (c[Class::integer] + c[Class::predicate] + c[Class::convert]) * lanes / machine.integer;
  pipes.clocks[Pipes::issue] = c.total() / machine.issued;
  pipes.clocks[Pipes::l2] = l2Bytes / machine.l2Bytes;
  return pipes;
}

double exposedOf(double latency, double roundsAhead, double round) {
  return std::max(0.0, latency - roundsAhead * round);
}

/// The most warps and programs of an SM.
static std::pair<int, int> residentsOf(int architecture) {
  switch (architecture) {
  case 86:
    return {48, 16};
  case 89:
  case 120:
    return {48, 24};
  default:
    return {64, 32};
  }
}

Occupancy occupancyOf(const GpuFacts &gpu, int registers, int64_t sharedBytes, int threads) {
  constexpr int64_t registersUnit = 256, sharedUnit = 128, systemShared = 1024; // granularity for a warp; for a program
  const auto [mostWarps, mostPrograms] = residentsOf(gpu.architecture);
  const int warps = static_cast<int>(cdiv(threads, 32));
  const int64_t ofWarp = cdiv(std::max(registers, 1) * int64_t{32}, registersUnit) * registersUnit;
  const int64_t ofProgram = cdiv(sharedBytes + systemShared, sharedUnit) * sharedUnit;
  const std::pair<int64_t, const char *> limits[] = {{mostPrograms, "programs"},
                                                     {mostWarps / warps, "warps"},
                                                     {gpu.registers / ofWarp / warps, "registers"},
                                                     {gpu.smSharedBytes / ofProgram, "shared memory"}};
  const auto *const least = std::min_element(std::begin(limits), std::end(limits),
                                             [](const auto &a, const auto &b) { return a.first < b.first; });
  const int programs = static_cast<int>(least->first);
  return {programs, least->second, programs * warps, mostWarps};
}

/// Clocks of an SM for this many resident programs.
static double groupClocks(const MachineRates &machine, const LaunchWork &launch, double exposed, double programs) {
  const double whole = pipesOf(machine, launch.program, launch.l2Bytes).most();
  const double alone = whole + launch.rounds * exposed + machine.memoryLatency;
  return std::max(programs * whole, alone);
}

Prediction predict(const MachineRates &machine, const LaunchWork &launch) {
  Prediction result;
  result.round = pipesOf(machine, launch.round, launch.roundL2Bytes);
  // Streamed data come from memory; operands shared by programs come from the cache.
  const double latency = launch.round.mmaOperations > 0 ? machine.l2Latency : machine.memoryLatency;
  if (launch.loads)
    result.exposed = exposedOf(latency, launch.roundsAhead, result.round.most());
  const double ofSm = std::ceil(launch.programs / machine.sms), together = std::max(1, launch.residents);
  const double groups = std::floor(ofSm / together), rest = ofSm - groups * together;
  double clocks = groups * groupClocks(machine, launch, result.exposed, together);
  if (rest > 0)
    clocks += groupClocks(machine, launch, result.exposed, rest);
  const double memory = launch.memoryBytes / machine.memoryRate;
  const double cache = launch.programs * launch.l2Bytes / machine.l2Rate;
  const double busy = std::max(clocks / machine.clock, cache);
  result.isMemoryBound = memory > busy;
  result.seconds = machine.start + std::max(busy, memory);
  result.waves = launch.programs / (machine.sms * together);
  return result;
}

/// The rank of each number: the number of smaller ones, plus half of the equal ones.
static std::vector<double> ranksOf(const std::vector<double> &numbers) {
  std::vector<double> ranks;
  for (const double number : numbers) {
    double rank = 0;
    for (const double other : numbers)
      rank += other < number ? 1 : other == number ? 0.5 : 0;
    ranks.push_back(rank);
  }
  return ranks;
}

double rankCorrelation(const std::vector<double> &a, const std::vector<double> &b) {
  const std::vector<double> x = ranksOf(a), y = ranksOf(b);
  const double mean = static_cast<double>(x.size()) / 2; // ranks begin at ½
  double together = 0, ofX = 0, ofY = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    together += (x[i] - mean) * (y[i] - mean);
    ofX += (x[i] - mean) * (x[i] - mean);
    ofY += (y[i] - mean) * (y[i] - mean);
  }
  return ofX > 0 && ofY > 0 ? together / std::sqrt(ofX * ofY) : 0;
}

} // namespace kiln::bench
