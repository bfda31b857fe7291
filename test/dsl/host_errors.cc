// Host variables that a loop or branch body changes. The body is traced once but runs any number of times, so each
// change is an error, at the line where the result would differ.

#include "test/dsl/ErrorCases.h"

#include <optional>

namespace kiln::testing {
namespace {

const ArgFacts row = view(f32, {64});

// --- Read in the body that changes them ------------------------------------------------------------------------------

void hostCounter(View a) {
  int i = 0;
  // expected-note@+1 {{in the body of this loop or branch}}
  for (Tile k : range(8)) {
    // expected-error@+1 {{a traced loop or branch: this line differs when the body is traced again}}
    store(a, {k}, i);
    i++;
  }
}
const ErrorCase hostCounterCase("HostState", "CounterUsedInBody", hostCounter, {row});

void hostAfter(View a) {
  int i = 0;
  for (Tile k : range(8)) {
    store(a, {k}, 0);
    i++;
  }
  // expected-error@+1 {{a C++ variable changes in the body of a traced loop or branch}}
  store(a, {0}, i);
}
const ErrorCase hostAfterCase("HostState", "CounterUsedAfterLoop", hostAfter, {row});

// An outer body that resets the variable does not hide the inner one that changes it.
void hostReset(View a) {
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
const ErrorCase hostResetCase("HostState", "ResetInOuterBody", hostReset, {row});

void hostStage(View a) {
  Tile buffers[2] = {zeros(f32, {4}), zeros(f32, {4})};
  int stage = 0;
  // expected-error@+1 {{a C++ variable changes in the body of a traced loop or branch}}
  for (Tile k : range(8)) {
    buffers[stage] = buffers[stage] + 1;
    stage ^= 1;
  }
  store(a, {0}, buffers[0]);
}
const ErrorCase hostStageCase("HostState", "StageFlipsInBody", hostStage, {row});

void hostBranch(View a) {
  bool seen = false;
  if_(program_id() == 0, [&] { seen = !seen; });
  // expected-error@+1 {{a C++ variable changes in the body of a traced loop or branch}}
  store(a, {0}, seen);
}
const ErrorCase hostBranchCase("HostState", "BranchFlipsVariable", hostBranch, {row});

// The variable is the same after every iteration, but not before the first.
void hostFirst(View a) {
  bool first = true;
  // expected-note@+1 {{in the body of this loop or branch}}
  for (Tile k : range(8)) {
    // expected-error@+1 {{differs when the body is traced again; use a Tile for a value that changes}}
    store(a, {k}, first ? 1 : 2);
    first = false;
  }
}
const ErrorCase hostFirstCase("HostState", "FirstIterationIsSpecial", hostFirst, {row});

void hostPointer(View a) {
  Tile x = zeros(f32, {4}), y = x + 1;
  Tile *current = &x;
  // expected-error@+1 {{differs when the body is traced again}}
  for (Tile k : range(8)) {
    *current = *current + 1;
    current = current == &x ? &y : &x;
  }
  store(a, {0}, x);
}
const ErrorCase hostPointerCase("HostState", "PointerToTileMoves", hostPointer, {row});

// Vectors are swapped as a whole: the tiles keep their addresses.
void hostVectors(View a) {
  std::vector<Tile> x{zeros(f32, {4})}, y{full(f32, {4}, 1)};
  // expected-error@+1 {{differs when the body is traced again}}
  for (Tile k : range(8)) {
    std::swap(x, y);
    x[0] = x[0] + 1;
  }
  store(a, {0}, x[0]);
}
const ErrorCase hostVectorsCase("HostState", "VectorsOfTilesSwap", hostVectors, {row});

void hostView(View a, View b) {
  View current = a;
  // expected-note@+1 {{in the body of this loop or branch}}
  for (Tile k : range(8)) {
    store(current, {k}, 1); // expected-error {{differs when the body is traced again}}
    current = b;
  }
}
const ErrorCase hostViewCase("HostState", "ViewChangesInLoop", hostView, {row, row});

// --- Read after the body that changes them ---------------------------------------------------------------------------

// Tracing enters every branch; the program may not.
void flagAfter(View a) {
  bool found = false;
  if_(program_id() == 0, [&] { found = true; });
  if (found)
    store(a, {0}, 1); // expected-error {{differs when the body is left out; use a Tile for a value that changes}}
}
const ErrorCase flagAfterCase("HostState", "FlagReadAfterBranch", flagAfter, {row});

void viewAfter(View a, View b) {
  View chosen = a;
  if_(program_id() == 0, [&] { chosen = b; });
  store(chosen, {0}, 1); // expected-error {{differs when the body is left out}}
}
const ErrorCase viewAfterCase("HostState", "ViewChosenInBranch", viewAfter, {row, row});

// The value is equal after every iteration, but there may be none.
void valueAfter(View a) {
  int last = 0;
  for (Tile k : range(a.dim(0)))
    last = 5;
  store(a, {0}, last); // expected-error {{differs when the body is left out}}
}
const ErrorCase valueAfterCase("HostState", "ValueReadAfterLoop", valueAfter, {row});

// The reader is in an outer body.
void nestedAfter(View a, Tile n) {
  // expected-note@+1 {{in the body of this loop or branch}}
  for (Tile k : range(8)) {
    int which = 1;
    if_(k < n, [&] { which = 2; });
    store(a, {k}, which); // expected-error {{differs when the body is left out}}
  }
}
const ErrorCase nestedAfterCase("HostState", "ValueReadInOuterBody", nestedAfter, {row, scalar(i64)});

// Without the first body there is no second one.
void loopAfter(View a) {
  bool found = false;
  if_(program_id() == 0, [&] { found = true; });
  if (found)
    for (Tile k : range(8)) // expected-error {{differs when the body is left out}}
      store(a, {k}, 1);
}
const ErrorCase loopAfterCase("HostState", "LoopDependsOnBranch", loopAfter, {row});

// A tile of one trace is unset in the next.
void staticTile(View a) {
  static Tile kept = zeros(f32, {4});
  store(a, {0}, kept); // expected-error {{differs when the body is traced again}}
}
const ErrorCase staticTileCase("HostState", "StaticTile", staticTile, {row});

// --- Exceptions ------------------------------------------------------------------------------------------------------

void caughtInLoop(View a) {
  try {
    for (Tile k : range(8)) { // expected-error {{but it was left by an exception that the kernel caught}}
      store(a, {k}, 1);
      throw 1;
    }
  } catch (int) {
  }
  store(a, {0}, 2);
}
const ErrorCase caughtInLoopCase("Exceptions", "CaughtOutsideItsLoop", caughtInLoop, {row});

void caughtInBranch(View a) {
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
const ErrorCase caughtInBranchCase("Exceptions", "CaughtOutsideItsBranch", caughtInBranch, {row});

void throwsNumber(View) { throw 5; }
// expected-error@+1 {{expected a kernel to throw only a std::exception, but got something else}}
const ErrorCase throwsNumberCase("Exceptions", "NoStdException", throwsNumber, {row});

} // namespace
} // namespace kiln::testing
