// Kernels with mistakes. A case is a kernel and, below it, the line that registers it as a test. `// expected-error@+N
// {{…}}` and `// expected-note` comments in the kernel have the diagnostics of its tracing and their C++ lines, as in
// MLIR's tests of IR. A missing diagnostic fails the test, and so does an additional one.
//
//     void mismatched(View a) {
//       // expected-error@+1 {{'dot' expected inner extents to match, but got 2x3 and 4x5}}
//       dot(zeros(f32, {2, 3}), zeros(f32, {4, 5}));
//     }
//     const ErrorCase mismatchedCase("Dot", "InnerExtents", mismatched, {view(f32, {8})});

#pragma once

#include "test/dsl/Tracing.h"

namespace kiln::testing {

struct ErrorCase {
  template <class... P>
  ErrorCase(const char *suite, const char *name, void (*function)(P...), std::vector<ArgFacts> args, Loc loc = here())
      : ErrorCase(suite, name, kernel(name, function, {}, loc), std::move(args)) {}
  ErrorCase(const char *suite, const char *name, Kernel kernel, std::vector<ArgFacts> args);
};

} // namespace kiln::testing
