// Mistakes with loops, branches and the life of tiles: each is an error at the user's line.

#include "test/dsl/ErrorCases.h"

#include <functional>
#include <optional>

namespace kiln::testing {
namespace {

const ArgFacts row = view(f32, {64});

// Reading a tile that was never assigned.
KILN_ERRORS(Tiles, UnsetTileIsRead, (View a), row) {
  Tile x;
  // expected-error@+1 {{a tile is used before it is assigned}}
  store(a, {0}, x);
}

// The shape of an unset tile: tracing cannot continue, so this is the only error.
KILN_ERRORS(Tiles, UnsetTileHasNoShape, (View a), row) {
  Tile x;
  // expected-error@+1 {{a tile is used before it is assigned}}
  store(a, {x.extent(0)}, 1);
  store(a, {0, 0, 0}, 1);
}

// An axis that the tile has not.
KILN_ERRORS(Tiles, AxisOutsideShape, (View a), row) {
  Tile x = zeros(f32, {4, 8});
  store(a, {x.extent(-1)}, 1);
  // expected-error@+1 {{'extent' expected an axis of a tile of shape 4x8, but got 2}}
  store(a, {x.extent(2)}, 1);
}

// A tile of an iteration kept in a container beyond the loop.
KILN_ERRORS(Loops, TileKeptAfterItsLoop, (View a), row) {
  std::vector<Tile> kept;
  for (Tile k : range(4))
    kept.push_back(k + 1); // expected-note {{computed here}}
  // expected-error@+1 {{a tile is used outside the loop or branch body that computed it; declare}}
  store(a, {kept[0]}, 0);
}

// A tile without a value before the loop has none after it: the loop may run no iteration.
KILN_ERRORS(Loops, TileSetOnlyInside, (View a), row) {
  Tile last;
  for (Tile k : range(a.dim(0)))
    last = k * 2; // expected-note {{computed here}}
  // expected-error@+1 {{a tile is used outside the loop or branch body that computed it}}
  store(a, {last}, 0);
}

// `break` depends on nothing that the program could decide.
KILN_ERRORS(Loops, Break, (View a), row) {
  Tile x = zeros(f32, {4});
  // expected-error@+1 {{expected the body of a traced loop to reach its end, but it was left by break or return}}
  for (Tile k : range(8)) {
    x = x + cast(k, f32);
    break;
  }
  store(a, {0}, x);
}

KILN_ERRORS(Loops, Return, (View a), row) {
  // expected-error@+1 {{expected the body of a traced loop to reach its end, but it was left by break or return}}
  for (Tile k : range(8)) {
    store(a, {k}, 1);
    return;
  }
}

// A condition is a scalar boolean.
KILN_ERRORS(Loops, WhileConditionIsBoolScalar, (View a), row) {
  // expected-error@+1 {{'repeat_while' expected a boolean scalar as condition, but got i64 scalar}}
  for (Tile k : repeat_while([&] { return program_id(); }))
    store(a, {k}, 1);
  // expected-error@+1 {{'repeat_while' expected a boolean scalar as condition, but got boolean[4]}}
  for (Tile k : repeat_while([&] { return iota(4) < 2; }))
    store(a, {k}, 1);
}

// The condition is evaluated repeatedly: a tile that it assigned would differ in each iteration.
KILN_ERRORS(Loops, WhileConditionChangesATile, (View a), row) {
  Tile x = zeros(f32, {4}); // expected-note {{declared here}}
  // expected-error@+1 {{the condition of 'repeat_while' must not assign to a tile declared outside it}}
  for (Tile k : repeat_while([&] {
         x = x + 1;
         return reduce_max(x) < 4;
       }))
    store(a, {k}, 1);
}

KILN_ERRORS(Loops, WhileConditionGivesATileItsFirstValue, (View a), row) {
  Tile x; // expected-note {{declared here}}
  // expected-error@+1 {{the condition of 'repeat_while' must not assign to a tile declared outside it}}
  for (Tile k : repeat_while([&] {
         x = zeros(f32, {4});
         return reduce_max(x) < 4;
       }))
    store(a, {k}, 1);
}

// The line of a mistake within it is its own.
KILN_ERRORS(Loops, MistakeInWhileCondition, (View a), row) {
  for (Tile k : repeat_while([&] {
         Tile x;
         // expected-error@+1 {{a tile is used before it is assigned}}
         return x < 4;
       }))
    store(a, {k}, 1);
}

KILN_ERRORS(Loops, WhileIsReused, (View a), row) {
  Tile n = 0;
  // expected-error@+1 {{expected a range to be looped over once, where it is written; write it in the 'for'}}
  Loop loop = repeat_while([&] { return n < 4; });
  for (Tile k : loop)
    n = n + 1;
  for (Tile k : loop)
    store(a, {k}, 2);
}

KILN_ERRORS(Loops, WhileChangesAShape, (View a), row) {
  Tile x = zeros(f32, {4}); // expected-note {{declared here}}
  for (Tile k : repeat_while([&] { return reduce_max(x) < 4; }))
    // expected-error@+1 {{a tile that a loop body changes must keep its type and shape f32[4], but got f32[8x4]}}
    x = x + zeros(f32, {8, 1});
  store(a, {0}, x);
}

// The hint for a scalar that becomes a tile has the initial value.
KILN_ERRORS(Loops, ScalarBecomesATile, (View a), row) {
  Tile total = 0.0; // expected-note {{declared here}}
  for (Tile k : range(8))
    // expected-error@+1 {{f32 scalar, but got f32[4]; begin with that shape, such as zeros(f32, {4})}}
    total += zeros(f32, {4});
  store(a, {0}, total);
}

// --- What leaves -----------------------------------------------------------------------------------------------------

KILN_ERRORS(Leaves, NoLoopAround, (View a), row) {
  // expected-error@+1 {{'break_if' is not supported outside a traced loop, 'range' or 'repeat_while'}}
  break_if(program_id() == 0);
  // expected-error@+1 {{'continue_if' is not supported outside a traced loop, 'range' or 'repeat_while'}}
  if_(program_id() == 1, [&] { continue_if(program_id() == 0); });
  store(a, {0}, 1);
}

KILN_ERRORS(Leaves, ConditionIsBoolScalar, (View a), row) {
  for (Tile k : range(8)) {
    // expected-error@+1 {{'break_if' expected a boolean scalar as condition, but got i64 scalar}}
    break_if(k);
    // expected-error@+1 {{'continue_if' expected a boolean scalar as condition, but got boolean[4]}}
    continue_if(iota(4) == 0);
  }
  // expected-error@+1 {{'return_if' expected a boolean scalar as condition, but got f32 scalar}}
  return_if(0.5);
  store(a, {0}, 1);
}

KILN_ERRORS(Leaves, InACondition, (View a), row) {
  for (Tile i : range(8))
    for (Tile k : repeat_while([&] {
           // expected-error@+1 {{'break_if' is not supported in the condition of a loop}}
           break_if(i == 0);
           // expected-error@+1 {{'return_if' is not supported in the condition of a loop}}
           return_if(i == 1);
           return i < 4;
         }))
      store(a, {k}, 1);
}

KILN_ERRORS(Leaves, InAFunction, (View a), row) {
  Tile x = scan(load(a, {0}, {8}), 0, [&](Tile left, Tile right) {
    // expected-error@+1 {{'return_if' is not supported in the function of a scan or reduction}}
    return_if(left > right);
    return left + right;
  });
  store(a, {0}, x);
}

// The code after a break_if keeps the types and shapes of loop-carried tiles, too.
KILN_ERRORS(Leaves, TypeChangesBehindOne, (View a), row) {
  Tile x = zeros(f32, {4}); // expected-note {{declared here}}
  for (Tile k : range(8)) {
    break_if(k == 3);
    // expected-error@+1 {{must keep its type and shape f32[4], but got bf16[4]; use cast(), or begin with that type}}
    x = cast(x, bf16);
  }
  store(a, {0}, x);
}

// A tile that gets its first value after the loop exit belongs to the iteration.
KILN_ERRORS(Leaves, TileSetBehindOne, (View a), row) {
  Tile x;
  for (Tile k : range(8)) {
    break_if(k == 3);
    x = zeros(f32, {4}); // expected-note {{computed here}}
  }
  // expected-error@+1 {{a tile is used outside the loop or branch body that computed it}}
  store(a, {0}, x);
}

KILN_ERRORS(Leaves, LeavesNest, (View a), row) {
  for (int i = 0; i < 100; ++i)
    // expected-error@+1 {{kernel 'LeavesNest' nests loops and branches more than 64 deep}}
    return_if(program_id() == i);
  store(a, {0}, 1);
}

// --- Hints -----------------------------------------------------------------------------------------------------------

KILN_ERRORS(Hints, OutsideTheirRange, (View a), row) {
  // expected-error@+1 {{'range' expected to be unrolled from 1 to 64 times, but got 0}}
  for (Tile k : range(0, 8, 1, {.unroll = 0}))
    store(a, {k}, 1);
  // expected-error@+1 {{'range' expected from 0 to 64 stages, but got -1}}
  for (Tile k : range(0, 8, 1, {.stages = -1}))
    store(a, {k}, 1);
  // expected-error@+1 {{'range' with stages = 3 requires pipeline = true}}
  for (Tile k : range(0, 8, 1, {.stages = 3, .pipeline = false}))
    store(a, {k}, 1);
  // expected-error@+1 {{'range' does not support unroll, pipeline and stages for a loop with break_if()}}
  for (Tile k : range(0, 8, 1, {.unroll = 2}))
    break_if(k == 3);
}

// --- Carried tiles ---------------------------------------------------------------------------------------------------

// The line that changes the type, and the line where the tile was declared.
KILN_ERRORS(Loops, CarriedTypeChanges, (View a), row) {
  Tile x = zeros(f32, {4}); // expected-note {{declared here}}
  for (Tile k : range(8)) {
    // expected-error@+1 {{must keep its type and shape f32[4], but got bf16[4]; use cast(), or begin with that type}}
    x = cast(x, bf16);
  }
  store(a, {0}, x);
}

KILN_ERRORS(Loops, CarriedShapeChanges, (View a), row) {
  Tile x = zeros(f32, {4}); // expected-note {{declared here}}
  for (Tile k : range(8)) {
    // expected-error@+1 {{a tile that a loop body changes must keep its type and shape f32[4], but got f32[8x4]}}
    x = x + zeros(f32, {8, 1});
  }
  store(a, {0}, x);
}

KILN_ERRORS(Loops, TileDestroyedInBody, (View a), row) {
  std::optional<Tile> x = zeros(f32, {4}); // expected-note {{declared here}}
  // expected-error@+1 {{a tile declared before a loop body is destroyed inside it}}
  for (Tile k : range(8))
    x.reset();
  store(a, {0}, 1);
}

KILN_ERRORS(Loops, StepOfZero, (View a), row) {
  // expected-error@+1 {{'range' expected a step other than 0, but got 0}}
  for (Tile k : range(0, 8, 0))
    store(a, {k}, 1);
}

// A number that replaces a scalar takes its type, which does not hold this one.
KILN_ERRORS(Tiles, AssignedNumberDoesNotFit, (View a), row) {
  Tile small = full(i8, {}, 1);
  // expected-error@+1 {{'Tile' expected a number that fits i8, but got 300}}
  small = 300;
  store(a, {small}, 1);
}

// After a mistake in a bound the body's own mistakes are reported too.
KILN_ERRORS(Loops, BoundsAreIntegerScalars, (View a), row) {
  // expected-error@+1 {{'range' expected an integer scalar as end, but got f32 scalar}}
  for (Tile k : range(full(f32, {}, 8)))
    // expected-error@+1 {{'store' expected 1 offset for a view of rank 1, but got 2}}
    store(a, {k, k}, 1);
  // expected-error@+1 {{'range' expected an integer scalar as begin, but got i32[2]}}
  for (Tile k : range(iota(2), 8))
    store(a, {k}, 1);
}

KILN_ERRORS(Loops, RangeIsReused, (View a), row) {
  // expected-error@+1 {{expected a range to be looped over once, where it is written; write it in the 'for'}}
  Loop loop = range(8);
  for (Tile k : loop)
    store(a, {k}, 1);
  for (Tile k : loop)
    store(a, {k}, 2);
}

KILN_ERRORS(Loops, RangeIsLoopedOverElsewhere, (View a), row) {
  // expected-error@+1 {{expected a range to be looped over once, where it is written; write it in the 'for'}}
  Loop loop = range(8);
  for (Tile j : range(2))
    for (Tile k : loop)
      store(a, {k + j}, 1);
}

// Each early exit of a loop is an error of its own.
KILN_ERRORS(Loops, ReturnFromNest, (View a), row) {
  // expected-error@+1 {{expected the body of a traced loop to reach its end, but it was left by break or return}}
  for (Tile i : range(4)) {
    // expected-error@+1 {{expected the body of a traced loop to reach its end, but it was left by break or return}}
    for (Tile k : range(8)) {
      store(a, {k + i}, 1);
      if (a.rank() == 1)
        return;
    }
  }
}

// A mixed operand promotes, and the sum with it.
KILN_ERRORS(Loops, CarriedTypeIsPromoted, (View a), row) {
  Tile count = zeros(i32, {4}); // expected-note {{declared here}}
  for (Tile k : range(8))
    // expected-error@+1 {{a tile that a loop body changes must keep its type and shape i32[4], but got f32[4]}}
    count = count + 0.5;
  store(a, {0}, cast(count, f32));
}

// A growing vector moves its tiles: the old ones are destroyed inside the body.
KILN_ERRORS(Loops, VectorOfTilesGrowsInBody, (View a), row) {
  std::vector<Tile> tiles;
  tiles.push_back(zeros(f32, {4})); // expected-note {{declared here}}
  // expected-error@+1 {{a tile declared before a loop body is destroyed inside it}}
  for (Tile k : range(8))
    tiles.push_back(tiles[0] + 1);
  store(a, {0}, 1);
}

// A lambda captures a tile of the iteration by value.
KILN_ERRORS(Loops, TileCapturedBeyondItsLoop, (View a), row) {
  std::function<Tile()> later;
  for (Tile k : range(8)) {
    Tile x = cast(k, f32);         // expected-note {{computed here}}
    later = [=] { return x * 2; }; // expected-error {{used outside the loop or branch body that computed}}
  }
  store(a, {0}, later());
}

// --- when ------------------------------------------------------------------------------------------------------------

KILN_ERRORS(Branches, ChangedShape, (View a), row) {
  Tile x = zeros(f32, {4}); // expected-note {{declared here}}
  // expected-error@+1 {{a tile that a branch changes must keep its type and shape f32[4], but got f32[2]}}
  if_(program_id() == 0, [&] { x = zeros(f32, {2}); });
  store(a, {0}, x);
}

KILN_ERRORS(Branches, TileSetOnOneSide, (View a), row) {
  Tile x;
  // expected-note@+1 {{computed here}}
  if_(program_id() == 0, [&] { x = zeros(f32, {4}); });
  // expected-error@+1 {{a tile is used outside the loop or branch body that computed it}}
  store(a, {0}, x);
}

KILN_ERRORS(Branches, SidesDisagree, (View a), row) {
  Tile x; // expected-note {{declared here}}
  if_(
      program_id() == 0, [&] { x = zeros(f32, {4}); },
      // expected-error@+1 {{a tile that a branch changes must keep its type and shape f32[4], but got i32[4]}}
      [&] { x = zeros(i32, {4}); });
  store(a, {0}, 1);
}

KILN_ERRORS(Branches, TileDestroyedInSide, (View a), row) {
  std::optional<Tile> x = zeros(f32, {4}); // expected-note {{declared here}}
  // expected-error@+1 {{a tile declared before a branch body is destroyed inside it}}
  if_(program_id() == 0, [&] { x.reset(); });
  store(a, {0}, 1);
}

KILN_ERRORS(Branches, ConditionIsBoolScalar, (View a), row) {
  // expected-error@+1 {{'if_' expected a boolean scalar as condition, but got i64 scalar}}
  if_(program_id(), [&] { store(a, {0}, 1); });
  // expected-error@+1 {{'if_' expected a boolean scalar as condition, but got boolean[4]}}
  if_(iota(4) < 2, [&] { store(a, {0}, 1); });
}

// --- Traces without an end -------------------------------------------------------------------------------------------

// Tracing enters every branch, whatever its condition will be.
Tile countDown(Tile x, Tile n) {
  Tile result = x;
  // expected-error@+1 {{kernel 'RecursionInBranch' nests loops and branches more than 64 deep}}
  if_(n > 0, [&] { result = countDown(x + 1, n - 1); });
  return result;
}
void recursionInBranch(View a) { store(a, {0}, countDown(load(a, {0}, {4}), program_id())); }
const ErrorCase recursionInBranchCase("Endless", "RecursionInBranch", recursionInBranch, {row});

void descend(View a, Tile n) {
  // expected-error@+1 {{kernel 'RecursionInLoop' nests loops and branches more than 64 deep}}
  for (Tile k : range(n))
    descend(a, k);
}
void recursionInLoop(View a) { descend(a, a.dim(0)); }
const ErrorCase recursionInLoopCase("Endless", "RecursionInLoop", recursionInLoop, {row});

KILN_ERRORS(Endless, HostLoop, (View a), row) {
  Tile x = zeros(f32, {4});
  while (a.rank() == 1)
    x = x + 1; // expected-error {{has more than 16384 operations: use range() in place of host loops, which unroll}}
}

// Each call uses 4 KB of stack, which is exhausted before the limit of operations.
Tile deeper(Tile x, int depth) {
  volatile char room[4096] = {};
  // expected-error@+1 {{bytes of stack deep: end the recursion by a host condition}}
  x = x + room[0];
  return depth < 0 ? x : deeper(x, depth + 1) + room[1];
}
void hostRecursion(View a) { store(a, {0}, deeper(zeros(i32, {4}), 0)); }
const ErrorCase hostRecursionCase("Endless", "HostRecursion", hostRecursion, {row});

// --- Traces ----------------------------------------------------------------------------------------------------------

void inner(View a) { store(a, {0}, 1); }
// expected-error@+1 {{expected no trace within a trace, but kernel 'inner' was traced in kernel 'Nested'}}
const Kernel innerKernel = kernel("inner", inner);
void nested(View a) {
  auto context = makeContext();
  trace(*context, innerKernel, {{row}, {}}, "");
  store(a, {0}, 1);
}
// expected-note@+1 {{the outer kernel is registered here}}
const ErrorCase nestedCase("Traces", "Nested", nested, {row});

void throws(View) { throw std::runtime_error("expected an even number of heads, but got 3"); }
// expected-error@+1 {{expected an even number of heads, but got 3}}
const ErrorCase throwsCase("Traces", "KernelThrows", throws, {row});

void twoViews(View, View) {}
// expected-error@+1 {{kernel 'ArgumentCount': expected 2 arguments, but got 1}}
const ErrorCase countCase("Traces", "ArgumentCount", twoViews, {row});

void viewAndScalar(View, Tile) {}
// expected-error@+1 {{kernel 'k': expected 'factor' to be a scalar, but got a tensor}}
const ErrorCase kindCase("Traces", "ArgumentKind", kernel("k", viewAndScalar, {"x", "factor"}), {row, row});

// expected-error@+1 {{kernel 'NamelessKind': expected argument 1 to be a scalar, but got a tensor}}
const ErrorCase namelessCase("Traces", "NamelessKind", viewAndScalar, {row, row});

// expected-error@+1 {{kernel 'TensorForScalar': expected argument 0 to be a tensor, but got a scalar}}
const ErrorCase tensorCase("Traces", "TensorForScalar", inner, {scalar(f32)});

// expected-error@+1 {{kernel 'ViewRank': expected argument 0 to be of rank 1 to 5, but got rank 0}}
const ErrorCase rankCase("Traces", "ViewRank", inner, {view(f32, {})});

} // namespace
} // namespace kiln::testing
