// Reductions along several axes, all of them, and those that keep their axes: each is spelled by others.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

template <class... P> std::string program(void (*function)(P...), std::vector<ArgFacts> args) {
  return programOf(kernel("k", function), args);
}
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
} // namespace kiln::testing
