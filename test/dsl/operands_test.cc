// Numbers that become tiles, and the types and shapes of operands and results.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {

// --- Numbers ---------------------------------------------------------------------------------------------------------

// Numbers that become tiles: scalars, constants with a number for each element, and compound assignment.

namespace {

const ArgFacts vector = view(f32, {64}), integers = view(i32, {64, 64});

void scalars(View a) {
  Tile n = 0, x = 0.5, yes = true;
  EXPECT_EQ(n.type(), i64);
  EXPECT_EQ(x.type(), f32);
  EXPECT_EQ(yes.type(), boolean);
  EXPECT_EQ(n.rank() + x.rank() + yes.rank(), 0);
  for (Tile k : range(8))
    n += k;
  x = 2;
  EXPECT_EQ(x.type(), f32);
  store(a, {n}, where(yes, 1.0f, x));
}
TEST(Scalars, ATileMayBeginAsANumber) {
  EXPECT_EQ(program(scalars, {vector}), R"(%0 = scf.for %arg1 = 0 to 8 step 1 iter_args(%arg2 = 0) -> (i64)  : i64 {
  %1 = arith.addi %arg2, %arg1 : i64
  scf.yield %1 : i64
}
tile.store dense<1.000000e+00>, %arg0[%0] : tensor<1xf32>, memref<?xf32, strided<[1]>>
)");
}

void tables(View a, View n) {
  store(a, {0}, constant(f32, {3}, {1, -0.5, infinity}));
  store(n, {0, 0}, constant(i32, {2, 2}, {1, 2, -3, 2147483647}));
  store(a, {0}, constant(f32, {}, {7}));
  store(a, {0}, constant(f32, {2}, {7, 7}));
}
TEST(Constants, HaveANumberForEachElement) {
  EXPECT_EQ(
      program(tables, {vector, integers}),
      R"(tile.store dense<[1.000000e+00, -5.000000e-01, 0x7F800000]>, %arg0[0] : tensor<3xf32>, memref<?xf32, strided<[1]>>
tile.store dense<[[1, 2], [-3, 2147483647]]>, %arg1[0, 0] : tensor<2x2xi32>, memref<?x?xi32, strided<[?, 1]>>
tile.store dense<7.000000e+00>, %arg0[0] : tensor<1xf32>, memref<?xf32, strided<[1]>>
tile.store dense<7.000000e+00>, %arg0[0] : tensor<2xf32>, memref<?xf32, strided<[1]>>
)");
}

void compound(View n) {
  Tile x = load(n, {0, 0}, {8}), y = load(n, {1, 0}, {8});
  x %= y;
  x &= y;
  x |= 5;
  x ^= y;
  x <<= 2;
  x >>= y;
  store(n, {0, 0}, x);
}
void spelled(View n) {
  Tile x = load(n, {0, 0}, {8}), y = load(n, {1, 0}, {8});
  store(n, {0, 0}, ((((((x % y) & y) | 5) ^ y) << 2) >> y));
}
TEST(Scalars, CompoundAssignmentIsTheFunctionAndTheAssignment) {
  const std::string text = program(compound, {integers});
  EXPECT_NE(text.find("tile.shr"), std::string::npos) << text;
  EXPECT_EQ(text, program(spelled, {integers}));
}

} // namespace

// --- Types -----------------------------------------------------------------------------------------------------------

// Types of operands and results: promotion of every pair, and unsigned results.

