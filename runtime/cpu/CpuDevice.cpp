// The CPU as a device. Threads take the programs of a launch's grid in turn. Each thread has scratch memory that grows
// as its kernels require. Results do not depend on which thread runs a program.

#include "runtime/cpu/CpuDevice.h"

#include "lowering/Abi.h"
#include "lowering/Backend.h"
#include "lowering/cpu/CpuTarget.h"
#include "runtime/Arguments.h"
#include "runtime/AvailableMemory.h"
#include "runtime/Console.h"
#include "runtime/Device.h"
#include "runtime/Streams.h"
#include "runtime/Threads.h"
#include "runtime/cpu/ObjectLoader.h"
#include "runtime/cpu/ThreadTeam.h"
#include "runtime/cpu/WaitWatch.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <string>
#include <sys/mman.h>

namespace kiln {

// --- Failed checks --------------------------------------------------------------------------------------------------

namespace {
/// Keeps the first failure in the order of launches and, within a launch, of programs: the first one with a single
/// thread.
class CheckSink {
public:
  /// Begins a launch of `kernel`.
  void beginLaunch(const std::string &name, int64_t x, int64_t y) {
    const std::lock_guard lock(mutex);
    kernel = name;
    gridX = x;
    gridY = y;
    ++launch;
  }
  void fail(const char *message, const char *where, int64_t program, int64_t element) {
    const std::lock_guard lock(mutex);
    // Within a program, the first call is the first failure.
    if (first && (first->launch < launch || first->program <= program))
      return;
    first = Failure{failedCheckText(message, where, kernel, {gridX, gridY, 1}, program, element), launch, program};
  }
  /// The text of the first failure since the last call, or nothing.
  std::optional<std::string> take() {
    const std::lock_guard lock(mutex);
    const std::optional<Failure> failure = std::exchange(first, {});
    return failure ? std::optional(failure->text) : std::nullopt;
  }

  /// Makes this the sink of the calling thread's programs, until the object dies.
  struct Scope {
    explicit Scope(CheckSink &sink) { mine = &sink; }
    ~Scope() { mine = nullptr; }
  };
  static thread_local CheckSink *mine;

private:
  struct Failure {
    std::string text;
    int64_t launch = 0, program = 0;
  };
  std::mutex mutex;
  std::optional<Failure> first;
  std::string kernel;
  int64_t launch = 0, gridX = 1, gridY = 1;
};
thread_local CheckSink *CheckSink::mine = nullptr;
} // namespace

// --- Memory ---------------------------------------------------------------------------------------------------------

static constexpr int64_t largePage = int64_t(2) << 20;

/// At least `bytes` of memory aligned to `alignment`, a power of two, to be released with std::free. Null if there is
/// not enough memory, or if `bytes` is negative; never null for 0 bytes. Large blocks use pages of 2 MB if the system
/// has them. A tile of a matrix with long rows accesses a different 4 KB page in every row, which are more pages than
/// the TLB has entries. Large pages are requested for the part that fills whole large pages; the rest uses small pages,
/// so that a block never takes more memory than requested.
static void *allocateMemory(int64_t bytes, int64_t alignment) {
  const int64_t boundary = bytes >= largePage ? std::max(largePage, alignment) : alignment;
  if (bytes < 0 || !isMemoryFor(bytes))
    return nullptr;
  void *memory = nullptr;
  if (posix_memalign(&memory, boundary, std::max<int64_t>(1, bytes)) != 0)
    return nullptr;
  if (bytes >= largePage)
    madvise(memory, bytes / largePage * largePage, MADV_HUGEPAGE); // advice only
  return memory;
}

// --- The device -----------------------------------------------------------------------------------------------------

/// Alignment of memory on every device.
static constexpr int64_t tensorAlignment = 256;

namespace {

class CpuExecutable : public Executable {
public:
  CpuExecutable(std::string device, std::string kernel, Signature signature, std::shared_ptr<const LoadedObject> object)
      : Executable(std::move(device), std::move(kernel), std::move(signature)), object(std::move(object)) {}
  int64_t scratchBytes() const override { return object->scratchBytes; }
  const std::shared_ptr<const LoadedObject> object;
};

/// Scratch memory of the calling thread, at least `bytes`, aligned as kernels expect; null if out of memory. Its
/// content is undefined for the next kernel. It is freed with the thread, without a destructor, because registering one
/// takes memory, and the C library aborts if there is none.
void *reserveScratch(int64_t bytes) {
  struct Scratch {
    void *memory = nullptr;
    int64_t size = 0;
  };
  static thread_local Scratch mine;
  static pthread_key_t key;
  static const bool hasKey = pthread_key_create(&key, std::free) == 0;
  if (bytes <= mine.size)
    return mine.memory;
  std::free(mine.memory);
  mine.memory = allocateMemory(bytes, abi::scratchAlignment);
  if (hasKey && pthread_setspecific(key, mine.memory) != 0) {
    std::free(mine.memory);
    mine.memory = nullptr;
  }
  mine.size = mine.memory ? bytes : 0;
  return mine.memory;
}

class CpuDevice : public Device {
public:
  CpuDevice(const std::string &name, const lowering::cpu::CpuTarget &cpu);

  const std::string &name() const override { return deviceName; }
  const Target &target() const override { return machine; }

  void *allocate(int64_t bytes) override;
  void release(void *memory) override { std::free(memory); }
  void upload(void *to, const void *from, int64_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void *to, const void *from, int64_t bytes) override { std::memcpy(to, from, bytes); }
  void copy(void *to, const void *from, int64_t bytes) override { std::memmove(to, from, bytes); }
  void fillZero(void *memory, int64_t bytes) override { std::memset(memory, 0, bytes); }

