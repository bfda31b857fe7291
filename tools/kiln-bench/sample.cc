// The main loop of a text is the innermost loop with most tensor core products; ties, and kernels without products, by
// the number of executions.

#include "tools/kiln-bench/sample.h"
#include "lowering/Abi.h"
#include "runtime/Arguments.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Launch.h"
#include "runtime/simulator/ptx/Parser.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace kiln::bench {

using namespace simulator;

// --- Classes -------------------------------------------------------------------------------------------------------

namespace {
/// An instruction of the text.
struct Reader {
  const ptx::Function &function;
  const ptx::Instruction &instruction;

  bool has(std::string_view modifier) const {
    const auto modifiers = function.modifiersOf(instruction);
    return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
  }
  bool isOne(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), instruction.opcode) != names.end();
  }
  std::vector<ptx::Type> types() const {
    std::vector<ptx::Type> all;
    for (const std::string_view modifier : function.modifiersOf(instruction))
      if (const std::optional<ptx::Type> type = ptx::typeNamed(modifier))
        all.push_back(*type);
    return all;
  }
  bool isShared() const { return has("shared") || has("shared::cta"); }
  /// Whether the first operand of a wgmma is in registers, as a vector.
  bool firstInRegisters() const {
    const auto operands = function.operandsOf(instruction);
    return operands.size() > 1 && operands[1].kind == ptx::Operand::Kind::vector;
  }
  /// Waits for all products of wgmma.
  bool drains() const {
    const auto operands = function.operandsOf(instruction);
    return instruction.opcode == "wgmma" && has("wait_group") && !operands.empty() && operands[0].bits == 0;
  }
  /// Waits for an asynchronous operation.
  bool waits() const {
    return (instruction.opcode == "cp" && (has("wait_group") || has("wait_all"))) ||
           (instruction.opcode == "mbarrier" && (has("try_wait") || has("test_wait"))) ||
           (instruction.opcode == "wgmma" && has("wait_group"));
  }
};
} // namespace

static Class classOfMemory(const Reader &r) {
  const bool loads = r.isOne({"ld", "ldu"});
  if (r.has("local"))
    return Class::local;
  if (r.has("param") || r.has("const"))
    return Class::integer;
  if (r.isShared())
    return loads ? Class::lds : Class::sts;
  return loads ? Class::ldg : Class::stg;
}

static Class classOf(const Reader &r) {
  if (r.isOne({"mma"}) || (r.isOne({"wgmma"}) && r.has("mma_async")) || (r.isOne({"wmma"}) && r.has("mma")))
    return Class::mma;
  if (r.isOne({"ldmatrix"}) || (r.isOne({"wmma"}) && r.has("load")))
    return Class::ldmatrix;
  if (r.isOne({"stmatrix"}))
    return Class::sts;
  if (r.isOne({"ld", "ldu", "st"}))
    return classOfMemory(r);
  if (r.isOne({"cp"}))
    return r.has("commit_group") || r.has("arrive") || r.waits() ? Class::other : Class::asyncCopy;
  if (r.isOne({"atom", "red"}))
    return Class::atomic;
  if (r.isOne({"ex2", "lg2", "sin", "cos", "tanh", "rsqrt"}) || (r.isOne({"rcp", "sqrt", "div"}) && r.has("approx")))
    return Class::mufu;
  if (r.isOne({"cvt", "prmt"}))
    return Class::convert;
  if (r.isOne({"setp", "selp", "set", "slct"}))
    return Class::predicate;
  if (r.isOne({"bar", "barrier"}))
    return r.has("warp") ? Class::branch : Class::barrier;
  if (r.isOne({"shfl", "redux", "match", "movmatrix"}))
    return Class::shuffle;
  if (r.isOne({"bra", "brx", "call", "ret", "exit", "trap"}))
    return Class::branch;
  if (r.isOne({"fence", "membar", "mbarrier", "wgmma", "nanosleep", "griddepcontrol", "setmaxnreg"}))
    return Class::other;
  const std::vector<ptx::Type> types = r.types();
  return !r.isOne({"mov"}) && std::any_of(types.begin(), types.end(), ptx::isFloat) ? Class::fp : Class::integer;
}

