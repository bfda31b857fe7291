// Computes rows of problems.

#include "tools/kiln-bench/static_rows.h"

#include "lowering/Backend.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <map>
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

double StaticRow::programs() const {
  const auto of = [](const Grid &grid) { return static_cast<double>(grid[0] * grid[1] * grid[2]); };
  double all = of(problem.launch.grid);
  for (const Launch::Problem &other : problem.launch.others)
    all += of(other.grid);
  return all;
}

// --- The model's input ---------------------------------------------------------------------------------------------

/// PTX iterations per iteration of the machine code, because ptxas unrolls.
static double unrolledBy(const Work &loop, const Work &round, double warps) {
  const auto accesses = [](const Counts &c) { return c[Class::ldg] + c[Class::stg] + c[Class::asyncCopy]; };
  if (loop.mmaOperations > 0 && round.mmaOperations > 0)
    return loop.mmaOperations * warps / round.mmaOperations;
  if (accesses(loop.counts) > 0 && accesses(round.counts) > 0)
    return accesses(loop.counts) * warps / accesses(round.counts);
  return 1;
}

double instructionsOfRound(const StaticRow &row) {
  const double warps = static_cast<double>(cdiv(row.sample.threads, 32));
  if (row.sample.rounds == 0 || row.sass->loop.counts.total() == 0)
    return row.sass->whole.counts.total();
  return row.sass->loop.counts.total() / unrolledBy(row.sass->loop, row.sample.round, warps);
}

/// The simulator's counts with the instructions of the machine code: those of the main loop multiplied by its
/// iterations, others by the average executions of the PTX's others.
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

/// The minimum of bytes moved: each operand read once, each result written once.
static double memoryBytes(const StaticRow &row) {
  double operands = 0;
  std::set<const void *> seen;
  const auto add = [&](const std::vector<Arg> &args) {
    for (const Arg &arg : args)
      if (arg.kind == Arg::Kind::workspace || (arg.kind == Arg::Kind::tensor && seen.insert(arg.ref.data).second))
        operands += static_cast<double>(arg.ref.count() * bytesOf(arg.ref.type));
  };
  add(row.problem.launch.args);
  for (const Launch::Problem &other : row.problem.launch.others)
    add(other.args);
  return std::min(operands, 32 * row.total(&Traffic::loadSectors)) + 32 * row.total(&Traffic::storeSectors);
}

static LaunchWork launchWorkOf(const StaticRow &row) {
  const Sample &sample = row.sample;
  LaunchWork launch;
  launch.program = sample.program;
  launch.round = sample.round;
  launch.rounds = sample.rounds;
  if (row.sass)
    putInstructions(launch, *row.sass, sample);
  launch.l2Bytes = 32 * (sample.ofProgram.loadSectors + sample.ofProgram.storeSectors);
  launch.roundL2Bytes = 32 * (sample.ofRound.loadSectors + sample.ofRound.storeSectors);
  launch.loads = sample.ofRound.loadSectors > 0;
  launch.roundsAhead = launch.loads ? sample.ofRound.bytesInFlight / std::max(1.0, sample.ofRound.loadBytes) : 0;
  launch.programs = row.programs();
  launch.residents = std::max(1, row.occupancy.programs);
  launch.memoryBytes = memoryBytes(row);
  return launch;
}

// --- Examining -----------------------------------------------------------------------------------------------------

static void examineOne(StaticRow &row, const Instruments &instruments, void *workspace, const GpuFacts &gpu) {
  constexpr int mostRegisters = 255;
  if (!instruments.ptxas.empty()) {
    row.registers = registersOf(row.assembly);
    row.spillBytes = spillBytesOf(row.assembly);
    row.warned = isWarnedOf(row.assembly);
  }
  if (instruments.programs == 0)
    return;
  row.sample = sampleOf(*instruments.device, row.problem.launch, row.assembly.ptx, instruments.memory, workspace,
                        instruments.programs);
  if (!row.assembly.sass.empty())
    row.sass = countsOf(row.assembly.sass);
  const int threads = row.sample.threads;
  const int most = std::min(mostRegisters, gpu.registers / std::max(threads, 1) / 8 * 8);
  row.occupancy = occupancyOf(gpu, row.registers.value_or(most), row.sample.sharedBytes, threads);
  for (const MachineRates &machine : machines())
    row.predictions.push_back(predict(machine, launchWorkOf(row)));
}

void tellWhatIsMissing(const Instruments &instruments) {
  if (instruments.ptxas.empty())
    writeResult("no ptxas: registers, spills and machine code are left out\n");
  else if (instruments.nvdisasm.empty())
    writeResult("no --nvdisasm: machine code is left out, pipes are those of the PTX\n");
}

std::vector<StaticRow> examine(const std::vector<Problem> &problems, const Instruments &instruments) {
  const GpuFacts gpu = instruments.device->target().visit(
      [](const CpuFacts &) -> GpuFacts {
        throw Error("expected a GPU, such as --device simulator:sm_80, but got a CPU");
      },
      [](const GpuFacts &facts) { return facts; });
  int64_t bytes = 1;
  for (const Problem &problem : problems)
    bytes = std::max(bytes, problem.workspaceBytes);
  void *const workspace = instruments.memory.allocate(bytes);
  std::vector<StaticRow> rows;
  std::vector<Assembly> texts; // without repetition
  std::map<std::string, size_t> known;
  std::vector<size_t> textsOfRows;
  for (const Problem &problem : problems) {
    StaticRow &row = rows.emplace_back(StaticRow{.problem = problem});
    textsOfRows.push_back(texts.size());
    try {
      const std::string ptx = ptxOf(codeOf(*instruments.device, problem.launch, workspace));
      const auto [at, isNew] = known.try_emplace(ptx, texts.size());
      textsOfRows.back() = at->second;
      if (isNew)
        texts.push_back({problem.name, problem.launch.config, ptx, {}, {}});
    } catch (const Error &error) {
      row.error = error.what();
    }
  }
  if (!instruments.ptxas.empty())
    assemble(texts, instruments.ptxas, architectureOf(instruments.device->backend().name()),
             instruments.device->threads(), instruments.nvdisasm);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].error.empty())
      continue;
    rows[i].assembly = texts[textsOfRows[i]];
    try {
      examineOne(rows[i], instruments, workspace, gpu);
    } catch (const Error &error) {
      rows[i].error = error.what();
    }
  }
  instruments.memory.release(workspace);
  return rows;
}

} // namespace kiln::bench
