// A simulated GPU as a device. All devices of one name share their memory, as they share executables.

#include "runtime/simulator/SimulatorDevice.h"
#include "dialect/dsl/Nearest.h"

#include "lowering/Backend.h"
#include "runtime/Arguments.h"
#include "runtime/Console.h"
#include "runtime/Meters.h"
#include "runtime/Threads.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Launch.h"
#include "runtime/simulator/Report.h"
#include "runtime/simulator/Targets.h"
#include "runtime/simulator/ptx/Parser.h"

#include <algorithm>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace kiln {

using namespace simulator;

static const std::string prefix = "simulator:";

// --- Executables -----------------------------------------------------------------------------------------------------

namespace {

class SimulatorExecutable : public Executable {
public:
  SimulatorExecutable(std::string device, std::string kernel, Signature signature, const Architecture &architecture,
                      const std::vector<char> &text, std::shared_ptr<Memory> memory);
  ~SimulatorExecutable() override {
    for (const PlacedVariable &variable : program->variables)
      memory->release(variable.place);
  }

  Extents block() const { return program->block; }
  /// The memory that programs write failed checks and prints to; null if the kernel has neither.
  abi::GpuConsole *console() const;
  /// A text of the module.
  std::string text(uint32_t number) const;

  const std::shared_ptr<Memory> memory; // contains the program's variables
  std::shared_ptr<const Program> program;
  uint32_t dynamicShared = 0;

private:
  void checkParameters() const;
  void findSharedBytes(const Architecture &architecture);
};

} // namespace

SimulatorExecutable::SimulatorExecutable(std::string device, std::string name, Signature signature,
                                         const Architecture &architecture, const std::vector<char> &text,
                                         std::shared_ptr<Memory> shared)
    : Executable(std::move(device), std::move(name), std::move(signature)), memory(std::move(shared)) {
  const auto module = std::make_shared<const ptx::Module>(
      ptx::parse({text.begin(), std::find(text.begin(), text.end(), '\0')})); // a cubin may follow
  if (!takes(architecture, module->target))
    throw Error(fmt::format("kernel '{}': expected PTX that device '{}' takes, but got some for {}", kernel(),
                            this->device(), module->target));
  program = buildProgram(module, kernel(), *memory, {}, architecture.facts.ctaSharedBytes);
  if (program->block[0] == 0)
    throw Error(fmt::format("kernel '{}': expected .reqntid or .maxntid to say how many threads a program has, but "
                            "there is neither",
                            kernel()));
  checkParameters();
  findSharedBytes(architecture);
}

abi::GpuConsole *SimulatorExecutable::console() const {
  for (const PlacedVariable &variable : program->variables)
    if (variable.name == abi::consoleVariable)
      return static_cast<abi::GpuConsole *>(variable.place);
  return nullptr;
}

std::string SimulatorExecutable::text(uint32_t number) const {
  const std::string name = abi::textPrefix + std::to_string(number);
  std::string text;
  for (const ptx::Variable &variable : program->module->variables)
    if (variable.name == name)
      for (const ptx::Initialiser &value : variable.values)
        if (value.bits)
          text += static_cast<char>(value.bits);
  return text;
}

/// Throws Error unless the kernel has one parameter of 8 bytes for each slot of a launch's argument block.
void SimulatorExecutable::checkParameters() const {
  const size_t slots = signature().words();
  if (program->parameters.size() != slots || program->parameterBytes != slots * sizeof(uint64_t))
    throw Error(fmt::format("kernel '{}': expected {} parameters of 8 bytes, one for each slot of its arguments, but "
                            "got {} of {} bytes together",
                            kernel(), slots, program->parameters.size(), program->parameterBytes));
}

/// Reads the size of a launch's dynamic shared memory, if the PTX states it.
void SimulatorExecutable::findSharedBytes(const Architecture &architecture) {
  const std::string symbol = kernel() + abi::sharedSuffix;
  for (const ptx::Variable &variable : program->module->variables)
    if (variable.name == symbol && !variable.values.empty())
      dynamicShared = static_cast<uint32_t>(std::min<uint64_t>(variable.values[0].bits, 1 << 30));
  if (const int64_t bytes = int64_t{program->staticShared} + dynamicShared; bytes > architecture.facts.ctaSharedBytes)
    throw Error(fmt::format("kernel '{}': expected at most {} bytes of shared memory, which is what device '{}' has "
                            "for a program, but got {}",
                            kernel(), architecture.facts.ctaSharedBytes, device(), bytes));
}