/// The work of one instruction for a warp, without the memory traffic that the simulator counts. Only the wavefronts of
/// operands that wgmma reads from shared memory are included.
static Work workOf(const Reader &r) {
  Work work;
  const Class kind = classOf(r);
  work.counts[kind] = 1;
  if (kind != Class::mma)
    return work;
  for (const std::string_view modifier : r.function.modifiersOf(r.instruction)) {
    double m = 0, n = 0, k = 0;
    char letter = 0;
    std::istringstream text{std::string(modifier)};
    if (!modifier.starts_with('m') || !(text >> letter >> m >> letter >> n >> letter >> k))
      continue;
    work.mmaOperations = 2 * m * n * k / (r.isOne({"wgmma"}) ? 4 : 1);
    if (r.isOne({"wgmma"})) {
      constexpr double operandBytes = 32, wavefront = 128, warps = 4; // an instruction's K has 32 bytes
      work.groupOperations = work.mmaOperations;
      work.wavefronts = ((r.firstInRegisters() ? 0 : m) + n) * operandBytes / wavefront / warps;
    }
  }
  const std::vector<ptx::Type> types = r.types();
  const std::string name = types.size() > 1 ? ptx::nameOf(types[1]) : "";
  work.mmaType = name.starts_with("e") ? "f8" : name == "u8" ? "s8" : name;
  return work;
}

// --- Counts --------------------------------------------------------------------------------------------------------

namespace {
/// The counts of a kernel's steps, for `warps` warps of each of `programs` programs.
struct Counted {
  const Code &code;
  const ptx::Function &function;
  const Metrics &metrics;
  double warps, programs;

  Reader reader(size_t step) const {
    return {function, function.instructions[static_cast<size_t>(code.instructions[step])]};
  }
  bool isInstruction(size_t step) const { return code.instructions[step] >= 0; }
  const StepMetrics &at(size_t step) const { return metrics.at(0, static_cast<int>(step)); }
};

struct Loop {
  size_t begin = 0, end = 0; // steps [begin, end)
};
} // namespace

/// Adds the work and the traffic of the steps, divided by `by`.
static void addSteps(const Counted &counted, Loop part, double by, Work &work, Traffic &traffic) {
  double inFlight = 0, waits = 0, pending = 0;
  for (size_t step = part.begin; step < part.end; ++step) {
    if (!counted.isInstruction(step))
      continue;
    const StepMetrics &m = counted.at(step);
    const Reader reader = counted.reader(step);
    const Class kind = classOf(reader);
    const auto instructions = static_cast<double>(m.instructions) / by;
    const Work one = workOf(reader);
    work.add(one, instructions);
    pending += instructions * one.groupOperations;
    if (reader.drains()) {
      work.drains += instructions / counted.warps;
      work.drainedOperations += std::exchange(pending, 0);
    }
    work.wavefronts += static_cast<double>(m.wavefronts) / by;
    work.bytes += static_cast<double>(m.globalBytes) / by;
    traffic.wavefronts += static_cast<double>(m.wavefronts) / by;
    traffic.conflictFreeWavefronts += static_cast<double>(m.idealWavefronts) / by;
    traffic.idealWavefronts += static_cast<double>(m.sharedBytes) / 128 / by;
    const bool stores = kind == Class::stg || kind == Class::atomic;
    (stores ? traffic.storeSectors : traffic.loadSectors) += static_cast<double>(m.sectors) / by;
    (stores ? traffic.idealStoreSectors : traffic.idealLoadSectors) += static_cast<double>(m.idealSectors) / by;
    traffic.accesses += static_cast<double>(m.globalAccesses) / by;
    traffic.bytes += static_cast<double>(m.globalBytes) / by;
    if (!stores)
      traffic.loadBytes += static_cast<double>(m.globalBytes) / by;
    if (kind == Class::ldg)
      traffic.directBytes += 32 * static_cast<double>(m.sectors) / by;
    if (kind == Class::barrier)
      traffic.barriers += instructions / counted.warps;
    if (reader.waits()) {
      traffic.waits += instructions / counted.warps;
      waits += static_cast<double>(m.instructions);
      inFlight += static_cast<double>(m.bytesInFlight);
    }
  }
  if (waits > 0)
    traffic.bytesInFlight = std::max(traffic.bytesInFlight, inFlight / waits * counted.warps);
}

static double productsIn(const Counted &counted, Loop loop) {
  double products = 0;
  for (size_t step = loop.begin; step < loop.end; ++step)
    if (counted.isInstruction(step))
      products += classOf(counted.reader(step)) == Class::mma;
  return products;
}

static double ranIn(const Counted &counted, Loop loop) {
  double ran = 0;
  for (size_t step = loop.begin; step < loop.end; ++step)
    ran += static_cast<double>(counted.at(step).instructions);
  return ran;
}

