// The operations that functions emit: promotion, broadcasting, numbers, short shapes, memory, random numbers,
// specialisation. Each test is a kernel and the program that it becomes after canonicalisation.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

const ArgFacts vector = view(f32, {64}), matrix = view(f32, {64, 32}), integers = view(i32, {64}),
               small = view(i8, {64}), mask = view(boolean, {64});

void promotion(View a, View n, Tile h) {
  Tile x = load(a, {0}, {8}), i = load(n, {0}, {8});
  store(a, {0}, x * i);
  store(a, {0}, x * cast(h, bf16));
  store(n, {0}, i + cast(i < 3, i8));
}
TEST(Operands, IntegerWithFloatGivesTheFloat) {
  EXPECT_EQ(program(promotion, {vector, integers, scalar(f32)}),
            R"(%0 = tile.load %arg0[0] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
%1 = tile.load %arg1[0] : memref<?xi32, strided<[1]>> -> tensor<8xi32>
%2 = tile.cast %1 : tensor<8xi32> to tensor<8xf32>
%3 = arith.mulf %0, %2 : tensor<8xf32>
tile.store %3, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
%4 = tile.cast %arg2 : f32 to bf16
%5 = tile.cast %4 : bf16 to f32
%6 = tile.splat %5 : f32 -> tensor<8xf32>
%7 = arith.mulf %0, %6 : tensor<8xf32>
tile.store %7, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
%8 = arith.cmpi slt, %1, dense<3> : tensor<8xi32>
%9 = tile.cast %8 : tensor<8xi1> to tensor<8xi32>
%10 = arith.addi %1, %9 : tensor<8xi32>
tile.store %10, %arg1[0] : tensor<8xi32>, memref<?xi32, strided<[1]>>
)");
}

void stochastic(View a, View bits, View out) {
  store(out, {0}, stochastic_round(load(a, {0}, {8}), bf16, load(bits, {0}, {8})));
}
// A bf16 holds each number of 8-bit floats, so nothing is rounded and no bits are used.
TEST(Operands, StochasticRoundingToATypeThatHoldsTheNumbersIsACast) {
  const auto rounds = [](Type from) {
    return program(stochastic, {view(from, {64}), integers, view(bf16, {64})}).find("arith.") != std::string::npos;
  };
  EXPECT_FALSE(rounds(f8e4m3));
  EXPECT_FALSE(rounds(f8e5m2));
  EXPECT_TRUE(rounds(f32));
}

void literals(View a, View n) {
  Tile x = load(a, {0}, {8}), i = load(n, {0}, {8});
  store(a, {0}, x * 2);
  store(a, {0}, i * 0.5);
  store(n, {0}, i - 1);
  store(n, {0}, where(i == 7, -1, i));
  store(a, {0}, 1);
}
TEST(Operands, NumbersTakeTheTilesType) {
  EXPECT_EQ(program(literals, {vector, integers}),
            R"(%0 = tile.load %arg0[0] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
%1 = tile.load %arg1[0] : memref<?xi32, strided<[1]>> -> tensor<8xi32>
%2 = arith.mulf %0, dense<2.000000e+00> : tensor<8xf32>
tile.store %2, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
%3 = tile.cast %1 : tensor<8xi32> to tensor<8xf32>
%4 = arith.mulf %3, dense<5.000000e-01> : tensor<8xf32>
tile.store %4, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
%5 = arith.subi %1, dense<1> : tensor<8xi32>
tile.store %5, %arg1[0] : tensor<8xi32>, memref<?xi32, strided<[1]>>
%6 = arith.cmpi eq, %1, dense<7> : tensor<8xi32>
%7 = arith.select %6, dense<-1>, %1 : tensor<8xi1>, tensor<8xi32>
tile.store %7, %arg1[0] : tensor<8xi32>, memref<?xi32, strided<[1]>>
tile.store dense<1.000000e+00>, %arg0[0] : tensor<1xf32>, memref<?xf32, strided<[1]>>
)");
}

