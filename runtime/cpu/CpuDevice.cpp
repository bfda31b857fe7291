// The CPU as a device. The threads of a launch take the programs of its grid in turn; each thread has an arena of
// scratch memory that grows to what the kernels it runs ask for. Which thread runs a program decides nothing but time.

#include "runtime/cpu/CpuDevice.h"

#include "lowering/Abi.h"
#include "lowering/Pipelines.h"
#include "runtime/Arguments.h"
#include "runtime/Executable.h"
#include "runtime/cpu/CheckSink.h"
#include "runtime/cpu/Memory.h"
#include "runtime/cpu/ObjectLoader.h"
#include "runtime/cpu/ThreadTeam.h"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <thread>

namespace kiln {

/// Alignment of memory on every device.
static constexpr int64_t tensorAlignment = 256;

namespace {

class CpuExecutable : public Executable {
public:
  CpuExecutable(std::string name, Signature parameters, std::shared_ptr<const LoadedObject> object)
      : object(std::move(object)), name(std::move(name)), parameters(std::move(parameters)) {}
  const std::string &kernel() const override { return name; }
  const Signature &signature() const override { return parameters; }
  const std::shared_ptr<const LoadedObject> object;

private:
  const std::string name;
  const Signature parameters;
};

/// Scratch memory of one thread; what a kernel left there means nothing to the next.
class Arena {
public:
  ~Arena() { std::free(memory); }
  /// At least `bytes`, aligned as kernels expect; null when the machine has no more.
  void *reserve(int64_t bytes) {
    if (bytes > size) {
      std::free(memory);
      memory = allocateMemory(bytes, abi::scratchAlignment);
      size = memory ? bytes : 0;
    }
    return memory;
  }

private:
  void *memory = nullptr;
  int64_t size = 0;
};

class CpuDevice : public Device {
public:
  CpuDevice(std::string name, lowering::CpuTarget cpu, lowering::CpuOptions options);

  const std::string &name() const override { return deviceName; }
  const Target &target() const override { return facts; }

  void *allocate(int64_t bytes) override;
  void release(void *memory) override { std::free(memory); }
  void copy(void *to, const void *from, int64_t bytes) override { std::memmove(to, from, bytes); }
  void fillZero(void *memory, int64_t bytes) override { std::memset(memory, 0, bytes); }

  std::vector<char> compile(mlir::ModuleOp module, const StageSink &sink) const override {
    return lowering::compileToObject(module, cpu, options, sink);
  }
  const std::string &codeKey() const override { return key; }
  std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                         const std::vector<char> &object) override {
    return std::make_shared<CpuExecutable>(kernel, std::move(signature), loader->load(kernel, object));
  }

  void launch(const Executable &executable, Grid grid, const std::vector<Arg> &args, void *workspace) override;
  void synchronize() override {
    if (const auto failure = checks.take())
      throw Error(*failure);
  }

  int threads() const override { return facts.sms; }
  void setThreads(int threads) override;

private:
  const std::string deviceName;
  const lowering::CpuTarget cpu;
  const lowering::CpuOptions options;
  std::string key;
  Target facts;
  CheckSink checks;
  std::shared_ptr<ObjectLoader> loader = std::make_shared<ObjectLoader>();
};

} // namespace

static int coresOfProcess() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0
             ? CPU_COUNT(&cores)
             : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

/// More threads than any machine has are a slip of the hand: to make them takes minutes.
static constexpr int mostThreads = 4096;

/// KILN_THREADS, else the cores this process may use.
static int threadsAsked() {
  const char *text = std::getenv("KILN_THREADS");
  if (!text || !*text)
    return coresOfProcess();
  int threads = 0;
  const char *end = text + std::strlen(text);
  const auto [stop, failure] = std::from_chars(text, end, threads);
  if (failure != std::errc() || stop != end || threads < 1 || threads > mostThreads)
    throw Error(
        fmt::format("expected KILN_THREADS to be a number of threads from 1 to {}, but got '{}'", mostThreads, text));
  return threads;
}

