// Kernels with mistakes. A case is a kernel and, below it, the line that registers it as a test. The kernel's lines say
// in `// expected-error@+N {{…}}` and `// expected-note` comments which diagnostics tracing it must give, at which C++
// lines, as MLIR's own tests do for IR; a missing one fails the test and so does one too many.
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