void broadcasting(View a) {
  Tile column = load(a, {0, 0}, {8, 1}), row = load(a, {0, 0}, {4}), one = load(a, {0, 0}, {});
  store(a, {0, 0}, column + row);
  store(a, {0, 0}, row + one);
  store(a, {0, 0}, broadcast(one, {2, 2}));
}
TEST(Operands, ShapesBroadcastAsInNumPy) {
  EXPECT_EQ(program(broadcasting, {matrix}),
            R"(%0 = tile.load %arg0[0, 0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<8x1xf32>
%1 = tile.load %arg0[0, 0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<1x4xf32>
%2 = tile.reshape %1 : tensor<1x4xf32> -> tensor<4xf32>
%3 = tile.load %arg0[0, 0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<1x1xf32>
%4 = tile.reshape %3 : tensor<1x1xf32> -> f32
%5 = tile.broadcast %0 : tensor<8x1xf32> -> tensor<8x4xf32>
%6 = tile.broadcast %1 : tensor<1x4xf32> -> tensor<8x4xf32>
%7 = arith.addf %5, %6 : tensor<8x4xf32>
tile.store %7, %arg0[0, 0] : tensor<8x4xf32>, memref<?x?xf32, strided<[?, 1]>>
%8 = tile.splat %4 : f32 -> tensor<4xf32>
%9 = arith.addf %2, %8 : tensor<4xf32>
%10 = tile.reshape %9 : tensor<4xf32> -> tensor<1x4xf32>
tile.store %10, %arg0[0, 0] : tensor<1x4xf32>, memref<?x?xf32, strided<[?, 1]>>
%11 = tile.splat %4 : f32 -> tensor<2x2xf32>
tile.store %11, %arg0[0, 0] : tensor<2x2xf32>, memref<?x?xf32, strided<[?, 1]>>
)");
}

void rolling(View a) {
  Tile x = load(a, {0, 0}, {4, 8});
  store(a, {0, 0}, roll(roll(roll(x, 3), -1, 0), 17));
}
TEST(Shapes, RollsCountFromEitherEndAndTurnRound) {
  EXPECT_EQ(program(rolling, {matrix}),
            R"(%0 = tile.load %arg0[0, 0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<4x8xf32>
%1 = tile.rotate %0 by 3 axis 1 : tensor<4x8xf32>
%2 = tile.rotate %1 by 3 axis 0 : tensor<4x8xf32>
%3 = tile.rotate %2 by 1 axis 1 : tensor<4x8xf32>
tile.store %3, %arg0[0, 0] : tensor<4x8xf32>, memref<?x?xf32, strided<[?, 1]>>
)");
}

void comparisons(View a, View m) {
  Tile x = load(a, {0}, {8}), y = load(a, {8}, {8}), p = load(m, {0}, {8}), q = load(m, {8}, {8});
  store(m, {0}, x == y);
  store(m, {0}, x != y);
  store(m, {0}, x <= y);
  store(m, {0}, p < q);
  store(m, {0}, !p);
}
TEST(Arithmetic, ComparisonsAreOrderedButNotEqual) {
  EXPECT_EQ(program(comparisons, {vector, mask}),
            R"(%0 = tile.load %arg0[0] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
%1 = tile.load %arg0[8] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
%2 = tile.load %arg1[0] : memref<?xi8, strided<[1]>> -> tensor<8xi1>
%3 = tile.load %arg1[8] : memref<?xi8, strided<[1]>> -> tensor<8xi1>
%4 = arith.cmpf oeq, %0, %1 : tensor<8xf32>
tile.store %4, %arg1[0] : tensor<8xi1>, memref<?xi8, strided<[1]>>
%5 = arith.cmpf une, %0, %1 : tensor<8xf32>
tile.store %5, %arg1[0] : tensor<8xi1>, memref<?xi8, strided<[1]>>
%6 = arith.cmpf ole, %0, %1 : tensor<8xf32>
tile.store %6, %arg1[0] : tensor<8xi1>, memref<?xi8, strided<[1]>>
%7 = arith.cmpi ult, %2, %3 : tensor<8xi1>
tile.store %7, %arg1[0] : tensor<8xi1>, memref<?xi8, strided<[1]>>
%8 = arith.xori %2, dense<true> : tensor<8xi1>
tile.store %8, %arg1[0] : tensor<8xi1>, memref<?xi8, strided<[1]>>
)");
}

void integerOps(View n) {
  Tile x = load(n, {0}, {8}), y = load(n, {8}, {8});
  const Tile quotient = x / y, rest = x % y; // C++ does not define the order of the operands of +
  store(n, {0}, quotient + rest);
  const Tile left = x << y, right = x >> 3;
  store(n, {0}, left ^ right);
  const Tile negative = -x, inverse = ~y;
  store(n, {0}, negative + inverse);
  store(n, {0}, clamp(abs(x), 1, 5));
  store(n, {0}, fma(x, y, floor(x)));
}
TEST(Arithmetic, Integers) {
  EXPECT_EQ(program(integerOps, {integers}), R"(%0 = tile.load %arg0[0] : memref<?xi32, strided<[1]>> -> tensor<8xi32>
%1 = tile.load %arg0[8] : memref<?xi32, strided<[1]>> -> tensor<8xi32>
%2 = tile.div %0, %1 : tensor<8xi32>
%3 = tile.rem %0, %1 : tensor<8xi32>
%4 = arith.addi %2, %3 : tensor<8xi32>
tile.store %4, %arg0[0] : tensor<8xi32>, memref<?xi32, strided<[1]>>
%5 = tile.shl %0, %1 : tensor<8xi32>
%6 = tile.shr %0, dense<3> : tensor<8xi32>
%7 = arith.xori %5, %6 : tensor<8xi32>
tile.store %7, %arg0[0] : tensor<8xi32>, memref<?xi32, strided<[1]>>
%8 = arith.subi dense<0>, %0 : tensor<8xi32>
%9 = arith.xori %1, dense<-1> : tensor<8xi32>
%10 = arith.addi %8, %9 : tensor<8xi32>
tile.store %10, %arg0[0] : tensor<8xi32>, memref<?xi32, strided<[1]>>
%11 = math.absi %0 : tensor<8xi32>
%12 = arith.maxsi %11, dense<1> : tensor<8xi32>
%13 = arith.minsi %12, dense<5> : tensor<8xi32>
tile.store %13, %arg0[0] : tensor<8xi32>, memref<?xi32, strided<[1]>>
%14 = arith.muli %0, %1 : tensor<8xi32>
%15 = arith.addi %14, %0 : tensor<8xi32>
tile.store %15, %arg0[0] : tensor<8xi32>, memref<?xi32, strided<[1]>>
)");
}

void floatOps(View a) {
  Tile x = load(a, {0}, {8}), y = load(a, {8}, {8});
  const Tile larger = max(x, y), negative = -x;
  store(a, {0}, larger / negative);
  store(a, {0}, fma(x, y, clamp(x, 0, infinity)));
  store(a, {0}, tanh(erf(exp2(log2(rsqrt(sqrt(ceil(floor(abs(x))))))))));
  x += 1;
  x -= y;
  x *= y;
  x /= 2;
  store(a, {0}, exp(log(x)));
}
TEST(Arithmetic, Floats) {
  EXPECT_EQ(program(floatOps, {vector}), R"(%0 = tile.load %arg0[0] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
%1 = tile.load %arg0[8] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
%2 = arith.maxnumf %0, %1 : tensor<8xf32>
%3 = arith.negf %0 : tensor<8xf32>
%4 = arith.divf %2, %3 : tensor<8xf32>
tile.store %4, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
%5 = arith.maxnumf %0, dense<0.000000e+00> : tensor<8xf32>
%6 = arith.minnumf %5, dense<0x7F800000> : tensor<8xf32>
%7 = math.fma %0, %1, %6 : tensor<8xf32>
tile.store %7, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
%8 = math.absf %0 : tensor<8xf32>
%9 = math.floor %8 : tensor<8xf32>
%10 = math.ceil %9 : tensor<8xf32>
%11 = math.sqrt %10 : tensor<8xf32>
%12 = math.rsqrt %11 : tensor<8xf32>
%13 = math.log2 %12 : tensor<8xf32>
%14 = math.exp2 %13 : tensor<8xf32>
%15 = math.erf %14 : tensor<8xf32>
%16 = math.tanh %15 : tensor<8xf32>
tile.store %16, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
%17 = arith.addf %0, dense<1.000000e+00> : tensor<8xf32>
%18 = arith.subf %17, %1 : tensor<8xf32>
%19 = arith.mulf %18, %1 : tensor<8xf32>
%20 = arith.divf %19, dense<2.000000e+00> : tensor<8xf32>
%21 = math.log %20 : tensor<8xf32>
%22 = math.exp %21 : tensor<8xf32>
tile.store %22, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
)");
}

void mathFunctions(View a) {
  Tile x = load(a, {0}, {8});
  x = sin(cos(log1p(expm1(tan(x)))));
  const Tile cube = pow(x, 3), power = exp10(x), angle = atan2(1, power);
  store(a, {0}, cube % angle);
}
TEST(Arithmetic, MathFunctions) {
  EXPECT_EQ(program(mathFunctions, {vector}), R"(%0 = tile.load %arg0[0] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
%1 = math.sin %0 : tensor<8xf32>
%2 = math.cos %0 : tensor<8xf32>
%3 = arith.divf %1, %2 : tensor<8xf32>
%4 = math.expm1 %3 : tensor<8xf32>
%5 = math.log1p %4 : tensor<8xf32>
%6 = math.cos %5 : tensor<8xf32>
%7 = math.sin %6 : tensor<8xf32>
%8 = math.powf %7, dense<3.000000e+00> : tensor<8xf32>
%9 = math.powf dense<1.000000e+01>, %7 : tensor<8xf32>
%10 = math.atan2 dense<1.000000e+00>, %9 : tensor<8xf32>
%11 = arith.remf %8, %10 : tensor<8xf32>
tile.store %11, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
)");
}

void fastOps(View a) {
  Tile x = load(a, {0}, {8});
  x = exp2(
      log2(exp(log(tanh(rsqrt(x, Accuracy::fast), Accuracy::fast), Accuracy::fast), Accuracy::fast), Accuracy::fast),
      Accuracy::fast);
  store(a, {0}, divide(divide(x, 3, Accuracy::fast), x, Accuracy::full));
}
// Accuracy is stored in the IR only if it differs from the default.
TEST(Arithmetic, Accuracy) {
  EXPECT_EQ(program(fastOps, {vector}), R"(%0 = tile.load %arg0[0] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
%1 = math.rsqrt %0 {tile.accuracy = "fast"} : tensor<8xf32>
%2 = math.tanh %1 {tile.accuracy = "fast"} : tensor<8xf32>
%3 = math.log %2 {tile.accuracy = "fast"} : tensor<8xf32>
%4 = math.exp %3 {tile.accuracy = "fast"} : tensor<8xf32>
%5 = math.log2 %4 {tile.accuracy = "fast"} : tensor<8xf32>
%6 = math.exp2 %5 {tile.accuracy = "fast"} : tensor<8xf32>
%7 = arith.divf %6, dense<3.000000e+00> {tile.accuracy = "fast"} : tensor<8xf32>
%8 = arith.divf %7, %6 : tensor<8xf32>
tile.store %8, %arg0[0] : tensor<8xf32>, memref<?xf32, strided<[1]>>
)");
}

void shapes(View a) {
  Tile x = load(a, {0, 0}, {4, 8});
  store(a, {0, 0}, transpose(x));
  store(a, {0, 0}, reshape(transpose(reshape(x, {2, 2, 8}), {2, 0, 1}), {32}));
  const Tile sums = unsqueeze(sum(x, -1), -1), least = unsqueeze(reduce_min(x, 0), 0);
  store(a, {0, 0}, sums + least);
  store(a, {0, 0}, cast(argmax(x, -2), f32));
  store(a, {0, 0}, cast(iota(8), f32));
}
TEST(Shapes, TransposeUnsqueezeReduce) {
  EXPECT_EQ(program(shapes, {matrix}),
            R"(%0 = tile.load %arg0[0, 0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<4x8xf32>
%1 = tile.transpose %0 [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
tile.store %1, %arg0[0, 0] : tensor<8x4xf32>, memref<?x?xf32, strided<[?, 1]>>
%2 = tile.reshape %0 : tensor<4x8xf32> -> tensor<2x2x8xf32>
%3 = tile.transpose %2 [2, 0, 1] : tensor<2x2x8xf32> -> tensor<8x2x2xf32>
%4 = tile.reshape %3 : tensor<8x2x2xf32> -> tensor<1x32xf32>
tile.store %4, %arg0[0, 0] : tensor<1x32xf32>, memref<?x?xf32, strided<[?, 1]>>
%5 = tile.reduce sum %0 axis 1 : tensor<4x8xf32> -> tensor<4xf32>
%6 = tile.reshape %5 : tensor<4xf32> -> tensor<4x1xf32>
%7 = tile.reduce min %0 axis 0 : tensor<4x8xf32> -> tensor<8xf32>
%8 = tile.reshape %7 : tensor<8xf32> -> tensor<1x8xf32>
%9 = tile.broadcast %6 : tensor<4x1xf32> -> tensor<4x8xf32>
%10 = tile.broadcast %8 : tensor<1x8xf32> -> tensor<4x8xf32>
%11 = arith.addf %9, %10 : tensor<4x8xf32>
tile.store %11, %arg0[0, 0] : tensor<4x8xf32>, memref<?x?xf32, strided<[?, 1]>>
%12 = tile.reduce argmax %0 axis 0 : tensor<4x8xf32> -> tensor<8xi32>
%13 = tile.cast %12 : tensor<8xi32> to tensor<8xf32>
%14 = tile.reshape %13 : tensor<8xf32> -> tensor<1x8xf32>
tile.store %14, %arg0[0, 0] : tensor<1x8xf32>, memref<?x?xf32, strided<[?, 1]>>
%15 = tile.iota : tensor<8xi32>
%16 = tile.cast %15 : tensor<8xi32> to tensor<8xf32>
%17 = tile.reshape %16 : tensor<8xf32> -> tensor<1x8xf32>
tile.store %17, %arg0[0, 0] : tensor<1x8xf32>, memref<?x?xf32, strided<[?, 1]>>
)");
}

void reduceTypes(View n, View m, View s) {
  store(n, {0}, sum(load(m, {0}, {8})));
  store(n, {0}, sum(load(s, {0}, {8})));
  store(m, {0}, reduce_max(load(m, {0}, {8})));
  store(n, {0}, argmax(load(m, {0}, {8})));
}
TEST(Shapes, SmallTypesAreSummedInI32) {
  EXPECT_EQ(program(reduceTypes, {integers, mask, small}),
            R"(%0 = tile.load %arg1[0] : memref<?xi8, strided<[1]>> -> tensor<8xi1>
%1 = tile.cast %0 : tensor<8xi1> to tensor<8xi32>
%2 = tile.reduce sum %1 axis 0 : tensor<8xi32> -> i32
%3 = tile.splat %2 : i32 -> tensor<1xi32>
tile.store %3, %arg0[0] : tensor<1xi32>, memref<?xi32, strided<[1]>>
%4 = tile.load %arg2[0] : memref<?xi8, strided<[1]>> -> tensor<8xi8>
%5 = tile.cast %4 : tensor<8xi8> to tensor<8xi32>
%6 = tile.reduce sum %5 axis 0 : tensor<8xi32> -> i32
%7 = tile.splat %6 : i32 -> tensor<1xi32>
tile.store %7, %arg0[0] : tensor<1xi32>, memref<?xi32, strided<[1]>>
%8 = tile.load %arg1[0] : memref<?xi8, strided<[1]>> -> tensor<8xi1>
%9 = tile.cast %8 : tensor<8xi1> to tensor<8xi8>
%10 = tile.reduce max %9 axis 0 : tensor<8xi8> -> i8
%11 = tile.cast %10 : i8 to i1
%12 = tile.splat %11 : i1 -> tensor<1xi1>
tile.store %12, %arg1[0] : tensor<1xi1>, memref<?xi8, strided<[1]>>
%13 = tile.load %arg1[0] : memref<?xi8, strided<[1]>> -> tensor<8xi1>
%14 = tile.cast %13 : tensor<8xi1> to tensor<8xi8>
%15 = tile.reduce argmax %14 axis 0 : tensor<8xi8> -> i32
%16 = tile.splat %15 : i32 -> tensor<1xi32>
tile.store %16, %arg0[0] : tensor<1xi32>, memref<?xi32, strided<[1]>>
)");
}

void dots(View a, View b) {
  Tile x = load(a, {0, 0}, {4, 8}), y = load(a, {0, 0}, {8, 2}), n = load(b, {0, 0}, {4, 8});
  store(a, {0, 0}, dot(x, y, Precision::tf32));
  store(a, {0, 0}, dot(n, transpose(n), zeros(i32, {4, 4})) * 1.0);
}
TEST(Shapes, Dot) {
  EXPECT_EQ(program(dots, {matrix, view(i8, {64, 32})}),
            R"(%0 = tile.load %arg0[0, 0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<4x8xf32>
%1 = tile.load %arg0[0, 0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<8x2xf32>
%2 = tile.load %arg1[0, 0] : memref<?x?xi8, strided<[?, 1]>> -> tensor<4x8xi8>
%3 = tile.dot %0, %1, dense<0.000000e+00> precision tf32 : tensor<4x8xf32>, tensor<8x2xf32>, tensor<4x2xf32>
tile.store %3, %arg0[0, 0] : tensor<4x2xf32>, memref<?x?xf32, strided<[?, 1]>>
%4 = tile.transpose %2 [1, 0] : tensor<4x8xi8> -> tensor<8x4xi8>
%5 = tile.dot %2, %4, dense<0> : tensor<4x8xi8>, tensor<8x4xi8>, tensor<4x4xi32>
%6 = tile.cast %5 : tensor<4x4xi32> to tensor<4x4xf32>
tile.store %6, %arg0[0, 0] : tensor<4x4xf32>, memref<?x?xf32, strided<[?, 1]>>
)");
}

// --- Memory ----------------------------------------------------------------------------------------------------------

void shortShapes(View a, View n) {
  Tile rows = load(n, {0}, {4});
  store(a, {1, 2}, load(a, {3, 4}, {8}, Padding::neg_inf));
  store(a, {rows, 5}, load(a, {rows, 6}, {}, Padding::nan));
  store(a, {0, 0}, atomic_add(a, {7, 8}, load(a, {0, 0}, {}), Order::acq_rel));
}
TEST(Memory, ShortShapesDropLeadingDimensions) {
  EXPECT_EQ(program(shortShapes, {matrix, integers}),
            R"(%0 = tile.load %arg1[0] : memref<?xi32, strided<[1]>> -> tensor<4xi32>
%1 = tile.load %arg0[3, 4] pad neg_inf : memref<?x?xf32, strided<[?, 1]>> -> tensor<1x8xf32>
tile.store %1, %arg0[1, 2] : tensor<1x8xf32>, memref<?x?xf32, strided<[?, 1]>>
%2 = tile.gather %arg0[%0, 6] pad nan : memref<?x?xf32, strided<[?, 1]>>, tensor<4xi32> -> tensor<4x1xf32>
tile.scatter %2, %arg0[%0, 5] : tensor<4x1xf32>, memref<?x?xf32, strided<[?, 1]>>, tensor<4xi32>
%3 = tile.load %arg0[0, 0] : memref<?x?xf32, strided<[?, 1]>> -> tensor<1x1xf32>
%4 = tile.atomic_rmw add acq_rel %3, %arg0[7, 8] : tensor<1x1xf32>, memref<?x?xf32, strided<[?, 1]>>
tile.store %4, %arg0[0, 0] : tensor<1x1xf32>, memref<?x?xf32, strided<[?, 1]>>
)");
}

void subscripts(View a, View n) {
  Tile ids = load(n, {0}, {4});
  store(a, {3, ids}, load(a, {ids, 5}, {}, {Padding::inf, ids == 7}));
  const Tile row = load(a, {1, 2}, {8}, {.mask = true}), isFew = load(n, {9}, {}) < 3;
  store(a, {1, 2}, row, {.mask = isFew});
}
TEST(Memory, TilesAndMasksAreNamedOneByOne) {
  EXPECT_EQ(program(subscripts, {matrix, integers}),
            R"(%0 = tile.load %arg1[0] : memref<?xi32, strided<[1]>> -> tensor<4xi32>
%1 = arith.cmpi eq, %0, dense<7> : tensor<4xi32>
%2 = tile.reshape %1 : tensor<4xi1> -> tensor<4x1xi1>
%3 = tile.gather %arg0[%0, 5] if %2 pad inf : memref<?x?xf32, strided<[?, 1]>>, tensor<4xi32> -> tensor<4x1xf32>
tile.scatter %3, %arg0[3, %0] : tensor<4x1xf32>, memref<?x?xf32, strided<[?, 1]>>, i64, tensor<4xi32>
%4 = tile.load %arg0[1, 2] : memref<?x?xf32, strided<[?, 1]>> -> tensor<1x8xf32>
%5 = tile.load %arg1[9] : memref<?xi32, strided<[1]>> -> tensor<1xi32>
%6 = tile.reshape %5 : tensor<1xi32> -> i32
%7 = arith.cmpi slt, %6, 3 : i32
%8 = tile.splat %7 : i1 -> tensor<1x8xi1>
tile.scatter %4, %arg0[1, 2] if %8 : tensor<1x8xf32>, memref<?x?xf32, strided<[?, 1]>>
)");
}

void atomics(View n) {
  atomic_exchange(n, {load(n, {0}, {4})}, 5);
  Tile old = atomic_compare_exchange(n, {0}, atomic_load(n, {3}), 1, Order::acquire);
  atomic_store(n, {1}, old, Order::relaxed);
}
TEST(Memory, AtomicsHaveKindsAndOrders) {
  EXPECT_EQ(program(atomics, {integers}), R"(%0 = tile.load %arg0[0] : memref<?xi32, strided<[1]>> -> tensor<4xi32>
%1 = tile.atomic_rmw exchange acq_rel dense<5>, %arg0[%0] : tensor<4xi32>, memref<?xi32, strided<[1]>>, tensor<4xi32>
%2 = tile.atomic_load acquire %arg0[3] : memref<?xi32, strided<[1]>> -> tensor<1xi32>
%3 = tile.atomic_cas acquire %2 to dense<1>, %arg0[0] : tensor<1xi32>, memref<?xi32, strided<[1]>>
tile.atomic_store relaxed %3, %arg0[1] : tensor<1xi32>, memref<?xi32, strided<[1]>>
)");
}

void bools(View m) { store(m, {0}, load(m, {0}, {8}) & true); }
TEST(Memory, BoolIsStoredAsI8) {
  EXPECT_EQ(program(bools, {mask}), R"(%0 = tile.load %arg0[0] : memref<?xi8, strided<[1]>> -> tensor<8xi1>
tile.store %0, %arg0[0] : tensor<8xi1>, memref<?xi8, strided<[1]>>
)");
}

void debugging(View a) {
  Tile x = load(a, {0}, {8});
  print("x", x);
  device_assert(x > 0, "expected a positive number");
}
TEST(Memory, PrintAndCheck) {
  EXPECT_EQ(program(debugging, {vector}), R"(%0 = tile.load %arg0[0] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
tile.print "x", %0 : tensor<8xf32>
%1 = arith.cmpf ogt, %0, dense<0.000000e+00> : tensor<8xf32>
tile.check %1, "expected a positive number" : tensor<8xi1>
)");
}

void randoms(View a, View n, Tile seed) {
  store(n, {0}, random_bits(seed, iota(8)));
  store(a, {0}, random(seed, 3));
}
TEST(Random, UniformUses24Bits) {
  EXPECT_EQ(program(randoms, {vector, integers, scalar(i64)}), R"(%0 = tile.iota : tensor<8xi32>
%1 = tile.cast %0 : tensor<8xi32> to tensor<8xi64>
%2 = tile.random %arg2, %1 : tensor<8xi64> -> tensor<8xi32>
tile.store %2, %arg1[0] : tensor<8xi32>, memref<?xi32, strided<[1]>>
%3 = tile.random %arg2, 3 : i64 -> i32
%4 = arith.shrui %3, 8 : i32
%5 = tile.cast %4 : i32 to f32
%6 = arith.mulf %5, 5.96046448E-8 : f32
%7 = tile.splat %6 : f32 -> tensor<1xf32>
tile.store %7, %arg0[0] : tensor<1xf32>, memref<?xf32, strided<[1]>>
)");
}

// --- Specialisation --------------------------------------------------------------------------------------------------

void extents(View a, View b, Tile s) {
  store(a, {0, 0}, full(f32, {a.extent(1)}, s));
  store(b, {a.dim(1), a.dim(0)}, 0);
}
struct LaunchShape {
  int warps = 4, block = 16;
  int64_t stages = 2;
};
void shaped(View a, LaunchShape shape) { store(a, {0}, zeros(f32, {shape.block})); }
// A kernel may read the number of warps and stages of its config: the default, or that of the launch.
TEST(Specialisation, WarpsAndStagesOfAConfigAreAttributes) {
  const Kernel k = kernel("k", shaped,
                          {field("warps", &LaunchShape::warps), field("block", &LaunchShape::block),
                           field("stages", &LaunchShape::stages)});
  const Specialisation facts = {.args = {vector}, .warps = true, .stages = true};
  EXPECT_NE(moduleOf(k, facts).find("attributes {tile.kernel, tile.stages = 2 : i64, tile.warps = 4 : i64}"),
            std::string::npos);
  EXPECT_NE(moduleOf(k, facts, "block=8,warps=8").find("tile.stages = 2 : i64, tile.warps = 8 : i64}"),
            std::string::npos);
}

// A module has no attributes that its target ignores. They would only compile equal code twice.
TEST(Specialisation, WarpsAndStagesAreLeftOutWhereNobodyReadsThem) {
  const Kernel k = kernel("k", shaped, {field("warps", &LaunchShape::warps), field("stages", &LaunchShape::stages)});
  EXPECT_NE(moduleOf(k, {{vector}, {}}).find("attributes {tile.kernel} {"), std::string::npos);
  EXPECT_NE(moduleOf(k, {.args = {vector}, .warps = true}).find("{tile.kernel, tile.warps = 4 : i64} {"),
            std::string::npos);
  EXPECT_NE(moduleOf(k, {.args = {vector}, .stages = true}).find("{tile.kernel, tile.stages = 2 : i64} {"),
            std::string::npos);
}

TEST(Specialisation, ExtentMakesStaticAndFactsBecomeAttributes) {
  ArgFacts a = matrix, b = matrix;
  a.alignment = 64;
  a.stridesBy16 = a.extentBy16 = a.fits32 = true;
  b.innerStride = 0;
  EXPECT_EQ(moduleOf(kernel("k", extents), {{a, b, scalar(f32)}, {{0, 1}}}), R"(module {
  func.func @k(%arg0: memref<?x32xf32, strided<[?, 1]>> {tile.align = 64 : i64, tile.extent_by_16, tile.fits_32, tile.strides_by_16}, %arg1: memref<?x?xf32, strided<[?, ?]>>, %arg2: f32) attributes {tile.disjoint = [array<i64: 0, 1>], tile.kernel} {
    %0 = tile.splat %arg2 : f32 -> tensor<32xf32>
    %c0_i64 = arith.constant 0 : i64
    %c0_i64_0 = arith.constant 0 : i64
    %1 = tile.reshape %0 : tensor<32xf32> -> tensor<1x32xf32>
    tile.store %1, %arg0[%c0_i64, %c0_i64_0] : tensor<1x32xf32>, memref<?x32xf32, strided<[?, 1]>>
    %2 = tile.dim %arg0, 1 : memref<?x32xf32, strided<[?, 1]>>
    %3 = tile.dim %arg0, 0 : memref<?x32xf32, strided<[?, 1]>>
    %cst = arith.constant 0.000000e+00 : f32
    %4 = tile.reshape %cst : f32 -> tensor<1x1xf32>
    tile.store %4, %arg1[%2, %3] : tensor<1x1xf32>, memref<?x?xf32, strided<[?, ?]>>
    return
  }
}
)");
}

TEST(Specialisation, NamesOfSeveralExtentsAreFound) {
  const Kernel k = kernel("k", extents, {"a (N, C + 1)", "b (C, N) f32, N rows", "s (N)"});
  EXPECT_EQ(k.namedExtents, (std::vector<Kernel::NamedExtent>{{{0, 0}, {1, 1}}}));
}

TEST(Specialisation, EqualExtentsAreStaticTogetherOrAnAttribute) {
  const std::string text = moduleOf(kernel("k", extents), {.args = {matrix, matrix, scalar(f32)},
                                                           .equalExtents = {{{0, 0}, {1, 0}}, {{0, 1}, {1, 1}}}});
  EXPECT_NE(text.find("%arg1: memref<?x32xf32, strided<[?, 1]>>, %arg2: f32) attributes "
                      "{tile.equal_extents = [array<i64: 0, 0, 1, 0>], tile.kernel}"),
            std::string::npos)
      << text;
}

TEST(Specialisation, OnlyAskedExtentsAreReported) {
  auto context = makeContext();
  Traced traced = trace(*context, kernel("k", extents), {{matrix, matrix, scalar(f32)}, {}}, "");
  EXPECT_EQ(traced.staticExtents, (std::set<std::pair<int, int>>{{0, 1}}));
}

struct Config {
  int width = 4;
  bool negate = false;
  double scale = 1;
};
void configured(View a, Tile s, Config cfg) {
  Tile x = full(f32, {cfg.width}, cfg.scale);
  store(a, {0}, cfg.negate ? -s * x : s * x);
}
TEST(Specialisation, ConfigChoosesWhileTracing) {
  Kernel k = kernel("k", configured,
                    {field("width", &Config::width), field("negate", &Config::negate), field("scale", &Config::scale)});
  EXPECT_EQ(programOf(k, {vector, scalar(f32)}, "negate=1,width=2"), R"(%0 = arith.negf %arg1 : f32
%1 = tile.splat %0 : f32 -> tensor<2xf32>
tile.store %1, %arg0[0] : tensor<2xf32>, memref<?xf32, strided<[1]>>
)");
}

// Every operation has the C++ line that created it.
void located(View a) { store(a, {0}, 1); }
TEST(Specialisation, OperationsCarryTheUsersLine) {
  auto context = makeContext();
  int line = __LINE__ - 3;
  Traced traced = trace(*context, kernel("k", located), {{vector}, {}}, "");
  traced.module->walk([&](mlir::Operation *op) {
    auto loc = mlir::dyn_cast<mlir::FileLineColLoc>(op->getLoc());
    ASSERT_TRUE(loc);
    EXPECT_EQ(loc.getFilename(), __FILE__);
    if (op->getName().getStringRef() == "tile.store") {
      EXPECT_EQ(static_cast<int>(loc.getLine()), line);
    }
  });
}

} // namespace
} // namespace kiln::testing
