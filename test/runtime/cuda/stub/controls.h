// What a test may ask of the stub driver that it runs on, beside what every driver can be asked: the exported function
// kiln_stub_controls() of the library returns this table.

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
  /// What the driver has made and not been given back, a line each.
  const char *(*left)();
  /// What cuDeviceGetAttribute answers from now on.
  void (*setAttribute)(int attribute, int value);
};

} // namespace kiln::test

extern "C" const kiln::test::StubControls *kiln_stub_controls();
