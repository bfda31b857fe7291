// Which tiles a loop carries and a branch returns. Each test is a small kernel and the program that it must become:
// the operations of the function's body after canonicalisation.

#include "test/dsl/Tracing.h"

#include <array>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

const ArgFacts numbers = view(i64, {64});

using kiln::testing::program;
template <class... P> std::string program(void (*function)(P...)) { return program(function, {numbers}); }

// Two variables that hold one value are two variables: only the one that changes is carried.
void alias(View v) {
  Tile a = program_id(), b = a;
  for (Tile k : range(8))
    a = a + b;
  store(v, {0}, a);
}
TEST(Loops, AliasIsASnapshot) {
  EXPECT_EQ(program(alias), R"(%0 = tile.program_id 0
%1 = scf.for %arg1 = 0 to 8 step 1 iter_args(%arg2 = %0) -> (i64)  : i64 {
  %3 = arith.addi %arg2, %0 : i64
  scf.yield %3 : i64
}
%2 = tile.splat %1 : i64 -> tensor<1xi64>
tile.store %2, %arg0[0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
)");
}

void swapped(View v) {
  Tile a = program_id(0), b = program_id(1);
  for (Tile k : range(8))
    std::swap(a, b);
  store(v, {0}, a);
}
TEST(Loops, SwapCarriesBothCrossed) {
  EXPECT_EQ(program(swapped), R"(%0 = tile.program_id 0
%1 = tile.program_id 1
%2:2 = scf.for %arg1 = 0 to 8 step 1 iter_args(%arg2 = %0, %arg3 = %1) -> (i64, i64)  : i64 {
  scf.yield %arg3, %arg2 : i64, i64
}
%3 = tile.splat %2#0 : i64 -> tensor<1xi64>
tile.store %3, %arg0[0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
)");
}

void unchanged(View v) {
  Tile a = program_id(), b = a * 3;
  for (Tile k : range(8))
    store(v, {k}, b);
}
TEST(Loops, UnchangedTilesAreNotCarried) {
  EXPECT_EQ(program(unchanged), R"(%0 = tile.program_id 0
%1 = arith.muli %0, 3 : i64
scf.for %arg1 = 0 to 8 step 1  : i64 {
  %2 = tile.splat %1 : i64 -> tensor<1xi64>
  tile.store %2, %arg0[%arg1] : tensor<1xi64>, memref<?xi64, strided<[1]>>
}
)");
}

struct State {
  Tile sum;
  std::array<Tile, 2> last;
};
void aggregate(View v) {
  State s{program_id(0), {program_id(1), program_id(2)}};
  for (Tile k : range(8)) {
    s.sum = s.sum + s.last[0];
    s.last[0] = s.last[1];
    s.last[1] = k;
  }
  store(v, {0}, s.sum);
}
TEST(Loops, StructsAndArraysOfTiles) {
  EXPECT_EQ(program(aggregate), R"(%0 = tile.program_id 0
%1 = tile.program_id 1
%2 = tile.program_id 2
%3:3 = scf.for %arg1 = 0 to 8 step 1 iter_args(%arg2 = %0, %arg3 = %1, %arg4 = %2) -> (i64, i64, i64)  : i64 {
  %5 = arith.addi %arg2, %arg3 : i64
  scf.yield %5, %arg4, %arg1 : i64, i64, i64
}
%4 = tile.splat %3#0 : i64 -> tensor<1xi64>
tile.store %4, %arg0[0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
)");
}

Tile twice(Tile x) {
  x = x + x; // a copy: the caller's tile stays
  return x;
}
void grow(Tile &x) { x = x * 3; }
void functions(View v) {
  Tile a = program_id();
  Tile &same = a;
  auto add = [&](Tile by) { same = same + by; };
  for (Tile k : range(8)) {
    add(twice(a));
    grow(a);
  }
  store(v, {0}, a);
}
TEST(Loops, ReferencesChangeAndCopiesDoNot) {
  EXPECT_EQ(program(functions), R"(%0 = tile.program_id 0
%1 = scf.for %arg1 = 0 to 8 step 1 iter_args(%arg2 = %0) -> (i64)  : i64 {
  %3 = arith.addi %arg2, %arg2 : i64
  %4 = arith.addi %arg2, %3 : i64
  %5 = arith.muli %4, 3 : i64
  scf.yield %5 : i64
}
%2 = tile.splat %1 : i64 -> tensor<1xi64>
tile.store %2, %arg0[0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
)");
}

void nested(View v) {
  Tile outer = program_id(0), inner = program_id(1);
  for (Tile i : range(4)) {
    for (Tile j : range(i, 8, 2))
      inner = inner + j;
    outer = outer + inner;
  }
  store(v, {0}, outer);
}
TEST(Loops, NestedLoopsCarryThrough) {
  EXPECT_EQ(program(nested), R"(%0 = tile.program_id 0
%1 = tile.program_id 1
%2:2 = scf.for %arg1 = 0 to 4 step 1 iter_args(%arg2 = %0, %arg3 = %1) -> (i64, i64)  : i64 {
  %4 = scf.for %arg4 = %arg1 to 8 step 2 iter_args(%arg5 = %arg3) -> (i64)  : i64 {
    %6 = arith.addi %arg5, %arg4 : i64
    scf.yield %6 : i64
  }
  %5 = arith.addi %arg2, %4 : i64
  scf.yield %5, %4 : i64, i64
}
%3 = tile.splat %2#0 : i64 -> tensor<1xi64>
tile.store %3, %arg0[0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
)");
}

// If the inner loop does not change the tile, its value is still that from before the loop.
void untouchedInner(View v) {
  Tile a = program_id(0);
  for (Tile i : range(4)) {
    a = a + 1;
    for (Tile j : range(4))
      store(v, {j}, a);
  }
}
TEST(Loops, InnerLoopReadsCarriedTile) {
  EXPECT_EQ(program(untouchedInner), R"(%0 = tile.program_id 0
%1 = scf.for %arg1 = 0 to 4 step 1 iter_args(%arg2 = %0) -> (i64)  : i64 {
  %2 = arith.addi %arg2, 1 : i64
  scf.for %arg3 = 0 to 4 step 1  : i64 {
    %3 = tile.splat %2 : i64 -> tensor<1xi64>
    tile.store %3, %arg0[%arg3] : tensor<1xi64>, memref<?xi64, strided<[1]>>
  }
  scf.yield %2 : i64
}
)");
}

// Host control flow is decided while tracing: `for` unrolls, `continue` and `if` choose.
void host(View v) {
  for (Tile k : range(8)) {
    for (int i = 0; i < 3; ++i) {
      if (i == 1)
        continue;
      store(v, {k + i}, i);
    }
    if (v.rank() == 1)
      continue;
    store(v, {k}, 9);
  }
}
TEST(Loops, HostControlFlowIsGone) {
  EXPECT_EQ(program(host), R"(scf.for %arg1 = 0 to 8 step 1  : i64 {
  tile.store dense<0>, %arg0[%arg1] : tensor<1xi64>, memref<?xi64, strided<[1]>>
  %0 = arith.addi %arg1, 2 : i64
  tile.store dense<2>, %arg0[%0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
}
)");
}

void assignedFirst(View v) {
  Tile t;
  for (Tile k : range(8)) {
    t = k * 2;
    store(v, {k}, t);
  }
}
TEST(Loops, UnsetTileMayLiveInOneIteration) {
  EXPECT_EQ(program(assignedFirst), R"(scf.for %arg1 = 0 to 8 step 1  : i64 {
  %0 = arith.muli %arg1, 2 : i64
  %1 = tile.splat %0 : i64 -> tensor<1xi64>
  tile.store %1, %arg0[%arg1] : tensor<1xi64>, memref<?xi64, strided<[1]>>
}
)");
}

void anyStep(View v, Tile step) {
  for (Tile k : range(0, 8, step))
    store(v, {k}, 1);
}
TEST(Loops, SignOfADynamicStepTurnsTheLoop) {
  EXPECT_EQ(program(anyStep, {numbers, scalar(i64)}), R"(%0 = arith.shrsi %arg1, 63 : i64
%1 = arith.xori %arg1, %0 : i64
%2 = arith.subi %1, %0 : i64
%3 = arith.minui %2, 9223372036854775807 : i64
%4 = arith.maxsi %3, 1 : i64
%5 = arith.xori %0, 8 : i64
scf.for %arg2 = %0 to %5 step %4  : i64 {
  %6 = arith.xori %arg2, %0 : i64
  tile.store dense<1>, %arg0[%6] : tensor<1xi64>, memref<?xi64, strided<[1]>>
}
)");
}

void down(View v) {
  for (Tile k : range(8, 0, -2))
    store(v, {k}, 1);
}
TEST(Loops, CountDownAsTheirMirrorImage) {
  EXPECT_EQ(program(down), R"(scf.for %arg1 = -9 to -1 step 2  : i64 {
  %0 = arith.subi -1, %arg1 : i64
  tile.store dense<1>, %arg0[%0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
}
)");
}

// --- Branches --------------------------------------------------------------------------------------------------------

void oneSide(View v) {
  Tile a = program_id(0), b = program_id(1);
  if_(a == 0, [&] { b = b + 1; });
  store(v, {a}, b);
}
TEST(Branches, OtherSideKeepsTheValue) {
  EXPECT_EQ(program(oneSide), R"(%0 = tile.program_id 0
%1 = tile.program_id 1
%2 = arith.cmpi eq, %0, 0 : i64
%3 = scf.if %2 -> (i64) {
  %5 = arith.addi %1, 1 : i64
  scf.yield %5 : i64
} else {
  scf.yield %1 : i64
}
%4 = tile.splat %3 : i64 -> tensor<1xi64>
tile.store %4, %arg0[%0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
)");
}

void bothSides(View v) {
  Tile a = program_id(0), b, c = program_id(1);
  if_(
      a == 0,
      [&] {
        b = a + 1;
        store(v, {0}, b);
      },
      [&] {
        std::swap(a, c);
        b = a;
      });
  store(v, {a}, b + c);
}
TEST(Branches, SidesSetAnUnsetTileAndSwap) {
  EXPECT_EQ(program(bothSides), R"(%0 = tile.program_id 0
%1 = tile.program_id 1
%2 = arith.cmpi eq, %0, 0 : i64
%3 = arith.select %2, %0, %1 : i64
%4 = arith.select %2, %1, %0 : i64
%5 = scf.if %2 -> (i64) {
  %8 = arith.addi %0, 1 : i64
  %9 = tile.splat %8 : i64 -> tensor<1xi64>
  tile.store %9, %arg0[0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
  scf.yield %8 : i64
} else {
  scf.yield %1 : i64
}
%6 = arith.addi %5, %4 : i64
%7 = tile.splat %6 : i64 -> tensor<1xi64>
tile.store %7, %arg0[%3] : tensor<1xi64>, memref<?xi64, strided<[1]>>
)");
}

// A tile without a value is unset again in each branch: the value of one is out of scope in the next, and no change.
void unsetInBranches(View v) {
  Tile t;
  if_(program_id(0) > 1, [&] {
    t = load(v, {0}, {8});
    store(v, {8}, t);
  });
  if_(
      program_id(0) > 2,
      [&] {
        t = load(v, {1}, {4});
        store(v, {16}, t);
      },
      [&] { store(v, {24}, 1); });
  for (Tile k : range(4))
    if_(k > 2, [&] {
      t = load(v, {k}, {8});
      store(v, {k}, t);
    });
  if_(program_id(0) > 3, [&] { t = program_id(1); }, [&] { t = program_id(2); });
  store(v, {t}, t);
}
void ownInBranches(View v) {
  if_(program_id(0) > 1, [&] {
    Tile t = load(v, {0}, {8});
    store(v, {8}, t);
  });
  if_(
      program_id(0) > 2,
      [&] {
        Tile t = load(v, {1}, {4});
        store(v, {16}, t);
      },
      [&] { store(v, {24}, 1); });
  for (Tile k : range(4))
    if_(k > 2, [&] {
      Tile t = load(v, {k}, {8});
      store(v, {k}, t);
    });
  Tile t;
  if_(program_id(0) > 3, [&] { t = program_id(1); }, [&] { t = program_id(2); });
  store(v, {t}, t);
}
TEST(Branches, AnUnsetTileMayLiveInOneAfterTheOther) {
  const std::string text = program(unsetInBranches);
  EXPECT_NE(text.find("scf.if"), std::string::npos);
  EXPECT_EQ(text, program(ownInBranches));
}

void effectOnly(View v) {
  if_(program_id() == 0, [&] { store(v, {0}, 1); });
}
TEST(Branches, NoResultNoElse) {
  EXPECT_EQ(program(effectOnly), R"(%0 = tile.program_id 0
%1 = arith.cmpi eq, %0, 0 : i64
scf.if %1 {
  tile.store dense<1>, %arg0[0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
}
)");
}

void branchInLoop(View v) {
  Tile best = program_id(), unused = best;
  for (Tile k : range(v.dim(0))) {
    Tile x = load(v, {k}, {});
    if_(x > best, [&] {
      best = x;
      for (Tile j : range(k))
        best = best + j;
    });
  }
  store(v, {0}, best + unused);
}
TEST(Branches, InLoopsWithLoopsInside) {
  EXPECT_EQ(program(branchInLoop), R"(%0 = tile.program_id 0
%1 = tile.dim %arg0, 0 : memref<?xi64, strided<[1]>>
%2 = scf.for %arg1 = 0 to %1 step 1 iter_args(%arg2 = %0) -> (i64)  : i64 {
  %5 = tile.load %arg0[%arg1] : memref<?xi64, strided<[1]>> -> tensor<1xi64>
  %6 = tile.reshape %5 : tensor<1xi64> -> i64
  %7 = arith.cmpi sgt, %6, %arg2 : i64
  %8 = scf.if %7 -> (i64) {
    %9 = scf.for %arg3 = 0 to %arg1 step 1 iter_args(%arg4 = %6) -> (i64)  : i64 {
      %10 = arith.addi %arg4, %arg3 : i64
      scf.yield %10 : i64
    }
    scf.yield %9 : i64
  } else {
    scf.yield %arg2 : i64
  }
  scf.yield %8 : i64
}
%3 = arith.addi %2, %0 : i64
%4 = tile.splat %3 : i64 -> tensor<1xi64>
tile.store %4, %arg0[0] : tensor<1xi64>, memref<?xi64, strided<[1]>>
)");
}

// Host side effects of a kernel happen once for each trace: two traces, and one more for each depth of nesting. The
// traces of nested bodies do not multiply.
int visits[3];
void visited(View v) {
  ++visits[0];
  for (Tile k : range(4)) {
    ++visits[1];
    if_(k > 1, [&] {
      ++visits[2];
      store(v, {k}, 1);
    });
  }
}
TEST(Loops, HostEffectsHappenTwiceAndOnceForEachDepth) {
  program(visited);
  EXPECT_EQ(visits[0], 4);
  EXPECT_EQ(visits[1], 4);
  EXPECT_EQ(visits[2], 4);
}

void nestTo(View a, int depth) {
  if (depth == 0)
    store(a, {0}, 1);
  else if (depth % 2)
    if_(program_id() > depth, [&] { nestTo(a, depth - 1); });
  else
    for (Tile k : range(depth))
      nestTo(a, depth - 1);
}
TEST(Loops, NestDeeply) {
  EXPECT_NE(
      programOf(kernel("k", +[](View a) { nestTo(a, 64); }), {view(f32, {8})}).find("tile.store"), std::string::npos);
}

} // namespace
} // namespace kiln::testing
