// Rates of the A100 are from NVIDIA's data sheet and CUDA's table of arithmetic throughput. Rates of the H100 are from
// public microbenchmarks (mma.sync 6.26 clocks for 16×8×16, 64 lanes of integers, 128 of floats; copies at 3.0 TB/s).
// Its clock falls to 1.4 GHz while wgmma keeps the tensor cores busy. A product of 8192×50257 and 50257×768 moved
// 9.1 TB/s from its L2, which is a lower bound of that rate. Waits for products cost 50 clocks in three kernels of
// attention. L2 caches have two halves, and data that both read is kept twice: l2Kept is one half. The H200 is an H100
// with other memory. Latencies are from published pointer-chasing benchmarks.

#include "tools/kiln-bench/pipe_model.h"

#include <algorithm>
#include <cmath>

namespace kiln::bench {

static MachineRates a100() {
  return {.name = "A100",
          .sms = 108,
          .clock = 1.41e9,
          .productClock = 1.41e9,
          .mma16 = 2048,
          .mmaGroup = 0,
          .drain = 0,
          .sharedBytes = 128,
          .mufu = 16,
          .fp = 64,
          .integer = 64,
          .issued = 4,
          .l2Bytes = 64,
          .l2Rate = 7.05e12,
          .memoryRate = 0.9 * 2.04e12,
          .l2Kept = 20 << 20,
          .l2Latency = 262,
          .memoryLatency = 466,
          .start = 1e-6};
}

static MachineRates h100() {
  return {.name = "H100",
          .sms = 132,
          .clock = 1.755e9,
          .productClock = 1.4e9,
          .mma16 = 4 * 4096 / 6.26,
          .mmaGroup = 4096,
          .drain = 50,
          .sharedBytes = 128,
          .mufu = 16,
          .fp = 128,
          .integer = 64,
          .issued = 4,
          .l2Bytes = 64,
          .l2Rate = 9.2e12,
          .memoryRate = 3.0e12,
          .l2Kept = 25 << 20,
          .l2Latency = 263,
          .memoryLatency = 479,
          .start = 1e-6};
}

static MachineRates h200() {
  MachineRates machine = h100();
  machine.name = "H200";
  machine.memoryRate = 4.3e12;
  return machine;
}

std::span<const MachineRates> machines() {
  static const MachineRates all[] = {a100(), h100(), h200()};
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

double exposedLatency(double latency, double roundsAhead, double round) {
  return std::max(0.0, latency - roundsAhead * round);
}

/// The most warps and programs of an SM.
static std::pair<int, int> residencyLimits(int architecture) {
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
  const auto [maxWarps, maxPrograms] = residencyLimits(gpu.architecture);
  const int warps = static_cast<int>(cdiv(threads, 32));
  const int64_t ofWarp = cdiv(std::max(registers, 1) * int64_t{32}, registersUnit) * registersUnit;
  const int64_t ofProgram = cdiv(sharedBytes + systemShared, sharedUnit) * sharedUnit;
  const std::pair<int64_t, const char *> limits[] = {{maxPrograms, "programs"},
                                                     {maxWarps / warps, "warps"},
                                                     {gpu.registers / ofWarp / warps, "registers"},
                                                     {gpu.smSharedBytes / ofProgram, "shared memory"}};
  const auto *const least = std::min_element(std::begin(limits), std::end(limits),
                                             [](const auto &a, const auto &b) { return a.first < b.first; });
  const int programs = static_cast<int>(least->first);
  return {programs, least->second, programs * warps, maxWarps};
}

/// Clocks of an iteration of the main loop if its warps wait for products and then execute the other instructions.
static double drainedClocks(const MachineRates &machine, const Work &round, const Pipes &pipes) {
  if (machine.mmaGroup == 0 || round.drains == 0)
    return 0;
  const double share = round.drainedOperations / round.mmaOperations;
  return share * pipes.clocks[Pipes::tensor] + round.drains * machine.drain + pipes.clocks[Pipes::issue];
}

namespace {
/// A time and its limit.
struct Bound {
  double value = 0;
  const char *name = "";

  void atLeast(double other, const char *limit) {
    if (other > value)
      *this = {other, limit};
  }
};

/// Clocks of an SM for one program.
struct ProgramTime {
  Bound work;  // its share beside others
  Bound alone; // without others
};
} // namespace

/// Clocks for data that a program with products loads outside its loop. All SMs load at the same time.
static double lateClocks(const MachineRates &machine, const LaunchWork &launch, double clock) {
  if (launch.lateBytes == 0)
    return 0;
  return machine.memoryLatency + machine.sms * launch.lateBytes / machine.memoryRate * clock;
}

/// Also sets the fields of the iteration in `result`.
static ProgramTime programTime(const MachineRates &machine, const LaunchWork &launch, double clock,
                               Prediction &result) {
  const bool hasProducts = launch.round.mmaOperations > 0;
  result.round = pipesOf(machine, launch.round, launch.roundL2Bytes);
  const double drained = drainedClocks(machine, launch.round, result.round);
  result.iteration = std::max(result.round.most(), drained);
  // Operands of products are shared by programs and come from L2. Other data come from memory, while the other warps of
  // the program work.
  if (launch.loads)
    result.exposed = hasProducts ? exposedLatency(machine.l2Latency, launch.roundsAhead, result.iteration)
                                 : exposedLatency(machine.memoryLatency, launch.roundsAhead + 1 - 1.0 / launch.warps,
                                                  result.iteration);

  Work rest = launch.program;
  rest.add(launch.round, -launch.rounds);
  const Pipes whole = pipesOf(machine, launch.program, launch.l2Bytes);
  const double outside = pipesOf(machine, rest, launch.l2Bytes - launch.rounds * launch.roundL2Bytes).most();
  const bool waits = drained > result.round.most();
  ProgramTime time{{whole.most(), Pipes::names[whole.binding()]}, {}};
  if (waits)
    time.work.atLeast(launch.rounds * drained + outside, "waits");
  const double inLoop = launch.rounds * result.iteration;
  const double latency = machine.memoryLatency + launch.roundL2Bytes / machine.l2Bytes +
                         launch.rounds * result.exposed + lateClocks(machine, launch, clock);
  time.alone = {inLoop + latency + outside, "latency"};
  if (inLoop > latency + outside)
    time.alone.name = waits ? "waits" : Pipes::names[result.round.binding()];
  return time;
}

Prediction predict(const MachineRates &machine, const LaunchWork &launch) {
  Prediction result;
  const double clock = launch.round.groupOperations > 0 ? machine.productClock : machine.clock;
  const ProgramTime program = programTime(machine, launch, clock, result);
  const auto group = [&](double programs) {
    Bound bound = program.work;
    bound.value *= programs;
    bound.atLeast(program.alone.value, program.alone.name);
    return bound;
  };
  const double ofSm = std::ceil(launch.programs / machine.sms), together = std::max(1, launch.residents);
  const double groups = std::floor(ofSm / together), rest = ofSm - groups * together;
  Bound busy = group(std::min(ofSm, together));
  busy.value = (groups * busy.value + (rest > 0 ? group(rest).value : 0)) / clock;
  busy.atLeast(launch.programs * launch.l2Bytes / machine.l2Rate, "L2 rate");
  if (launch.memoryBytes > machine.l2Kept)
    busy.atLeast(launch.memoryBytes / machine.memoryRate, "memory");
  result.seconds = machine.start + busy.value;
  result.binds = busy.name;
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
