// Kernels with mistakes. A case is a kernel, which is registered as a test. `// expected-error@+N {{…}}` and
// `// expected-note` comments in the kernel, or between the case before and it, have the diagnostics of its tracing and
// their C++ lines, as in MLIR's tests of IR. A missing diagnostic fails the test, and so does an additional one.
//
//     KILN_ERRORS(Dot, InnerExtents, (View a), view(f32, {8})) {
//       // expected-error@+1 {{'dot' expected inner extents to match, but got 2x3 and 4x5}}
//       dot(zeros(f32, {2, 3}), zeros(f32, {4, 5}));
//     }

#pragma once

#include "test/dsl/Tracing.h"

namespace kiln::testing {

/// The kernel that follows is the case `suite.name`, for these facts of its arguments.
#define KILN_ERRORS(suite, name, parameters, ...)                                                                      \
  void suite##name parameters;                                                                                         \
  const ErrorCase suite##name##Case(#suite, #name, suite##name, {__VA_ARGS__});                                        \
  void suite##name parameters

/// A case by itself, for a function that is above it or in other cases too.
struct ErrorCase {
  template <class... P>
  ErrorCase(const char *suite, const char *name, void (*function)(P...), std::vector<ArgFacts> args, Loc loc = here())
      : ErrorCase(suite, name, kernel(name, function, {}, loc), std::move(args)) {}
  ErrorCase(const char *suite, const char *name, Kernel kernel, std::vector<ArgFacts> args);
};

} // namespace kiln::testing
