// Converts the counts of a launch to the input of the pipe model.

#include "tools/kiln-bench/sample.h"

#include <algorithm>
#include <set>

namespace kiln::bench {

SassCounts countsOf(const std::string &sass) {
  const std::vector<SassKernel> kernels = readSass(sass);
  if (kernels.empty())
    throw Error("expected the disassembly of a kernel, as 'nvdisasm -c' prints it, but got none");
  SassCounts counts{{}, kernels.front().whole()};
  if (const SassLoop *loop = kernels.front().mainLoop())
    counts.loop = kernels.front().workOf(loop->begin, loop->end);
  return counts;
}

/// The number of iterations of the PTX's main loop in one iteration of the machine code's, which ptxas unrolls.
static double unrolledBy(const Work &loop, const Work &round, double warps) {
  const auto accesses = [](const Counts &c) { return c[Class::ldg] + c[Class::stg] + c[Class::asyncCopy]; };
  if (loop.mmaOperations > 0 && round.mmaOperations > 0)
    return loop.mmaOperations * warps / round.mmaOperations;
  if (accesses(loop.counts) > 0 && accesses(round.counts) > 0)
    return accesses(loop.counts) * warps / accesses(round.counts);
  return 1;
}

double instructionsOfRound(const Sample &sample, const SassCounts &sass) {
  const double warps = static_cast<double>(cdiv(sample.threads, 32));
  if (sample.rounds == 0 || sass.loop.counts.total() == 0)
    return sass.whole.counts.total();
  return sass.loop.counts.total() / unrolledBy(sass.loop, sample.round, warps);
}

/// Replaces the PTX instructions in `launch` by those of the machine code. The main loop's count once per iteration;
/// the others count as often as the PTX instructions outside the loop ran on average.
static void putInstructions(LaunchWork &launch, const SassCounts &sass, const Sample &sample) {
  const double warps = static_cast<double>(cdiv(sample.threads, 32));
  if (sample.rounds > 0 && sass.loop.counts.total() > 0) {
    const double unrolled = unrolledBy(sass.loop, sample.round, warps);
    launch.round.counts = {};
    launch.round.counts.add(sass.loop.counts, warps / unrolled);
    Counts outside = sass.whole.counts;
    outside.add(sass.loop.counts, -1);
    const double ran = sample.program.counts.total() - sample.rounds * sample.round.counts.total();
    launch.program.counts = {};
    launch.program.counts.add(launch.round.counts, sample.rounds);
    launch.program.counts.add(outside, sample.outside > 0 ? ran / sample.outside : 0);
    return;
  }
  const double all = sample.outside + sample.insideLoop;
  launch.program.counts = {};
  launch.program.counts.add(sass.whole.counts, all > 0 ? sample.program.counts.total() / all : 0);
}

double programsOf(const Launch &launch) {
  const auto of = [](const Grid &grid) { return static_cast<double>(grid[0] * grid[1] * grid[2]); };
  double all = of(launch.grid);
  for (const Launch::Problem &other : launch.others)
    all += of(other.grid);
  return all;
}

/// The minimum number of bytes that memory moves: operands that the kernel reads are read at most once, and stores are
/// written.
static double memoryBytes(const Launch &launch, const Sample &sample) {
  double operands = 0;
  std::set<const void *> seen; // sample.reads has an entry for each argument of the expanded kernel
  const auto add = [&](const std::vector<Arg> &args) {
    for (size_t i = 0; i < args.size(); ++i) {
      const Arg &arg = args[i];
      const bool isMemory =
          arg.kind == Arg::Kind::workspace || (arg.kind == Arg::Kind::tensor && seen.insert(arg.ref.data).second);
      if (isMemory && sample.reads[i])
        operands += static_cast<double>(arg.ref.count() * bytesOf(arg.ref.type));
    }
  };
  const Launch whole = expanded(launch);
  add(whole.args);
  for (const Launch::Problem &other : whole.others)
    add(other.args);
  const double programs = programsOf(launch);
  const Traffic &each = sample.ofProgram;
  return std::min(operands, 32 * programs * each.loadSectors) + 32 * programs * each.storeSectors;
}

LaunchWork launchWorkOf(const Launch &launch, const Sample &sample, const SassCounts *sass,
                        const Occupancy &occupancy) {
  LaunchWork work;
  work.program = sample.program;
  work.round = sample.round;
  work.rounds = sample.rounds;
  if (sass)
    putInstructions(work, *sass, sample);
  work.l2Bytes = 32 * (sample.ofProgram.loadSectors + sample.ofProgram.storeSectors);
  work.roundL2Bytes = 32 * (sample.ofRound.loadSectors + sample.ofRound.storeSectors);
  work.loads = sample.ofRound.loadSectors > 0;
  work.roundsAhead = work.loads ? sample.ofRound.bytesInFlight / std::max(1.0, sample.ofRound.loadBytes) : 0;
  if (sample.round.mmaOperations > 0)
    work.lateBytes = sample.ofProgram.directBytes - sample.rounds * sample.ofRound.directBytes - sample.bytesAhead;
  work.warps = static_cast<int>(cdiv(sample.threads, 32));
  work.programs = programsOf(launch);
  work.residents = std::max(1, occupancy.programs);
  work.memoryBytes = memoryBytes(launch, sample);
  return work;
}

Occupancy occupancyOf(const GpuFacts &gpu, std::optional<int> registers, const Sample &sample) {
  constexpr int mostRegisters = 255;
  const int most = std::min(mostRegisters, gpu.registers / std::max(sample.threads, 1) / 8 * 8);
  return occupancyOf(gpu, registers.value_or(most), sample.sharedBytes, sample.threads);
}

} // namespace kiln::bench