CpuDevice::CpuDevice(std::string name, lowering::CpuTarget target, lowering::CpuOptions options)
    : deviceName(std::move(name)), cpu(std::move(target)), options(options) {
  key = fmt::format("{};{};{};{};{}", options.generic ? "generic" : "fast", cpu.cpu, cpu.features, cpu.vectorBits,
                    cpu.registers);
  key += fmt::format(";{};{};{}", cpu.l1Bytes, cpu.l2Bytes, cpu.bf16Convert);
  facts.name = cpu.cpu;
  facts.vectorBits = cpu.vectorBits;
  facts.registers = cpu.registers;
  facts.sharedBytes = cpu.l2Bytes;
  facts.l1Bytes = cpu.l1Bytes;
  facts.sms = threadsAsked();
}

void *CpuDevice::allocate(int64_t bytes) {
  void *const memory = allocateMemory(bytes, tensorAlignment);
  if (!memory)
    throw Error(fmt::format("expected {} bytes of memory on device '{}', but it has not so much", bytes, deviceName),
                Fault::device);
  return memory;
}

void CpuDevice::setThreads(int threads) {
  if (threads < 1 || threads > mostThreads)
    throw Error(fmt::format("expected a number of threads from 1 to {}, but got {}", mostThreads, threads));
  facts.sms = threads;
}

/// Programs that a thread takes at a time: one, unless there are so many that fetching the next would cost.
static int64_t chunkOf(int64_t programs, int64_t threads) { return std::max<int64_t>(1, programs / (threads * 64)); }

void CpuDevice::launch(const Executable &executable, Grid grid, const std::vector<Arg> &args, void *workspace) {
  const auto &kernel = static_cast<const CpuExecutable &>(executable);
  const ArgumentBlock block = pack(kernel.kernel(), kernel.signature(), grid, args, workspace);
  int64_t programs = 1;
  for (int64_t extent : grid)
    if (extent < 0 || extent > int64_t{1} << abi::gridBits || __builtin_mul_overflow(programs, extent, &programs))
      throw Error(fmt::format("kernel '{}': expected a grid of extents from 0 to 2^{} and less than 2^63 programs, but "
                              "got {}x{}x{}",
                              kernel.kernel(), abi::gridBits, grid[0], grid[1], grid[2]));
  if (programs == 0)
    return;
  checks.beginLaunch(kernel.kernel(), grid[0], grid[1]);
  const abi::CpuKernel function = kernel.object->function;
  const int64_t scratchBytes = kernel.object->scratchBytes;
  const int64_t team = std::min<int64_t>(facts.sms, programs), chunk = chunkOf(programs, team);
  std::atomic<int64_t> next = 0;
  std::atomic<bool> outOfMemory = false;
  ThreadTeam::ofProcess().run(static_cast<int>(team), [&] {
    static thread_local Arena arena;
    const CheckSink::Scope scope(checks);
    void *const scratch = arena.reserve(scratchBytes);
    if (scratchBytes > 0 && !scratch)
      outOfMemory = true;
    for (int64_t begin; !outOfMemory && (begin = next.fetch_add(chunk, std::memory_order_relaxed)) < programs;)
      for (int64_t program = begin, end = std::min(begin + chunk, programs); program < end; ++program)
        function(block.data(), program, scratch);
  });
  if (outOfMemory)
    throw Error(fmt::format("kernel '{}': expected {} bytes of scratch memory for each of {} threads, but device '{}' "
                            "has not so much",
                            kernel.kernel(), scratchBytes, team, deviceName),
                Fault::device);
}

std::shared_ptr<Device> openCpu(const std::string &name) {
  if (name == "cpu" || name == "cpu:generic")
    return std::make_shared<CpuDevice>(name, lowering::hostCpu(), lowering::CpuOptions{.generic = name != "cpu"});
  if (name != "cpu:x86-64-v3" && name != "cpu:x86-64-v4")
    return nullptr;
  const lowering::CpuTarget target = lowering::cpuNamed(name.substr(4)), host = lowering::hostCpu();
  if (target.vectorBits > host.vectorBits)
    throw Error(fmt::format("device '{}': expected a processor with vectors of {} bits, but '{}' has {}", name,
                            target.vectorBits, host.cpu, host.vectorBits),
                Fault::device);
  return std::make_shared<CpuDevice>(name, target, lowering::CpuOptions{});
}

} // namespace kiln
