// The traced operations of reductions and scans.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {

// --- Reductions ------------------------------------------------------------------------------------------------------

// Reductions along several axes, all of them, and those that keep their axes: each is spelled by others.

namespace {

const ArgFacts cube = view(f32, {8, 8, 8}), half = view(bf16, {8, 8, 8});

void shapes(View) {
  Tile x = zeros(f32, {2, 3, 4});
  EXPECT_EQ(sum(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(sum(x, {0, 2}).shape(), (Shape{3}));
  EXPECT_EQ(sum(x, {-1, 0}, keep).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(reduce_max(x, -2, keep).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(reduce_min(x, everywhere).shape(), (Shape{}));
  EXPECT_EQ(argmax(x, everywhere, keep).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(argmax(x, {0, 1}).shape(), (Shape{4}));
  EXPECT_EQ(sum(x, std::vector<int>{0, 1, 2}).shape(), (Shape{}));
  EXPECT_EQ(sum(zeros(i8, {2, 3}), everywhere).type(), i32);
  EXPECT_EQ(sum(zeros(bf16, {2, 3}), everywhere).type(), bf16);
  EXPECT_EQ(reduce_max(zeros(boolean, {2, 3}), everywhere).type(), boolean);
  EXPECT_EQ(argmax(zeros(f64, {2, 3}), {0, 1}).type(), i32);
}
TEST(Reductions, AxesDisappearOrStayAtExtentOne) { EXPECT_EQ(program(shapes, {cube}), ""); }

void kept(View a) {
  Tile x = load(a, {0, 0, 0}, {4, 8});
  store(a, {0, 0, 0}, x - reduce_max(x, -1, keep));
}
void expanded(View a) {
  Tile x = load(a, {0, 0, 0}, {4, 8});
  store(a, {0, 0, 0}, x - unsqueeze(reduce_max(x), -1));
}
TEST(Reductions, KeepIsAnExpansionBehind) { EXPECT_EQ(program(kept, {cube}), program(expanded, {cube})); }

void several(View a) {
  Tile x = load(a, {0, 0, 0}, {2, 4, 8});
  store(a, {0, 0, 0}, sum(x, {0, -1}));
  store(a, {0, 0, 0}, reduce_min(x, everywhere));
}
void oneByOne(View a) {
  Tile x = load(a, {0, 0, 0}, {2, 4, 8});
  store(a, {0, 0, 0}, sum(sum(x, 2), 0));
  store(a, {0, 0, 0}, reduce_min(reduce_min(reduce_min(x))));
}
TEST(Reductions, SeveralAxesAreReducedTheLastFirst) {
  const std::string text = program(several, {cube});
  EXPECT_NE(text.find("tile.reduce"), std::string::npos);
  EXPECT_EQ(text, program(oneByOne, {cube}));
}

void narrow(View a) { store(a, {0, 0, 0}, sum(load(a, {0, 0, 0}, {4, 8}), everywhere)); }
void widened(View a) { store(a, {0, 0, 0}, cast(sum(sum(cast(load(a, {0, 0, 0}, {4, 8}), f32))), bf16)); }
TEST(Reductions, NarrowSumsOverSeveralAxesAreRoundedOnce) {
  EXPECT_EQ(program(narrow, {half}), program(widened, {half}));
}

void alongTwo(View a) {
  Tile x = load(a, {0, 0, 0}, {2, 4, 8});
  store(a, {0, 0, 0}, cast(argmax(x, {0, 2}), f32));
}
void alongTheirProduct(View a) {
  Tile x = load(a, {0, 0, 0}, {2, 4, 8});
  store(a, {0, 0, 0}, cast(argmax(reshape(transpose(x, {1, 0, 2}), {4, 16})), f32));
}
TEST(Reductions, ArgmaxCountsInRowMajorOrder) {
  EXPECT_EQ(program(alongTwo, {cube}), program(alongTheirProduct, {cube}));
}

} // namespace

// --- Scans -----------------------------------------------------------------------------------------------------------

// The traced operations of scans, of reductions with a function, and of functions that take parts of tiles.

namespace {

const ArgFacts plane = view(f32, {8, 8}), narrowLine = view(bf16, {8});

void types(View) {
  EXPECT_EQ(cumsum(zeros(i8, {4, 8}), 0).type(), i32);
  EXPECT_EQ(cumprod(zeros(boolean, {8})).type(), i32);
  EXPECT_EQ(cumsum(zeros(bf16, {8})).type(), bf16);
  EXPECT_EQ(cummax(zeros(boolean, {8})).type(), boolean);
  EXPECT_EQ(cumor(zeros(boolean, {8})).type(), boolean);
  EXPECT_EQ(cummin(zeros(i64, {2, 8}), -2, true).shape(), (Shape{2, 8}));
  const auto keepFirst = [](std::array<Tile, 2> a, std::array<Tile, 2>) { return a; };
  const auto both = reduce({zeros(bf16, {4, 1}), iota(8)}, 0, keepFirst);
  EXPECT_EQ(both[0].type(), bf16);
  EXPECT_EQ(both[0].shape(), (Shape{8}));
  EXPECT_EQ(both[1].type(), i32);
}
TEST(Scans, TypesAndShapesAreThoseOfReductions) { EXPECT_EQ(program(types, {plane}), ""); }

void parts(View) {
  Tile x = zeros(f32, {3, 4, 2});
  EXPECT_EQ(split(x)[1].shape(), (Shape{3, 4}));
  EXPECT_EQ(join(x, 1).shape(), (Shape{3, 4, 2, 2}));
  EXPECT_EQ(interleave(x, x).shape(), (Shape{3, 4, 4}));
  EXPECT_EQ(concat({x, x, x}, 1).shape(), (Shape{3, 12, 2}));
  EXPECT_EQ(concat({x, extract(x, {0, 1, 0}, {3, 1, 2})}, 1).shape(), (Shape{3, 5, 2}));
  EXPECT_EQ(pad(x, {1, 0, 0}, {0, 2, 0}, 7).shape(), (Shape{4, 6, 2}));
  EXPECT_EQ(insert(x, zeros(f32, {1, 1, 1}), {2, 3, 1}).shape(), (Shape{3, 4, 2}));
  EXPECT_EQ(flip(x, 0).shape(), (Shape{3, 4, 2}));
}
TEST(Scans, PartsOfTiles) { EXPECT_EQ(program(parts, {plane}), ""); }

void reversed(View a) {
  const auto both = [](Tile p, Tile q) { return p * q; };
  store(a, {0, 0}, scan(load(a, {0, 0}, {4, 8}), 1, both, true));
}
void turned(View a) {
  const auto both = [](Tile p, Tile q) { return p * q; };
  store(a, {0, 0}, flip(scan(flip(load(a, {0, 0}, {4, 8})), 1, both)));
}
TEST(Scans, AReversedOneIsTurnedTwice) {
  const std::string text = program(reversed, {plane});
  EXPECT_NE(text.find("tile.scan"), std::string::npos);
  EXPECT_EQ(text, program(turned, {plane}));
}

void widens(View a) {
  store(a, {0}, reduce(load(a, {0}, {8}), 0, [](Tile p, Tile q) { return max(p, q); }));
}
TEST(Scans, FunctionsGetNarrowFloatsWidened) {
  const std::string text = program(widens, {narrowLine});
  EXPECT_NE(text.find(": f32"), std::string::npos) << text;
  EXPECT_NE(text.find("arith.maxnumf"), std::string::npos) << text;
}

void asserts(View) {
  reduce(iota(4), 0, [](Tile p, Tile q) {
    device_assert(p < q, "ascends");
    return q;
  });
}
// After the scan: its state shows whether the condition was true in each of its calls.
TEST(Scans, AssertionsOfFunctionsAreStates) {
  EXPECT_EQ(program(asserts, {plane}), R"(%0 = tile.iota : tensor<4xi32>
%1:2 = tile.scan %0, dense<true> axis 0  by (%arg1: i32, %arg2: i1, %arg3: i32, %arg4: i1) {
  %4 = arith.cmpi slt, %arg1, %arg3 : i32
  %5 = arith.andi %arg2, %arg4 : i1
  %6 = arith.andi %5, %4 : i1
  tile.yield %arg3, %6 : i32, i1
} : (tensor<4xi32>, tensor<4xi1>) -> (tensor<4xi32>, tensor<4xi1>)
%2 = tile.extract %1#1 begin [3] steps [1] : tensor<4xi1> -> tensor<1xi1>
%3 = tile.reshape %2 : tensor<1xi1> -> i1
tile.check %3, "ascends" : i1
)");
}

void sorts(View) {
  const Tile x = zeros(bf16, {3, 40});
  EXPECT_EQ(sort(x, 0).shape(), (Shape{3, 40}));
  EXPECT_EQ(sort(zeros(boolean, {8})).type(), boolean);
  const auto both = topk(x, 4);
  EXPECT_EQ(both[0].type(), bf16);
  EXPECT_EQ(both[1].type(), i32);
  EXPECT_EQ(both[1].shape(), (Shape{3, 4}));
  EXPECT_EQ(gather(x, zeros(i8, {1, 7}), 1).shape(), (Shape{3, 7}));
  EXPECT_EQ(gather(zeros(f32, {1, 5}), zeros(i64, {2, 7}), -1).shape(), (Shape{2, 7}));
  EXPECT_EQ(histogram(zeros(i8, {3, 4, 5}), 9).type(), i32);
  EXPECT_EQ(histogram(zeros(boolean, {3}), 2, zeros(boolean, {1})).shape(), (Shape{2}));
}
void moments(View) {
  EXPECT_EQ(squeeze(zeros(f32, {3, 1, 5}), 1).shape(), (Shape{3, 5}));
  EXPECT_EQ(squeeze(zeros(f32, {1}), -1).shape(), Shape{});
  EXPECT_EQ(mean(zeros(bf16, {3, 5})).type(), bf16);
  EXPECT_EQ(var(zeros(f64, {3, 5, 7}), {0, -1}, keep).shape(), (Shape{1, 5, 1}));
  EXPECT_EQ(cdiv(iota(4), 3).type(), i32);
  EXPECT_EQ(cdiv(iota(4), iota(4, i64)).type(), i64);
}
TEST(Moments, TypesAndShapes) { EXPECT_EQ(program(moments, {plane}), ""); }

TEST(Sorts, TypesAndShapes) { EXPECT_EQ(program(sorts, {plane}), ""); }

} // namespace

} // namespace kiln::testing