static std::optional<Loop> mainLoop(const Counted &counted) {
  std::vector<Loop> all;
  for (size_t step = 0; step < counted.code.steps.size(); ++step) {
    const Step &each = counted.code.steps[step];
    if (each.isBranch && each.target >= 0 && static_cast<size_t>(each.target) <= step)
      all.push_back({static_cast<size_t>(each.target), step + 1});
  }
  std::optional<Loop> best;
  std::pair<double, double> most;
  for (const Loop &loop : all) {
    const bool isInnermost = std::none_of(all.begin(), all.end(), [&](const Loop &other) {
      return other.begin >= loop.begin && other.end <= loop.end && other.end - other.begin < loop.end - loop.begin;
    });
    const std::pair<double, double> score = {productsIn(counted, loop), ranIn(counted, loop)};
    if (isInnermost && score.second > 0 && (!best || score > most)) {
      best = loop;
      most = score;
    }
  }
  return best;
}

/// Iterations of the loop by all warps: executions of its most frequent step.
static double roundsOf(const Counted &counted, Loop loop) {
  int64_t most = 0;
  for (size_t step = loop.begin; step < loop.end; ++step)
    most = std::max(most, counted.at(step).instructions);
  return static_cast<double>(most);
}

/// Adds the registers of an operand: itself, the base of an address, or elements.
static void addRegisters(const ptx::Function &function, const ptx::Operand &operand, std::set<int> &registers) {
  using Kind = ptx::Operand::Kind;
  if (operand.kind == Kind::reg || (operand.kind == Kind::address && operand.base == Kind::reg))
    registers.insert(operand.index);
  if (operand.kind == Kind::vector || operand.kind == Kind::list || operand.kind == Kind::pair)
    for (const ptx::Operand &element : function.elementsOf(operand))
      addRegisters(function, element, registers);
}

/// Bytes of loads to registers before the main loop whose results are not used before its end. They arrive while it
/// runs. Moves only copy results.
static double bytesAhead(const Counted &counted, Loop loop) {
  std::map<int, std::set<size_t>> held; // by register: the loads whose results it has
  std::set<size_t> unused;
  for (size_t step = 0; step < loop.end; ++step) {
    if (!counted.isInstruction(step))
      continue;
    const Reader reader = counted.reader(step);
    const auto operands = reader.function.operandsOf(reader.instruction);
    const bool hasResult = !reader.isOne({"st", "red", "cp", "bra", "wgmma"}) && !operands.empty();
    std::set<int> read, written;
    std::set<size_t> loads;
    for (const ptx::Operand &operand : operands.subspan(hasResult ? 1 : 0))
      addRegisters(reader.function, operand, read);
    for (const int each : read)
      if (const auto at = held.find(each); at != held.end())
        loads.insert(at->second.begin(), at->second.end());
    if (!reader.isOne({"mov"})) {
      for (const size_t load : loads)
        unused.erase(load);
      for (const int each : read)
        held.erase(each);
      loads.clear();
    }
    if (step < loop.begin && classOf(reader) == Class::ldg)
      loads = {*unused.insert(step).first};
    if (!loads.empty())
      addRegisters(reader.function, operands[0], written);
    for (const int each : written)
      held[each].insert(loads.begin(), loads.end());
  }
  double bytes = 0;
  for (const size_t step : unused)
    bytes += 32 * static_cast<double>(counted.at(step).sectors);
  return bytes;
}

// --- Running -------------------------------------------------------------------------------------------------------

/// Coordinates distributed over a grid: along each axis the middles of equal parts.
static std::vector<Extents> spread(const kiln::Grid &grid, int count) {
  const int64_t all = grid[0] * grid[1] * grid[2], programs = std::min<int64_t>(all, count);
  std::vector<Extents> places;
  for (int64_t i = 0; i < programs; ++i) {
    Extents at;
    for (size_t axis = 0; axis < 3; ++axis)
      at[axis] = static_cast<int>(all <= count ? i /
                                                     (axis == 0   ? 1
                                                      : axis == 1 ? grid[0]
                                                                  : grid[0] * grid[1]) %
                                                     grid[axis]
                                               : (2 * i + 1) * grid[axis] / (2 * programs));
    places.push_back(at);
  }
  return places;
}

