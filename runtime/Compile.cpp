// Compiles a kernel for its arguments.
//
//   1. The memory cache's key consists of the arguments' facts and the extents that the kernel is known to read.
//   2. On a miss, trace the kernel. Its module, the backend's key and the compiler's identity are the key of the disk
//      cache. On a hit, load the object.
//   3. On a miss, lower the module to an object, store it and load it.
//
// A kernel of an image (KernelImage.h) has its code with it: it is neither traced nor looked up on disk.

#include "runtime/Compile.h"

#include "dialect/dsl/Trace.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/Crashes.h"
#include "lowering/Diagnostics.h"
#include "lowering/Driver.h"
#include "runtime/Cache.h"
#include "runtime/Compilation.h"
#include "runtime/CompiledSignature.h"
#include "runtime/KernelImage.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "llvm-c/Core.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>

namespace kiln {

/// A traced kernel, with the context of its module.
struct TracedKernel {
  std::unique_ptr<ContextPool::Context> context;
  Traced traced;
};

namespace {
/// The total time during which at least one thread was compiling.
class BusyClock {
  using Clock = std::chrono::steady_clock;

public:
  /// Measures during its lifetime.
  class Scope {
  public:
    explicit Scope(BusyClock &clock) : clock(clock) {
      const std::lock_guard lock(clock.mutex);
      if (clock.busy++ == 0)
        clock.begin = Clock::now();
    }
    ~Scope() {
      const std::lock_guard lock(clock.mutex);
      if (--clock.busy == 0)
        clock.total += Clock::now() - clock.begin;
    }

  private:
    BusyClock &clock;
  };

