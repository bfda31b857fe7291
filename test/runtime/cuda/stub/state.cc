// Recording, failing on request, and doing things late.

#include "test/runtime/cuda/stub/state.h"

#include <chrono>
#include <thread>

namespace kiln::stub {

/// The number of queued operations after which the driver waits by itself.
static constexpr size_t maxQueued = 1024;
/// Bytes of record: a benchmark calls for hours.
static constexpr size_t maxRecorded = 1 << 20;

/// An H100's, with few multiprocessors: simulator:sm_80 runs in all suites, this GPU's code in those of the runtime.
static const std::map<int, int> attributesAtFirst = {
    {int(Attribute::sms), 4},
    {int(Attribute::l2Bytes), 50 << 20},
    {int(Attribute::capabilityMajor), 9},
    {int(Attribute::capabilityMinor), 0},
    {int(Attribute::smSharedBytes), 228 << 10},
    {int(Attribute::smRegisters), 65536},
    {int(Attribute::ctaSharedBytes), 227 << 10},
    {int(Attribute::memoryPools), 1},
};

State &state() {
  static State *const all = [] {
    auto *const made = new State;
    made->attributes = attributesAtFirst;
    return made;
  }();
  return *all;
}

ContextHandle &current() {
  static thread_local ContextHandle context = nullptr;
  return context;
}

Result State::destroy(void *handle, const std::string &what) {
  if (!has(handle, what))
    return invalidHandle;
  made.erase(handle);
  delete static_cast<char *>(handle);
  return success;
}

void State::note(const char *call, std::initializer_list<uint64_t> numbers) {
  if (options.size() >= maxRecorded)
    return;
  options += call;
  for (const uint64_t number : numbers)
    options += ' ' + std::to_string(number);
  options += '\n';
}

Result State::ask(const void *stream, const char *what, Operation operation) {
  if (stream && homes[stream] != current())
    return invalidHandle;
  if (capture) {
    capture->push_back(std::move(operation));
    return success;
  }
  if (order.size() < maxRecorded)
    order += "stream " + std::to_string(streams[stream]) + " " + what + '\n';
  std::deque<Operation> &queue = queues[stream];
  queue.push_back(std::move(operation));
  return queue.size() > maxQueued ? drain(stream) : success;
}

Result State::advance(const void *stream, const std::function<bool()> &isEnough) {
  // A wait for another stream advances that stream up to its earlier operations, so it never returns to this one.
  for (std::deque<Operation> &queue = queues[stream]; !queue.empty() && !isEnough(); queue.pop_front())
    if (fault == success) {
      if (const Result result = queue.front()(); result == notReady)
        return notReady;
      else
        fault = result;
    }
  return fault;
}

Result State::drain(const void *stream) {
  Result result;
  while ((result = advance(stream)) == notReady)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  return result;
}

Result call(const char *name, const std::function<Result(State &)> &body, Wants wants) {
  State &all = state();
  const std::lock_guard lock(all.mutex);
  if (all.record.size() < maxRecorded)
    (all.record += name) += '\n';
  auto count = all.counts.find(name);
  if (count == all.counts.end())
    count = all.counts.emplace(name, 0).first;
  ++count->second;
  if (!all.failures.empty())
    if (const auto failure = all.failures.find({name, count->second}); failure != all.failures.end()) {
      if (std::string_view(name) == "cuStreamEndCapture" && all.capture)
        std::exchange(all.capture, nullptr)->clear(); // which ends even so
      if (std::string_view(name) == "cuStreamSynchronize")
        all.queues.clear(); // what was to be done is lost
      return failure->second;
    }
  if (wants != Wants::nothing && !all.initialised)
    return notInitialised;
  if (wants == Wants::context && (!current() || all.primaryUsers == 0))
    return invalidContext;
  if (wants == Wants::context && all.fault != success)
    return all.fault;
  return body(all);
}

// --- Controls --------------------------------------------------------------------------------------------------------

static void reset() {
  State &all = state();
  const std::lock_guard lock(all.mutex);
  all.record.clear();
  all.counts.clear();
  all.failures.clear();
  all.attributes = attributesAtFirst;
  all.made.clear();
  all.queues.clear();
  all.streams.clear();
  all.order.clear();
  all.options.clear();
  all.homes.clear();
  all.primaryUsers = 0;
}

static void forgetRecord() {
  State &all = state();
  const std::lock_guard lock(all.mutex);
  std::string().swap(all.record);
  std::string().swap(all.order);
  std::string().swap(all.options);
}

static void fail(const char *name, int64_t number, int result) {
  const std::lock_guard lock(state().mutex);
  state().failures[{name, number}] = Result(result);
}

static int64_t countOf(const char *name) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().counts.find(name);
  return found == state().counts.end() ? 0 : found->second;
}

static const char *record() { return state().record.c_str(); }

static const char *order() { return state().order.c_str(); }

static const char *options() { return state().options.c_str(); }

static const char *left() {
  static std::string text;
  text.clear();
  for (const auto &[handle, what] : state().made)
    text += what + '\n';
  if (state().primaryUsers)
    text += "primary context\n";
  return text.c_str();
}

static void setAttribute(int attribute, int value) { state().attributes[attribute] = value; }

} // namespace kiln::stub

/// Enqueues an operation of another library's stub on a stream.
extern "C" int kiln_stub_ask(void *stream, const char *what, int (*operation)(void *), void *argument) {
  using namespace kiln::stub;
  State &all = state();
  const std::lock_guard lock(all.mutex);
  if (!all.has(stream, "stream"))
    return int(invalidHandle);
  return int(all.ask(stream, what, [=] { return Result(operation(argument)); }));
}

extern "C" const kiln::test::StubControls *kiln_stub_controls() {
  using namespace kiln::stub;
  static constexpr kiln::test::StubControls controls = {reset, fail,         forgetRecord, countOf, record,
                                                        left,  setAttribute, order,        options};
  return &controls;
}