// --- The device ------------------------------------------------------------------------------------------------------

/// The memory of all devices of one name. It exists as long as one of them, or of their executables.
static std::shared_ptr<Memory> memoryOf(const std::string &name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Memory>> all;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Memory> memory = all[name].lock();
  if (!memory)
    all[name] = memory = std::make_shared<Memory>();
  return memory;
}

/// The views in an argument block of a launch (lowering/Abi.h), of all its problems.
static ViewNames viewNamesOf(const Signature &signature, const uint64_t *block) {
  ViewNames names;
  const uint64_t *slots = block + (signature.problems == 1 ? 0 : abi::gridSlots);
  for (int problem = 0; problem < signature.problems; ++problem) {
    slots += abi::gridSlots;
    std::vector<NamedView> views;
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
      const Signature::Parameter &parameter = signature.parameters[i];
      views.push_back({parameter.name.empty() ? fmt::format("argument {}", i) : parameter.name, parameter.type, 0,
                       parameter.extents, parameter.strides});
    }
    for (const abi::Slot &slot : signature.slots) {
      NamedView &view = views[static_cast<size_t>(slot.argument)];
      const auto dimension = static_cast<size_t>(slot.dimension);
      const uint64_t word = *slots++;
      if (slot.kind == abi::Slot::pointer)
        view.data = word;
      else if (slot.kind == abi::Slot::extent)
        view.extents[dimension] = static_cast<int64_t>(word);
      else if (slot.kind == abi::Slot::stride)
        view.strides[dimension] = static_cast<int64_t>(word);
    }
    for (size_t i = 0; i < views.size(); ++i)
      if (signature.parameters[i].isView)
        names.add(std::move(views[i]));
  }
  return names;
}

static Schedule scheduleAsked() {
  const char *const text = std::getenv("KILN_SIM");
  try {
    return Schedule::named(text ? text : "");
  } catch (const Error &error) {
    throw Error(fmt::format("KILN_SIM: {}", error.what()));
  }
}

namespace {

class Simulator : public SimulatorDevice, public Metered {
  /// Virtual time: the cycles in which all schedulers issue a launch's instructions, one warp instruction per cycle
  /// each.
  class IssueClock : public DeviceClock {
  public:
    explicit IssueClock(Simulator &device) : device(device), counted(std::exchange(device.counting, true)) {}
    ~IssueClock() override { device.counting = counted; }
    void mark() override {
      if (marks.empty())
        begin = secondsNow(), first = device.issued;
      const double cycles = static_cast<double>(device.issued - first) /
                            (schedulersOfSm * static_cast<double>(device.architecture.facts.sms));
      marks.push_back(begin + cycles / 1e7);
    }
    std::vector<double> take() override { return std::exchange(marks, {}); }
    const char *what() const override { return "cycles at 10 MHz in which all schedulers issue the instructions"; }
    bool isTime() const override { return false; }

  private:
    static constexpr double schedulersOfSm = 4;
    Simulator &device;
    const bool counted;
    std::vector<double> marks;
    double begin = 0;
    int64_t first = 0;
  };

public:
  Simulator(const std::string &name, const Architecture &architecture)
      : deviceName(name), architecture(architecture), machine{architecture.name, architecture.facts},
        memory(memoryOf(name)) {}

  const std::string &name() const override { return deviceName; }
  const Target &target() const override { return machine; }

  void *allocate(int64_t bytes) override;
  void release(void *place) override;
  void upload(void *to, const void *from, int64_t bytes) override { move(own(to, bytes), from, bytes); }
  void download(void *to, const void *from, int64_t bytes) override { move(to, own(from, bytes), bytes); }
  void copy(void *to, const void *from, int64_t bytes) override { move(own(to, bytes), own(from, bytes), bytes); }
  void fillZero(void *place, int64_t bytes) override { std::memset(own(place, bytes), 0, static_cast<size_t>(bytes)); }

