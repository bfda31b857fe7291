// Numbers that become tiles: scalars, constants with a number for each element, and compound assignment.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

template <class... P> std::string program(void (*function)(P...), std::vector<ArgFacts> args) {
  return programOf(kernel("k", function), args);
}
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
  EXPECT_EQ(program(scalars, {vector}), R"(%cst = arith.constant dense<1.000000e+00> : tensor<1xf32>
%c0_i64 = arith.constant 0 : i64
%c8_i64 = arith.constant 8 : i64
%c1_i64 = arith.constant 1 : i64
%0 = scf.for %arg1 = %c0_i64 to %c8_i64 step %c1_i64 iter_args(%arg2 = %c0_i64) -> (i64)  : i64 {
  %1 = arith.addi %arg2, %arg1 : i64
  scf.yield %1 : i64
}
tile.store %cst, %arg0[%0] : tensor<1xf32>, memref<?xf32, strided<[1]>>
)");
}

void tables(View a, View n) {
  store(a, {0}, constant(f32, {3}, {1, -0.5, infinity}));
  store(n, {0, 0}, constant(i32, {2, 2}, {1, 2, -3, 2147483647}));
  store(a, {0}, constant(f32, {}, {7}));
  store(a, {0}, constant(f32, {2}, {7, 7}));
}
TEST(Constants, HaveANumberForEachElement) {
  EXPECT_EQ(program(tables, {vector, integers}), R"(%cst = arith.constant dense<7.000000e+00> : tensor<1xf32>
%cst_0 = arith.constant dense<7.000000e+00> : tensor<2xf32>
%cst_1 = arith.constant dense<[[1, 2], [-3, 2147483647]]> : tensor<2x2xi32>
%cst_2 = arith.constant dense<[1.000000e+00, -5.000000e-01, 0x7F800000]> : tensor<3xf32>
%c0_i64 = arith.constant 0 : i64
tile.store %cst_2, %arg0[%c0_i64] : tensor<3xf32>, memref<?xf32, strided<[1]>>
tile.store %cst_1, %arg1[%c0_i64, %c0_i64] : tensor<2x2xi32>, memref<?x?xi32, strided<[?, 1]>>
tile.store %cst, %arg0[%c0_i64] : tensor<1xf32>, memref<?xf32, strided<[1]>>
tile.store %cst_0, %arg0[%c0_i64] : tensor<2xf32>, memref<?xf32, strided<[1]>>
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
} // namespace kiln::testing
