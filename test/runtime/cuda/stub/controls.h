// Functions of the stub driver for tests, in addition to those of every CUDA driver. The library's exported function
// kiln_stub_controls() returns this table.

#pragma once

#include <cstdint>

namespace kiln::test {

struct StubControls {
  /// Clears the recorded calls, the requested failures, and the list of unreleased objects; resets the GPU.
  void (*reset)();
  /// Call `number` of `call` (from 1, counted since reset) returns `result` and does nothing.
  void (*fail)(const char *call, int64_t number, int result);
  /// Clears the recorded calls and operations, and releases their memory.
  void (*forgetRecord)();
  /// How often `call` was called since reset.
  int64_t (*count)(const char *call);
  /// The names of all calls since reset, a line each.
  const char *(*record)();
  /// The driver's objects that were not released, one per line.
  const char *(*left)();
  /// Sets the value that cuDeviceGetAttribute returns from now on.
  void (*setAttribute)(int attribute, int value);
  /// The operations of streams since reset, in order: a line `stream NUMBER CALL` each; streams are numbered from 0 in
  /// the order of creation. A captured operation is listed when its graph is launched, as one.
  const char *(*order)();
  /// The numbers of properties, flags and options that calls got since reset, in order: a line `CALL NUMBER...` each.
  const char *(*options)();
};

} // namespace kiln::test

/// Appends another stub's operation, named `what`, to a stream: it returns 0 when it is done, and CUDA_ERROR_NOT_READY
/// to be retried. The call's result is the driver's.
extern "C" int kiln_stub_ask(void *stream, const char *what, int (*operation)(void *), void *argument);

extern "C" const kiln::test::StubControls *kiln_stub_controls();