  const lowering::Backend &backend() const override;
  std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                         const std::vector<char> &text) override {
    return std::make_shared<SimulatorExecutable>(deviceName, kernel, std::move(signature), architecture, text, memory);
  }

  using Device::launch;
  void launch(const Executable &executable, const uint64_t *block) override;
  void synchronize() override;

  int threads() const override { return hostThreads; }
  void setThreads(int threads) override {
    checkThreads(threads);
    hostThreads = threads;
  }

  void setSchedule(const std::string &settings) override { schedule = Schedule::named(settings); }
  void setCounting(bool on) override { counting = on; }
  void lend(void *place, int64_t bytes) override { memory->lend(place, bytes); }
  void takeBack(void *place) override { memory->takeBack(place); }
  const LaunchCounts &lastLaunch() const override;
  const LaunchRecord &lastRecord() const override {
    lastLaunch();
    return record;
  }

  std::unique_ptr<DeviceClock> clock() override { return std::make_unique<IssueClock>(*this); }
  std::optional<int64_t> freeBytes() const override { return {}; } // its memory is the host's

private:
  template <class Byte> Byte *own(Byte *place, int64_t bytes) const;
  static void move(void *to, const void *from, int64_t bytes) { std::memmove(to, from, static_cast<size_t>(bytes)); }
  void note(const SimulatorExecutable &kernel, const Findings &findings);
  void readConsole(const SimulatorExecutable &kernel, const kiln::Grid &grid);
  void note(const SimulatorExecutable &kernel, const std::shared_ptr<const Metrics> &metrics, const Findings &findings);

  const std::string deviceName;
  const Architecture &architecture;
  const Target machine;
  const std::shared_ptr<Memory> memory;
  mutable std::once_flag opening;
  mutable std::shared_ptr<const lowering::Backend> compiler;
  Schedule schedule = scheduleAsked();
  int hostThreads = threadsAsked();
  int64_t launches = 0;
  std::optional<std::string> failedCheck; // of the first launch that had one
  std::string faults;                     // of the first launch that had any since the last synchronize()
  int64_t laterFaulty = 0;                // launches with faults after that
  bool counting = false;
  LaunchCounts counts;
  LaunchRecord record;
  int64_t issued = 0; // instructions of warps of all launches that were counted
};

} // namespace

const lowering::Backend &Simulator::backend() const {
  std::call_once(opening, [&] { compiler = lowering::openBackend(std::string(architecture.name) + ":checked"); });
  return *compiler;
}

void *Simulator::allocate(int64_t bytes) {
  void *const place = memory->allocate(bytes);
  std::memset(place, Memory::poison, static_cast<size_t>(bytes));
  return place;
}

void Simulator::release(void *place) {
  if (place && !memory->release(place))
    throw Error(fmt::format("expected memory of device '{}' to release, but {} lies {}", deviceName, place,
                            memory->describe(reinterpret_cast<uint64_t>(place), 1)));
}

/// Returns `place`. Throws Error unless the device owns `bytes` bytes from there on.
template <class Byte> Byte *Simulator::own(Byte *place, int64_t bytes) const {
  const auto address = reinterpret_cast<uint64_t>(place);
  if (bytes > 0 && !memory->find(address).holds(address, static_cast<uint64_t>(bytes)))
    throw Error(fmt::format("expected {} bytes of device '{}' at {:#x}, but they lie {}", bytes, deviceName, address,
                            memory->describe(address, static_cast<uint64_t>(bytes))));
  return place;
}

void Simulator::launch(const Executable &executable, const uint64_t *block) {
  const auto &kernel = static_cast<const SimulatorExecutable &>(executable);
  if (programsOf(block) == 0)
    return;
  checkGpuGrid(kernel, block);
  ++launches;
  Schedule mine = schedule;
  mine.threads = hostThreads;
  Findings findings;
  const auto metrics = counting ? std::make_shared<Metrics>(*kernel.program) : nullptr;
  const Extents grid = {static_cast<int>(block[0]), static_cast<int>(block[1]), static_cast<int>(block[2])};
  if (abi::GpuConsole *const console = kernel.console())
    console->launch = static_cast<uint64_t>(launches);
  const ViewNames views = viewNamesOf(kernel.signature(), block);
  simulator::launch(*kernel.program, grid, kernel.block(), kernel.dynamicShared, reinterpret_cast<const char *>(block),
                    *memory, findings, mine, metrics.get(), nullptr, &views);
  if (!findings.empty())
    note(kernel, findings);
  readConsole(kernel, {static_cast<int64_t>(block[0]), static_cast<int64_t>(block[1]), static_cast<int64_t>(block[2])});
  if (metrics)
    note(kernel, metrics, findings);
}