/// Programs of several problems with repeating grids: at multiples of the golden ratio, which are uniformly distributed
/// over the grid.
static std::vector<Extents> spreadOverProblems(int64_t all, int count) {
  constexpr double section = 0.6180339887;
  std::vector<Extents> places;
  for (int64_t i = 1; i <= std::min<int64_t>(all, count); ++i) {
    const double at = section * static_cast<double>(i);
    places.push_back({static_cast<int>((at - std::floor(at)) * static_cast<double>(all)), 0, 0});
  }
  return places;
}

/// Whether the grid has one program for each SM, as that of persistent programs. Then the longest one determines the
/// time.
static bool hasProgramForEachSm(const Target &target, int64_t programs) {
  return target.visit([](const CpuFacts &) { return false; }, [&](const GpuFacts &gpu) { return programs == gpu.sms; });
}

static uint32_t dynamicShared(const ptx::Module &module, const std::string &kernel) {
  for (const ptx::Variable &variable : module.variables)
    if (variable.name == kernel + abi::sharedSuffix && !variable.values.empty())
      return static_cast<uint32_t>(variable.values[0].bits);
  return 0;
}

Sample takeSample(const Signature &signature, const Program &program, const Metrics &metrics, int64_t sharedBytes,
                  double programs) {
  Sample sample;
  for (const Signature::Parameter &parameter : signature.parameters)
    sample.reads.push_back(parameter.read);
  sample.threads = program.block[0] * program.block[1] * program.block[2];
  sample.sharedBytes = sharedBytes;
  const Code &code = program.codes[0];
  const ptx::Module &module = *program.module;
  const Counted counted{code, module.functions[static_cast<size_t>(module.find(code.name))], metrics,
                        static_cast<double>(cdiv(sample.threads, 32)), programs};
  const Loop whole{0, code.steps.size()};
  addSteps(counted, whole, counted.programs, sample.program, sample.ofProgram);
  for (size_t step = 0; step < code.steps.size(); ++step)
    sample.outside += counted.isInstruction(step);
  if (const std::optional<Loop> loop = mainLoop(counted)) {
    const double rounds = roundsOf(counted, *loop);
    addSteps(counted, *loop, rounds / counted.warps, sample.round, sample.ofRound);
    sample.rounds = rounds / counted.warps / counted.programs;
    for (size_t step = loop->begin; step < loop->end; ++step)
      sample.insideLoop += counted.isInstruction(step);
    sample.outside -= sample.insideLoop;
    sample.bytesAhead = bytesAhead(counted, *loop) / counted.programs;
  }
  return sample;
}

Sample takeSample(Device &device, const Launch &launch, const std::string &ptx, Memory &memory, void *workspace,
                  int programs) {
  const auto module = std::make_shared<const ptx::Module>(ptx::parse(ptx));
  const auto program = buildProgram(module, launch.kernel->name, memory);
  const auto executable = compile(device, launch, workspace);
  const ArgumentBlock block = pack(*executable, launch, workspace);
  const Extents grid = {static_cast<int>(block[0]), static_cast<int>(block[1]), static_cast<int>(block[2])};
  const std::vector<Extents> places = launch.others.empty()
                                          ? spread(launch.grid, programs)
                                          : spreadOverProblems(kiln::programsOf(block.data()), programs);
  const uint32_t dynamic = dynamicShared(*module, launch.kernel->name);
  const auto run = [&](const std::vector<Extents> &only) {
    Metrics metrics(*program);
    Findings findings;
    simulator::launch(*program, grid, program->block, dynamic, reinterpret_cast<const char *>(block.data()), memory,
                      findings, {.checks = Checks::named("-all,bounds"), .threads = device.threads(), .only = only},
                      &metrics);
    if (!findings.empty())
      throw Error(fmt::format("kernel '{}' ({}): {}", launch.kernel->name, launch.config, findings.list().front().text),
                  Fault::internal);
    return takeSample(executable->signature(), *program, metrics, int64_t{program->sharedBytes} + dynamic,
                      static_cast<double>(only.size()));
  };
  Sample sample;
  if (hasProgramForEachSm(device.target(), kiln::programsOf(block.data()))) {
    for (const Extents &place : places)
      if (Sample one = run({place}); one.program.counts.total() > sample.program.counts.total())
        sample = std::move(one);
  } else {
    sample = run(places);
  }
  for (const PlacedVariable &variable : program->variables)
    memory.release(variable.place);
  return sample;
}

// --- The work of a launch: its counts as the input of the pipe model -------------------------------------------------

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
  const auto of = [](const kiln::Grid &grid) { return static_cast<double>(grid[0] * grid[1] * grid[2]); };
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
