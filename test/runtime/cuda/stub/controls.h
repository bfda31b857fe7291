// Functions of the stub driver for tests, in addition to those of every CUDA driver. The library's exported function
// kiln_stub_controls() returns this table.

#pragma once

#include <cstdint>

namespace kiln::test {

struct StubControls {
  /// Forgets what was recorded, what shall fail, and what has not been given back; the GPU is as at first.
  void (*reset)();
  /// Call `number` of `call` (from 1, counted since reset) returns `result` and does nothing.
  void (*fail)(const char *call, int64_t number, int result);
  /// How often `call` was called since reset.
  int64_t (*count)(const char *call);
  /// The names of all calls since reset, a line each.
  const char *(*record)();
  /// The driver's objects that were not released, one per line.
  const char *(*left)();
  /// Sets the value that cuDeviceGetAttribute returns from now on.
  void (*setAttribute)(int attribute, int value);
  /// What streams were asked for since reset, in the order of asking: a line `stream NUMBER CALL` each, streams being
  /// numbered from 0 as they were made. What is captured counts when its graph is launched, as one.
  const char *(*order)();
};

} // namespace kiln::test

/// Asks a stream for an operation of another stub's, which is noted as `what`: it returns 0 when it was done, and
/// CUDA_ERROR_NOT_READY to be tried again. The result of the call is the driver's.
extern "C" int kiln_stub_ask(void *stream, const char *what, int (*operation)(void *), void *argument);

extern "C" const kiln::test::StubControls *kiln_stub_controls();