/// Prints the lines of a launch, and keeps the first failed check of all launches.
void Simulator::readConsole(const SimulatorExecutable &kernel, const kiln::Grid &grid) {
  abi::GpuConsole *const console = kernel.console();
  if (!console || (console->printed == 0 && console->failedLaunch == 0))
    return;
  const auto failed = kiln::readConsole(
      *console, kernel.kernel(), [&](uint32_t number) { return kernel.text(number); }, [&](int64_t) { return grid; });
  if (failed && !failedCheck)
    failedCheck = failed->text;
  *console = {};
}

void Simulator::note(const SimulatorExecutable &kernel, const Findings &findings) {
  if (!faults.empty()) {
    ++laterFaulty;
    return;
  }
  faults = fmt::format("kernel '{}', launch {} on device '{}', whose blocks are programs:\n{}", kernel.kernel(),
                       launches, deviceName, textOf(findings, *kernel.program));
  if (const auto list = findings.list();
      std::any_of(list.begin(), list.end(), [](const Finding &f) { return f.check == Check::racePrograms; }))
    faults +=
        "only atomics order programs: a release or acq_rel after the write, and an acquire or acq_rel on the same "
        "element before the other access; atomic_add or atomic_max combine values, and atomic_store frees a lock\n";
  faults.pop_back(); // the last line feed
}

void Simulator::note(const SimulatorExecutable &kernel, const std::shared_ptr<const Metrics> &metrics,
                     const Findings &findings) {
  const StepMetrics all = metrics->total();
  record = {kernel.program, metrics, findings.list(), int64_t{kernel.program->sharedBytes} + kernel.dynamicShared};
  issued += all.instructions;
  counts = {.kernel = kernel.kernel(),
            .launch = launches,
            .instructions = all.instructions,
            .sharedAccesses = all.sharedAccesses,
            .globalAccesses = all.globalAccesses,
            .wavefronts = all.wavefronts,
            .idealWavefronts = all.idealWavefronts,
            .sectors = all.sectors,
            .idealSectors = all.idealSectors,
            .table = reportTable(*kernel.program, *metrics)};
}

const LaunchCounts &Simulator::lastLaunch() const {
  if (counts.launch == 0)
    throw Error(
        fmt::format("expected a launch on device '{}' since setCounting(true), but there was none", deviceName));
  return counts;
}

void Simulator::synchronize() {
  const std::optional<std::string> failed = std::exchange(failedCheck, {});
  if (faults.empty() && failed)
    throw Error(*failed);
  if (faults.empty())
    return;
  std::string text = std::exchange(faults, {});
  if (failed)
    text = *failed + "\n" + text; // often their cause
  if (const int64_t later = std::exchange(laterFaulty, 0))
    text += fmt::format("\nand faults in {} later launch{}", later, later == 1 ? "" : "es");
  throw Error(text);
}

// --- By name ---------------------------------------------------------------------------------------------------------

std::vector<std::string> simulatorDevices() {
  std::vector<std::string> names;
  for (const Architecture &each : architectures())
    names.push_back(prefix + each.name);
  return names;
}

std::shared_ptr<SimulatorDevice> openSimulator(const std::string &name) {
  if (!name.starts_with(prefix))
    return nullptr;
  const Architecture *const architecture = architectureNamed(std::string_view(name).substr(prefix.size()));
  return architecture ? std::make_shared<Simulator>(name, *architecture) : nullptr;
}

std::shared_ptr<SimulatorDevice> SimulatorDevice::open(const std::string &name) {
  if (std::shared_ptr<SimulatorDevice> device = openSimulator(name))
    return device;
  throw Error(unknownName("simulator", name, simulatorDevices()));
}

} // namespace kiln
