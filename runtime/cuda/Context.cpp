// State shared by devices of one name.

#include "runtime/cuda/Context.h"

#include "runtime/Streams.h"
#include "runtime/cuda/LoadedKernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

namespace kiln::cuda {

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
    if (speaks)
      readConsole(kernel);
    kernel.module.reset();
  } catch (const std::exception &error) {
    say(fmt::format("{}\n", error.what()));
  }
}

} // namespace kiln::cuda