  double milliseconds() {
    const std::lock_guard lock(mutex);
    return std::chrono::duration<double, std::milli>(busy ? total + (Clock::now() - begin) : total).count();
  }

private:
  std::mutex mutex;
  int busy = 0; // threads that are compiling
  Clock::time_point begin;
  Clock::duration total{};
};

/// The process's compilation state, never destroyed. Its construction cannot fail, because it may first happen while an
/// exception is in flight.
struct Compiler {
  MemoryCache memory;
  ContextPool contexts;
  std::atomic<bool> frozen = false;
  std::atomic<int64_t> compiled = 0, fromDisk = 0, fromMemory = 0;
  BusyClock clock;
};
} // namespace

static Compiler &compiler() noexcept {
  static Compiler theCompiler;
  return theCompiler;
}

/// Throws Error for invalid environment variables.
static DiskCache &diskCache() {
  static DiskCache theCache = DiskCache::fromEnvironment();
  return theCache;
}

// --- Arguments ------------------------------------------------------------------------------------------------------

/// All arguments, as `f32[64x32], i64 scalar`.
static std::string textOf(const std::vector<Arg> &args) {
  std::string text;
  for (const Arg &arg : args)
    text += (text.empty() ? "" : ", ") + textOf(arg);
  return text;
}

/// The equalityBits() that all problems have.
static FactWords equalityBits(const Request &request) {
  FactWords bits = equalityBits(request.kernel, request.args);
  for (const Launch::Problem &other : request.others)
    for (auto [common, word] : llvm::zip_equal(bits, equalityBits(request.kernel, other.args)))
      common &= word;
  return bits;
}

/// The facts common to all problems, and their number if there are several.
static FactWords factsOf(const Request &request) {
  const lowering::FactKinds kinds = request.device.backend().facts();
  FactWords facts = factsOf(request.args, request.workspace, kinds);
  const FactWords equal = equalityBits(request);
  if (request.others.empty()) {
    facts.append(equal);
    return facts;
  }
  for (const Launch::Problem &other : request.others)
    facts = commonFacts(facts, factsOf(other.args, request.workspace, kinds), request.args.size());
  facts.append(equal);
  facts.push_back(1 + request.others.size());
  return facts;
}

/// Throws Error unless the arguments are valid for the kernel, in all problems.
static void checkArguments(const Request &request) {
  checkArguments(request.kernel, request.args, request.workspace);
  for (const Launch::Problem &other : request.others)
    checkArguments(request.kernel, other.args, request.workspace);
}

static Specialisation specialise(const Request &request, const FactWords &words) {
  const lowering::FactKinds kinds = request.device.backend().facts();
  const std::vector<Arg> &args = request.args;
  Specialisation facts{.warps = kinds.warps, .stages = kinds.stages};
  facts.problems = 1 + static_cast<int>(request.others.size());
  facts.checksAssumptions = kinds.checksAssumptions;
  for (size_t i = 0; i < args.size(); ++i) {
    const Fact fact = Fact::decode(words[i]);
    facts.args.push_back({fact.isView, fact.type, args[i].ref.extents, fact.innerStride, fact.alignment,
                          fact.stridesBy16, fact.extentBy16, fact.fits32});
  }
  for (const std::pair<int, int> &pair : disjointPairs(words, args.size()))
    facts.disjoint.insert(pair);
  facts.equalExtents = equalExtents(request.kernel, equalityBits(request));
  return facts;
}

// --- Tracing and lowering -------------------------------------------------------------------------------------------

/// Lines about the views whose rank is not that of the shape in their registration, `(N, C)`.
static std::string hintForRanks(const Kernel &kernel, const Specialisation &facts) {
  std::string hint;
  for (size_t i = 0; i < facts.args.size() && kernel.batches.empty(); ++i) {
    const std::string &about = kernel.parameters[i].about;
    const size_t end = about.find(')');
    if (!facts.args[i].isView || !about.starts_with("(") || end == std::string::npos)
      continue;
    const Shape &extents = facts.args[i].extents;
    if (std::count(about.begin(), about.begin() + static_cast<ptrdiff_t>(end), ',') + 1 != std::ssize(extents))
      hint += fmt::format("\nhint: {} is {}[{}], but the kernel declares it as {}", kernel.called(i),
                          nameOf(facts.args[i].type), textOf(extents), about.substr(0, end + 1));
  }
  return hint;
}

/// A hint for an error in a kernel: a double next to f32 views is usually a mistake.
static std::string hintFor(const Kernel &kernel, const Specialisation &facts) {
  std::string hint;
  for (size_t i = 0; i < facts.args.size(); ++i) {
    if (facts.args[i].type != Type::f64)
      continue;
    if (facts.args[i].isView)
      return "";
    hint = fmt::format(
        "\nhint: {} is an f64 scalar, because the caller passed a double; for f32 pass a float (2.0f in C++)",
        kernel.called(i));
  }
  return hint;
}

/// Address space required before tracing, because MLIR does not check malloc() for null.
static constexpr size_t roomToTrace = size_t{24} << 20;

static std::shared_ptr<TracedKernel> traceKernel(const Kernel &kernel, const Specialisation &facts,
                                                 const std::string &config) {
  if (!lowering::hasRoom(roomToTrace))
    throw std::bad_alloc();
  auto result = std::make_shared<TracedKernel>();
  result->context = compiler().contexts.take();
  const lowering::ErrorCollector errors(&result->context->context);
  result->traced = trace(result->context->context, kernel, facts, config, /*verifies=*/false);
  if (!result->traced.module)
    throw Error(errors.text().substr(0, errors.text().find_last_not_of('\n') + 1) + hintFor(kernel, facts) +
                hintForRanks(kernel, facts));
  return result;
}

/// The text that is hashed: the module, in the form that prints fastest. With `withLines` it has the source lines that
/// become part of the object. Lines of checks and of loops that may wait are always in it.
static std::string textOf(mlir::ModuleOp module, bool withLines) {
  std::string text;
  llvm::raw_string_ostream out(text);
  const auto flags = mlir::OpPrintingFlags().assumeVerified().useLocalScope().printGenericOpForm();
  module.print(out, mlir::OpPrintingFlags(flags).enableDebugInfo(withLines));
  if (!withLines)
    module.walk([&](mlir::Operation *op) {
      if (mlir::isa<tile::CheckOp, mlir::scf::WhileOp>(op))
        out << "// line of " << op->getLoc() << "\n";
    });
  return text;
}

std::string codeKey(mlir::ModuleOp module, const lowering::Backend &backend) {
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  return digestOf(fmt::format("{}\nllvm {}.{}.{}\n{}\n{}", compilerIdentity, major, minor, patch, backend.key(),
                              textOf(module, backend.tellsLines())));
}

/// Throws Error unless MLIR verifies the module. A module whose object is in the cache was verified before.
static void verifyTraced(mlir::ModuleOp module) {
  const lowering::ErrorCollector errors(module.getContext());
  if (mlir::failed(mlir::verify(module)))
    throw Error(errors.text(), Fault::internal);
}

static std::vector<char> objectOf(const Kernel &kernel, mlir::ModuleOp module, const Device &device) {
  Compiler &state = compiler();
  DiskCache &disk = diskCache();
  const std::string key = codeKey(module, device.backend());
  const bool dump = !dumpFolder().empty();
  if (!dump) // a dump of the stages needs a compilation
    if (std::optional<std::vector<char>> object = disk.load(key)) {
      ++state.fromDisk;
      return std::move(*object);
    }
  verifyTraced(module);
  std::vector<char> object =
      lowering::compile(module, device.backend(), dump ? dumpStages(kernel.name, key) : lowering::StageSink());
  ++state.compiled;
  disk.store(key, object);
  return object;
}

// --- The two halves of a compilation --------------------------------------------------------------------------------

static std::shared_ptr<Source> sourceOf(const Request &request) {
  return compiler().memory.source(request.device.name(), request.kernel, request.config);
}

PendingExecutable findCompiled(const Request &request) {
  checkArguments(request);
  const PendingExecutable found = sourceOf(request)->find(factsOf(request), request.args);
  compiler().fromMemory += found != nullptr;
  return found;
}

Begun beginCompiling(const Request &request) {
  Compiler &state = compiler();
  const auto &[device, kernel, args, config, workspace, others] = request;
  checkArguments(request);
  Begun begun{{}, sourceOf(request), {}};
  const FactWords facts = factsOf(request);
  if ((begun.executable = begun.source->find(facts, args))) {
    ++state.fromMemory;
    return begun;
  }
  if (state.frozen && (begun.executable = begun.source->findGeneral(kernel, facts, args))) {
    ++state.fromMemory;
    return begun;
  }
  if (state.frozen && !isLoaded(kernel))
    throw Error(
        fmt::format("kernel '{}' requires compilation, which freeze() forbids; new arguments: {} with config '{}'",
                    kernel.name, textOf(args), config));
  const BusyClock::Scope timed(state.clock);
  const std::lock_guard lock(begun.source->tracing);
  if ((begun.executable = begun.source->find(facts, args))) { // another thread entered it meanwhile
    ++state.fromMemory;
    return begun;
  }
  begun.executable = std::make_shared<Pending>();
  if (isLoaded(kernel) && others.empty()) {
    FoundImage found = findImage(device, kernel, config, args, workspace);
    begun.executable->promise.set_value(std::move(found.executable));
    begun.source->add(kernel, facts, args, found.uses, begun.executable);
    ++state.fromDisk;
    return begun;
  }
  begun.traced = traceKernel(kernel, specialise(request, facts), config);
  const Traced &traced = begun.traced->traced;
  begun.source->add(kernel, facts, args, {traced.staticExtents, traced.used, traced.written}, begun.executable);
  return begun;
}

bool finishCompiling(const Request &request, Begun &begun) {
  const BusyClock::Scope timed(compiler().clock);
  try {
    TracedKernel &traced = *begun.traced;
    const Specialisation facts = specialise(request, factsOf(request));
    const Signature signature = signatureOf(request.kernel, facts, traced.traced);
    const std::vector<char> object = objectOf(request.kernel, *traced.traced.module, request.device);
    traced.traced.module = {};
    compiler().contexts.give(std::move(traced.context));
    begun.executable->promise.set_value(request.device.load(request.kernel.name, signature, object));
    return true;
  } catch (...) {
    begun.source->remove(begun.executable); // so that a later request tries again
    begun.executable->promise.set_exception(std::current_exception());
    return false;
  }
}

// --- The public functions -------------------------------------------------------------------------------------------

static std::shared_ptr<const Executable> compiled(const Request &request) {
  Begun begun = beginCompiling(request);
  if (begun.traced)
    finishCompiling(request, begun);
  return begun.executable->executable.get();
}

std::shared_ptr<const Executable> compile(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                                          const std::string &config, void *workspace) {
  if (kernel.isVariadic()) {
    const Expanded form = expanded(kernel, args);
    return compile(device, *form.kernel, form.args, config, workspace);
  }
  return compiled({device, kernel, args, config, workspace});
}

std::shared_ptr<const Executable> compile(Device &device, const Launch &given, void *workspace) {
  const Launch launch = expanded(given);
  return compiled({device, *launch.kernel, launch.args, launch.config, workspace, launch.others});
}

std::string codeKeyOf(Device &device, const Launch &given) {
  const Launch launch = expanded(given);
  const Request request{device, *launch.kernel, launch.args, launch.config, nullptr, launch.others};
  checkArguments(request);
  const BusyClock::Scope timed(compiler().clock);
  const auto traced = traceKernel(*launch.kernel, specialise(request, factsOf(request)), launch.config);
  std::string key = codeKey(*traced->traced.module, device.backend());
  traced->traced.module = {};
  compiler().contexts.give(std::move(traced->context));
  return key;
}

std::vector<char> codeOf(Device &device, const Launch &given, void *workspace) {
  const Launch launch = expanded(given);
  const Request request{device, *launch.kernel, launch.args, launch.config, workspace, launch.others};
  checkArguments(request);
  const BusyClock::Scope timed(compiler().clock);
  const auto traced = traceKernel(*launch.kernel, specialise(request, factsOf(request)), launch.config);
  return objectOf(*launch.kernel, *traced->traced.module, device);
}

lowering::CompilationRecord recordOf(Device &device, const Launch &given, void *workspace) {
  const Launch launch = expanded(given);
  const Request request{device, *launch.kernel, launch.args, launch.config, workspace, launch.others};
  checkArguments(request);
  const BusyClock::Scope timed(compiler().clock);
  const auto traced = traceKernel(*launch.kernel, specialise(request, factsOf(request)), launch.config);
  verifyTraced(*traced->traced.module);
  return lowering::record(*traced->traced.module, device.backend());
}

CompileStatistics compileStatistics() {
  Compiler &state = compiler();
  return {state.compiled, state.fromDisk, state.fromMemory, state.clock.milliseconds()};
}

bool freeze(bool frozen) { return compiler().frozen.exchange(frozen); }

void forgetCompiled() noexcept { compiler().memory.clear(); }

} // namespace kiln
