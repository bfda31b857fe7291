// State of the stub driver. It does its work as late as the API permits: at the next call that waits. So a test fails
// if its caller relies on more than the API promises.

#pragma once

#include "test/runtime/cuda/stub/controls.h"
#include "test/runtime/cuda/stub/engine.h"

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

extern "C" {
using namespace kiln::cuda; // the types that the parameters of the calls are written with
#define KILN_DRIVER_CALL(member, symbol, ...) Result symbol(__VA_ARGS__);
#include "runtime/cuda/DriverCalls.def"
}

namespace kiln::stub {

inline constexpr auto success = Result::success, invalidValue = Result::invalidValue, notReady = Result::notReady;
inline constexpr auto notInitialised = Result(3), invalidContext = Result(201), invalidHandle = Result(400);

/// One operation of a stream; its result is that of the next wait. An operation that is `notReady` is retried.
using Operation = std::function<Result()>;

// The stub's objects are never destroyed: a process may call its driver until its end.

struct State {
  std::recursive_mutex mutex;

  // Recorded and asked for.
  std::string record;
  std::map<std::string, int64_t, std::less<>> counts;
  std::map<std::pair<std::string, int64_t>, Result> failures;
  std::map<int, int> attributes;

  bool initialised = false;
  int64_t primaryUsers = 0;                             // of the primary context
  std::map<const void *, std::string> made;             // what it is, of all that was made and not given back
  std::map<const void *, std::deque<Operation>> queues; // of the streams
  std::map<const void *, int> streams;                  // their numbers, as they were made
  std::string order;                                    // what they were asked for, as StubControls::order has it
  std::string options;                                  // as StubControls::options has them
  std::map<const void *, ContextHandle> homes;          // the context that a stream or a pool was made in
  /// Page-locked memory: its size, and a token that pending operations that read it share.
  std::map<const void *, std::pair<size_t, std::shared_ptr<int>>> hostMemory;
  std::vector<Operation> *capture = nullptr; // where what is asked of a stream goes meanwhile
  Result fault = success;                    // what every later call returns

  /// A handle of something new.
  template <class Handle> Handle make(const std::string &what) {
    auto *const handle = new char;
    made[handle] = what;
    return reinterpret_cast<Handle>(handle);
  }
  bool has(const void *handle, const std::string &what) const {
    const auto found = made.find(handle);
    return found != made.end() && found->second == what;
  }
  Result destroy(void *handle, const std::string &what);

  /// Notes the options that `call` got.
  void note(const char *call, std::initializer_list<uint64_t> numbers);
  /// Appends an operation to the stream, which is of the current context; `what` is recorded.
  Result ask(const void *stream, const char *what, Operation operation);
  /// Executes the stream's operations, until `isEnough`, the end, or one that is not ready.
  Result advance(const void *stream, const std::function<bool()> &isEnough = [] { return false; });
  /// Executes all of the stream's operations, and waits for those that are not ready.
  Result drain(const void *stream);
};

State &state();
/// The context that the calling thread uses.
ContextHandle &current();

/// The common part of all calls: recording, requested failures, and the checks that the driver is initialised and, by
/// default, has a context.
enum class Wants { nothing, driver, context };
Result call(const char *name, const std::function<Result(State &)> &body, Wants wants = Wants::context);

} // namespace kiln::stub
