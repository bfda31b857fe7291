// Host variables that a loop or branch body changes. The body is traced once but runs any number of times, so each
// change is an error, at the line where the result would differ.

#include "test/dsl/ErrorCases.h"

namespace kiln::testing {
namespace {

const ArgFacts row = view(f32, {64});

// --- Read in the body that changes them ------------------------------------------------------------------------------

KILN_ERRORS(HostState, CounterUsedInBody, (View a), row) {
  int i = 0;
  // expected-note@+1 {{in the body of this loop or branch}}
  for (Tile k : range(8)) {
    // expected-error@+1 {{a traced loop or branch: this line differs when the body is traced again}}
    store(a, {k}, i);
    i++;
  }
}

KILN_ERRORS(HostState, CounterUsedAfterLoop, (View a), row) {
  int i = 0;
  for (Tile k : range(8)) {
    store(a, {k}, 0);
    i++;
  }
  // expected-error@+1 {{a C++ variable changes in the body of a traced loop or branch}}
  store(a, {0}, i);
}

// An outer body that resets the variable does not hide the inner one that changes it.
KILN_ERRORS(HostState, ResetInOuterBody, (View a), row) {
  for (Tile j : range(8)) {
    int n = 0;
    // expected-note@+1 {{in the body of this loop or branch}}
    for (Tile k : range(8)) {
      // expected-error@+1 {{a C++ variable changes in the body of a traced loop or branch}}
      store(a, {k}, n);
      n += 1;
    }
  }
}

KILN_ERRORS(HostState, StageFlipsInBody, (View a), row) {
  Tile buffers[2] = {zeros(f32, {4}), zeros(f32, {4})};
  int stage = 0;
  // expected-error@+1 {{a C++ variable changes in the body of a traced loop or branch}}
  for (Tile k : range(8)) {
    buffers[stage] = buffers[stage] + 1;
    stage ^= 1;
  }
  store(a, {0}, buffers[0]);
}

KILN_ERRORS(HostState, BranchFlipsVariable, (View a), row) {
  bool seen = false;
  if_(program_id() == 0, [&] { seen = !seen; });
  // expected-error@+1 {{a C++ variable changes in the body of a traced loop or branch}}
  store(a, {0}, seen);
}

// The variable is the same after every iteration, but not before the first.
KILN_ERRORS(HostState, FirstIterationIsSpecial, (View a), row) {
  bool first = true;
  // expected-note@+1 {{in the body of this loop or branch}}
  for (Tile k : range(8)) {
    // expected-error@+1 {{differs when the body is traced again; use a Tile for a value that changes}}
    store(a, {k}, first ? 1 : 2);
    first = false;
  }
}

KILN_ERRORS(HostState, PointerToTileMoves, (View a), row) {
  Tile x = zeros(f32, {4}), y = x + 1;
  Tile *current = &x;
  // expected-error@+1 {{differs when the body is traced again}}
  for (Tile k : range(8)) {
    *current = *current + 1;
    current = current == &x ? &y : &x;
  }
  store(a, {0}, x);
}

// Vectors are swapped as a whole: the tiles keep their addresses.
KILN_ERRORS(HostState, VectorsOfTilesSwap, (View a), row) {
  std::vector<Tile> x{zeros(f32, {4})}, y{full(f32, {4}, 1)};
  // expected-error@+1 {{differs when the body is traced again}}
  for (Tile k : range(8)) {
    std::swap(x, y);
    x[0] = x[0] + 1;
  }
  store(a, {0}, x[0]);
}

KILN_ERRORS(HostState, ViewChangesInLoop, (View a, View b), row, row) {
  View current = a;
  // expected-note@+1 {{in the body of this loop or branch}}
  for (Tile k : range(8)) {
    store(current, {k}, 1); // expected-error {{differs when the body is traced again}}
    current = b;
  }
}

// --- Read after the body that changes them ---------------------------------------------------------------------------

// Tracing enters every branch; the program may not.
KILN_ERRORS(HostState, FlagReadAfterBranch, (View a), row) {
  bool found = false;
  if_(program_id() == 0, [&] { found = true; });
  if (found)
    store(a, {0}, 1); // expected-error {{differs when the body is left out; use a Tile for a value that changes}}
}

KILN_ERRORS(HostState, ViewChosenInBranch, (View a, View b), row, row) {
  View chosen = a;
  if_(program_id() == 0, [&] { chosen = b; });
  store(chosen, {0}, 1); // expected-error {{differs when the body is left out}}
}

// The value is equal after every iteration, but there may be none.
KILN_ERRORS(HostState, ValueReadAfterLoop, (View a), row) {
  int last = 0;
  for (Tile k : range(a.dim(0)))
    last = 5;
  store(a, {0}, last); // expected-error {{differs when the body is left out}}
}

// The reader is in an outer body.
KILN_ERRORS(HostState, ValueReadInOuterBody, (View a, Tile n), row, scalar(i64)) {
  // expected-note@+1 {{in the body of this loop or branch}}
  for (Tile k : range(8)) {
    int which = 1;
    if_(k < n, [&] { which = 2; });
    store(a, {k}, which); // expected-error {{differs when the body is left out}}
  }
}

// Without the first body there is no second one.
KILN_ERRORS(HostState, LoopDependsOnBranch, (View a), row) {
  bool found = false;
  if_(program_id() == 0, [&] { found = true; });
  if (found)
    for (Tile k : range(8)) // expected-error {{differs when the body is left out}}
      store(a, {k}, 1);
}

// A tile of one trace is unset in the next.
KILN_ERRORS(HostState, StaticTile, (View a), row) {
  static Tile kept = zeros(f32, {4});
  store(a, {0}, kept); // expected-error {{differs when the body is traced again}}
}

// --- Exceptions ------------------------------------------------------------------------------------------------------

KILN_ERRORS(Exceptions, CaughtOutsideItsLoop, (View a), row) {
  try {
    for (Tile k : range(8)) { // expected-error {{but it was left by an exception that the kernel caught}}
      store(a, {k}, 1);
      throw 1;
    }
  } catch (int) {
  }
  store(a, {0}, 2);
}

KILN_ERRORS(Exceptions, CaughtOutsideItsBranch, (View a), row) {
  try {
    // expected-error@+1 {{reach its end, but it was left by an exception that the kernel caught}}
    if_(program_id() == 0, [&] {
      store(a, {0}, 1);
      throw 1;
    });
  } catch (int) {
  }
  store(a, {0}, 2);
}

void throwsNumber(View) { throw 5; }
// expected-error@+1 {{expected a kernel to throw only a std::exception, but got something else}}
const ErrorCase throwsNumberCase("Exceptions", "NoStdException", throwsNumber, {row});

} // namespace
} // namespace kiln::testing