  const lowering::Backend &backend() const override { return *compiler; }
  std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                         const std::vector<char> &object) override {
    return std::make_shared<CpuExecutable>(deviceName, kernel, std::move(signature), loader->load(kernel, object));
  }

  using Device::launch;
  void launch(const Executable &executable, const uint64_t *block) override;
  void synchronize() override {
    if (const auto failure = checks.take())
      throw Error(*failure);
  }

  int threads() const override { return facts().cores; }
  void setThreads(int threads) override;

private:
  const std::string deviceName;
  const std::shared_ptr<const lowering::Backend> compiler;
  Target machine;
  CpuFacts &facts() { return std::get<CpuFacts>(machine.facts); }
  const CpuFacts &facts() const { return std::get<CpuFacts>(machine.facts); }
  CheckSink checks;
  std::shared_ptr<ObjectLoader> loader = std::make_shared<ObjectLoader>();
};

} // namespace

CpuDevice::CpuDevice(const std::string &name, const lowering::cpu::CpuTarget &cpu)
    : deviceName(name), compiler(lowering::openBackend(name)),
      machine{cpu.cpu, CpuFacts{cpu.vectorBits, cpu.registers, cpu.tiles, cpu.l1Bytes, cpu.l2Bytes, threadsAsked()}} {}

void *CpuDevice::allocate(int64_t bytes) {
  void *const memory = allocateMemory(bytes, tensorAlignment);
  if (!memory)
    throw Error(fmt::format("out of memory: could not allocate {} bytes on device '{}'", bytes, deviceName),
                Fault::device);
  return memory;
}

void CpuDevice::setThreads(int threads) {
  checkThreads(threads);
  facts().cores = threads;
}

/// Programs that a thread takes at a time: one, or more in large grids, so that the shared counter is not a bottleneck.
static int64_t chunkOf(int64_t programs, int64_t threads) { return std::max<int64_t>(1, programs / (threads * 64)); }

void CpuDevice::launch(const Executable &executable, const uint64_t *block) {
  const auto &kernel = static_cast<const CpuExecutable &>(executable);
  const int64_t programs = programsOf(block);
  if (programs == 0)
    return;
  checks.beginLaunch(kernel.kernel(), static_cast<int64_t>(block[0]), static_cast<int64_t>(block[1]));
  const abi::CpuKernel function = kernel.object->function;
  const int64_t scratchBytes = kernel.object->scratchBytes;
  const int64_t team = std::min<int64_t>(facts().cores, programs), chunk = chunkOf(programs, team);
  std::atomic<int64_t> next = 0;
  std::atomic<bool> outOfMemory = false;
  WaitWatch watch(static_cast<int>(team));
  ThreadTeam::ofProcess().run(static_cast<int>(team), [&] {
    const CheckSink::Scope scope(checks);
    const WaitWatch::Scope present(watch);
    void *const scratch = reserveScratch(scratchBytes);
    if (scratchBytes > 0 && !scratch)
      outOfMemory = true;
    for (int64_t begin;
         !outOfMemory && !watch.hasGivenUp() && (begin = next.fetch_add(chunk, std::memory_order_relaxed)) < programs;)
      for (int64_t program = begin, end = std::min(begin + chunk, programs); program < end; ++program)
        function(block, program, scratch);
  });
  if (outOfMemory)
    throw Error(fmt::format("kernel '{}': out of memory: could not allocate {} bytes of scratch memory for each of {} "
                            "threads on device '{}'",
                            kernel.kernel(), scratchBytes, team, deviceName),
                Fault::device);
  if (const std::optional<WaitWatch::Stuck> stuck = watch.stuck()) {
    checks.take(); // programs that ended early
    throw Error(
        fmt::format("kernel '{}' at {}: program {} waits forever: device '{}' runs {} programs at a time, all of "
                    "them wait, and the others have ended or cannot begin; a lock was not released, or a program "
                    "waits for one with a higher number",
                    kernel.kernel(), stuck->where, stuck->program, deviceName, stuck->threads));
  }
}

std::vector<std::string> cpuDevices() { return {"cpu", "cpu:generic", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:amx"}; }

std::shared_ptr<Device> openCpu(const std::string &name) {
  if (name == "cpu" || name == "cpu:generic" || name == "cpu:amx")
    return std::make_shared<CpuDevice>(name, lowering::cpu::hostCpu());
  if (name != "cpu:x86-64-v3" && name != "cpu:x86-64-v4")
    return nullptr;
  const lowering::cpu::CpuTarget target = lowering::cpu::cpuNamed(name.substr(4)), host = lowering::cpu::hostCpu();
  if (target.vectorBits > host.vectorBits)
    throw Error(fmt::format("device '{}': expected a processor with vectors of {} bits, but '{}' has {}", name,
                            target.vectorBits, host.cpu, host.vectorBits),
                Fault::device);
  return std::make_shared<CpuDevice>(name, target);
}

} // namespace kiln

void kiln_check_failed(const char *message, const char *where, int64_t program, int64_t element) {
  if (kiln::CheckSink *const sink = kiln::CheckSink::mine)
    sink->fail(message, where, program, element);
}

void kiln_print(const char *label, int64_t program, int32_t type, int64_t rank, const int64_t *extents,
                const void *data) {
  kiln::show(kiln::printedLine(label, program, static_cast<kiln::Type>(type), {extents, extents + rank},
                               static_cast<const char *>(data)));
}