namespace {

/// Whether neither of two integer types, or of two float types, represents all numbers of the other.
bool clashes(Type a, Type b) {
  if (isPair(a) || isPair(b))
    return a != b;
  if ((a == f8e8m0 && b == f16) || (a == f16 && b == f8e8m0))
    return true;
  if (a == b || a == boolean || b == boolean || isFloat(a) != isFloat(b))
    return false;
  if (isFloat(a))
    return bytesOf(a) == bytesOf(b);
  const Type unsignedType = isUnsigned(a) ? a : b, other = isUnsigned(a) ? b : a;
  return isUnsigned(unsignedType) && !isUnsigned(other) && bytesOf(other) <= bytesOf(unsignedType);
}

/// Every pair of types, and each type with numbers: the language's rules for mixed operands.
void mixed(View) {
  for (const Type i : everyType)
    for (const Type j : everyType) {
      if (clashes(i, j))
        continue;
      const Type high = std::max(i, j); // the order of the types is that of promotion
      Tile a = zeros(i, {3}), b = zeros(j, {});
      EXPECT_EQ(where(true, a, b).type(), high) << nameOf(i) << ", " << nameOf(j);
      if (!hasArithmetic(high))
        continue;
      EXPECT_EQ((a == b).type(), boolean);
      if (high == boolean)
        continue;
      EXPECT_EQ((a * b).type(), high) << nameOf(i) << ", " << nameOf(j);
      EXPECT_EQ(max(a, b).type(), high) << nameOf(i) << ", " << nameOf(j);
      if (i != boolean && hasArithmetic(i)) {
        EXPECT_EQ((a + 1).type(), i);
        EXPECT_EQ((0.5 - a).type(), isFloat(i) ? i : f32);
      }
    }
}
TEST(Operands, EveryPairOfTypesIsPromoted) { EXPECT_EQ(program(mixed, {view(f32, {64})}), ""); }

/// An unsigned tile stays unsigned in operations that keep its type: moves, selections, loops, branches and reductions.
void unsignedNumbers(View x, Tile n) {
  Tile a = load(x, {0}, {8}), total = n, most = a;
  EXPECT_EQ(a.type(), u32);
  EXPECT_EQ(n.type(), u8);
  for (Tile i : range(4)) {
    EXPECT_EQ(most.type(), u32);
    most = max(most, a);
    if_(i == 2, [&] { total = total + 1; });
  }
  EXPECT_EQ(most.type(), u32);
  EXPECT_EQ(total.type(), u8);
  for (const Tile &same : {transpose(reshape(a, {2, 4})), broadcast(a, {3, 8}), flip(a), where(a > 3, a, 7), ~a, -a,
                           abs(a), min(a, 3), a / 2, a % 2, a >> 1, clamp(a, 1, 5), full(u32, {2}, 5), cumsum(a),
                           cummax(a), cast(bitcast(a, i32), u32), bitcast(cast(a, i32), u32)})
    EXPECT_EQ(same.type(), u32);
  for (const Tile &same : {reduce_max(a), reduce_min(a), sum(a), prod(a), reduce_xor(a), sum(cast(a, u16))})
    EXPECT_EQ(same.type(), u32);
  EXPECT_EQ(argmax(a).type(), i32);
  EXPECT_EQ(argmin(a).type(), i32);
  EXPECT_EQ(sum(cast(a, i16)).type(), i32);
  EXPECT_EQ(cast(a, i32).type(), i32);
  EXPECT_EQ((cast(a, i32) + cast(a, i32)).type(), i32);
  EXPECT_EQ((a + cast(a, i64)).type(), i64);
  EXPECT_EQ(reduce(a, 0, [](Tile p, Tile q) { return p / q; }).type(), u32);
}
TEST(Operands, StayUnsigned) { EXPECT_EQ(program(unsignedNumbers, {view(u32, {8}), scalar(u8)}), ""); }

} // namespace

// --- Shapes ----------------------------------------------------------------------------------------------------------

// Reshapes with an extent of −1.

namespace {

void openExtents(View) {
  Tile x = zeros(f32, {4, 6});
  EXPECT_EQ(reshape(x, {8, -1}).shape(), (Shape{8, 3}));
  EXPECT_EQ(reshape(x, {-1}).shape(), (Shape{24}));
  EXPECT_EQ(reshape(x, {2, -1, 12}).shape(), (Shape{2, 1, 12}));
}
TEST(Reshapes, OneExtentFollowsFromTheOthers) { EXPECT_EQ(programOf(kernel("k", openExtents), {view(f32, {64})}), ""); }

} // namespace

} // namespace kiln::testing
