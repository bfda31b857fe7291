// State shared by devices of one name.

#include "runtime/cuda/Context.h"

#include "runtime/Streams.h"
#include "runtime/cuda/LoadedKernel.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <map>

namespace kiln::cuda {

// --- The facts about a GPU ------------------------------------------------------------------------------------------

using lowering::gpu::GpuTarget;

const GpuTarget *codeFor(int capability) {
  const GpuTarget *best = nullptr;
  for (const GpuTarget &target : lowering::gpu::gpuTargets()) {
    const bool runsOnNewer = std::isdigit(target.architecture.back());
    if (target.capability == capability || (target.capability < capability && runsOnNewer))
      if (!best || best->capability < target.capability)
        best = &target;
  }
  return best;
}

int countGpus(const Connection &connection) {
  connection.call("a GPU", connection.driver.init, 0u);
  int count = 0;
  connection.call("a number of GPUs", connection.driver.deviceGetCount, &count);
  return count;
}

Gpu readGpu(const Connection &connection, int number) {
  const Driver &driver = connection.driver;
  const int count = countGpus(connection);
  if (number >= count)
    throw Error(fmt::format("device '{}': expected a GPU number below {}, the number of GPUs of driver '{}'",
                            connection.device, count, driver.library),
                Fault::device);
  Gpu gpu;
  connection.call("a GPU", driver.deviceGet, &gpu.number, number);
  char name[256] = "";
  connection.call("a GPU's name", driver.deviceGetName, name, static_cast<int>(sizeof name), gpu.number);
  gpu.name = name;
  const auto attribute = [&](const char *what, Attribute which) {
    int value = 0;
    connection.call(what, driver.deviceGetAttribute, &value, which, gpu.number);
    return value;
  };
  gpu.capability = 10 * attribute("a compute capability", Attribute::capabilityMajor) +
                   attribute("a compute capability", Attribute::capabilityMinor);
  gpu.code = codeFor(gpu.capability);
  if (!gpu.code)
    throw Error(fmt::format("device '{}': expected a GPU of compute capability 8.0 or newer, but '{}' has {}.{}",
                            connection.device, gpu.name, gpu.capability / 10, gpu.capability % 10),
                Fault::device);
  if (!attribute("to know of memory pools", Attribute::memoryPools))
    throw Error(
        fmt::format("device '{}': expected a GPU with memory pools, but '{}' has none", connection.device, gpu.name),
        Fault::device);
  gpu.facts = {.architecture = gpu.code->capability,
               .sms = attribute("a number of SMs", Attribute::sms),
               .ctaSharedBytes = std::min<int64_t>(gpu.code->sharedBytes,
                                                   attribute("a size of shared memory", Attribute::ctaSharedBytes)),
               .smSharedBytes = attribute("a size of shared memory", Attribute::smSharedBytes),
               .registers = attribute("a number of registers", Attribute::smRegisters),
               .l2Bytes = attribute("a size of the level-2 cache", Attribute::l2Bytes)};
  return gpu;
}

std::shared_ptr<Context> Context::open(int number) {
  static std::mutex opening;
  static std::map<int, std::weak_ptr<Context>> all;
  const std::lock_guard lock(opening);
  std::shared_ptr<Context> context = all[number].lock();
  if (!context)
    all[number] = context = std::make_shared<Context>(number);
  return context;
}

Context::Context(int number)
    : connection(Driver::open(), fmt::format("cuda:{}", number)), gpu(readGpu(connection, number)),
      primary(connection, driver().primaryContextRelease), ownStream(connection, driver().streamDestroy),
      ordering(connection, driver().eventDestroy), pool(connection, driver().poolDestroy), uploads(connection) {
  if (!gpu.isExact())
    say(fmt::format("device '{}': no code is made for compute capability {}.{} of '{}'; it runs that for {}\n",
                    connection.device, gpu.capability / 10, gpu.capability % 10, gpu.name, gpu.code->architecture));
  connection.call("a context", driver().primaryContextRetain, &handle, gpu.number);
  primary.take(gpu.number);
  const Use use(*this);
  StreamHandle stream = nullptr;
  connection.call("a stream", driver().streamCreate, &stream, streamNonBlocking);
  ownStream.take(stream);
  EventHandle event = nullptr;
  connection.call("an event", driver().eventCreate, &event, eventWithoutTiming);
  ordering.take(event);
  PoolProperties properties;
  properties.location = gpu.number;
  PoolHandle memory = nullptr;
  connection.call("a pool of memory", driver().poolCreate, &memory, static_cast<const PoolProperties *>(&properties));
  pool.take(memory);
  uint64_t keepAll = std::numeric_limits<uint64_t>::max(); // released memory is reused by later allocations
  connection.call("a pool that keeps its memory", driver().poolSetAttribute, pool.get(),
                  PoolAttribute::releaseThreshold, static_cast<void *>(&keepAll));
}

Context::~Context() {
  connection.giveBack(driver().contextSetCurrent, handle);
  connection.giveBack(driver().streamSynchronize, stream());
}

Context::Use::Use(Context &context) : lock(context.mutex) {
  ContextHandle current = nullptr;
  context.connection.call("the current context", context.driver().contextGetCurrent, &current);
  if (current != context.handle)
    context.connection.call("to use a context", context.driver().contextSetCurrent, context.handle);
}

void Context::order(StreamHandle first, StreamHandle second) {
  const Use use(*this);
  connection.call("an event", driver().eventRecord, ordering.get(), first);
  connection.call("a stream to wait for another", driver().streamWaitEvent, second, ordering.get(), 0u);
}

Address Context::allocate(int64_t bytes) {
  Address place = 0;
  const Result result =
      driver().allocateFromPool(&place, static_cast<size_t>(std::max<int64_t>(bytes, 1)), pool.get(), stream());
  if (result != Result::success)
    throw connection.failure(result, driver().allocateFromPool.name, fmt::format("{} bytes of memory", bytes));
  return place;
}

void Context::wait() {
  const Result result = driver().streamSynchronize(stream());
  const std::string since =
      result == Result::success || log.empty() ? "" : "; launched since the last wait:" + log.text();
  log.clear();
  waited = launches;
  if (result != Result::success)
    throw Error(connection.failure(result, driver().streamSynchronize.name, "all launches to end well").what() + since,
                Fault::device);
}

// --- Messages of programs --------------------------------------------------------------------------------------------

void Context::expectWords(const LoadedKernel &kernel) {
  if (std::find(speaking.begin(), speaking.end(), &kernel) == speaking.end())
    speaking.push_back(&kernel);
}

void Context::readConsole(const LoadedKernel &kernel) {
  const std::optional<FailedCheck> found = kernel.readConsole();
  if (found && (!failed || found->launch < failed->launch))
    failed = found;
}

std::optional<std::string> Context::readConsoles() {
  for (const LoadedKernel *const kernel : std::exchange(speaking, {}))
    readConsole(*kernel);
  const std::optional<FailedCheck> first = std::exchange(failed, {});
  return first ? std::optional(first->text) : std::nullopt;
}

void Context::forget(LoadedKernel &kernel) noexcept {
  try {
    const Use use(*this);
    const bool speaks = std::erase(speaking, &kernel) > 0;
    if (kernel.lastLaunch > waited)
      wait();
    if (speaks) {
      readConsole(kernel);
      wait(); // until the console is empty, whose memory goes with the module
    }
    kernel.module.reset();
  } catch (const std::exception &error) {
    say(fmt::format("{}\n", error.what()));
  }
}

std::string LaunchLog::text() const {
  std::string text;
  const uint64_t shown = std::min<uint64_t>(count, last.size());
  for (uint64_t i = 1; i <= shown; ++i) {
    const Entry &entry = last[(count - i) % last.size()];
    text += fmt::format("\n  {}, {}x{}x{} programs", *entry.label, entry.grid[0], entry.grid[1], entry.grid[2]);
  }
  if (count > shown)
    text += fmt::format("\n  and {} before", count - shown);
  return text;
}

Staging::Staging(const Connection &connection)
    : connection(connection), memory(connection, connection.driver.hostRelease) {}

void Staging::makeRoom() {
  const Driver &driver = connection.driver;
  if (!memory.holds()) {
    void *made = nullptr;
    connection.call("page-locked memory for uploads", driver.hostAllocate, &made, size_t{pieces * pieceBytes}, 0u);
    memory.take(made);
  }
  if (copied.size() < pieces) {
    EventHandle event = nullptr;
    connection.call("an event", driver.eventCreate, &event, eventWithoutTiming);
    copied.emplace_back(connection, driver.eventDestroy).take(event);
  } else {
    connection.call("an upload to end", driver.eventSynchronize, copied[uploads % pieces].get());
  }
}

void Staging::upload(Address to, const void *from, int64_t bytes, StreamHandle stream) {
  const Driver &driver = connection.driver;
  for (int64_t done = 0; done < bytes; done += pieceBytes) {
    makeRoom();
    const int64_t piece = uploads % pieces, count = std::min(pieceBytes, bytes - done);
    char *const place = static_cast<char *>(memory.get()) + piece * pieceBytes;
    std::memcpy(place, static_cast<const char *>(from) + done, static_cast<size_t>(count));
    connection.call("an upload", driver.copyToDevice, to + static_cast<Address>(done), static_cast<const void *>(place),
                    static_cast<size_t>(count), stream);
    connection.call("an event", driver.eventRecord, copied[piece].get(), stream);
    ++uploads;
  }
}

} // namespace kiln::cuda
