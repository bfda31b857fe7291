// Constants with a number for each element are tiles like any other, for every reader.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class Constants : public Semantics {};

/// Numbers that every type has: 0 and 1 of bool, else small whole ones and, of floats, halves.
double numberAt(Type type, int64_t i) {
  if (type == boolean)
    return static_cast<double>(i % 3 == 1);
  const double number = static_cast<double>((i * 37 + 5) % 101 - (isUnsigned(type) ? 0 : 50));
  return isFloat(type) ? number / 2 : number;
}
std::vector<double> numbersOf(Type type, int64_t count) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(numberAt(type, i));
  return numbers;
}
uint64_t rawOf(Type type, double number) {
  return isFloat(type) ? rawOfReal(type, number) : rawOfInteger(type, static_cast<int64_t>(number));
}

void whole(View out, ExtentConfig cfg) {
  store(out, {0}, constant(out.type(), {cfg.extent}, numbersOf(out.type(), cfg.extent)));
}
const Kernel wholeKernel = kernel("whole", whole, extentField());

TEST_P(Constants, OfEveryTypeAndExtent) {
  for (const Type type : castTypes)
    for (const int64_t extent : extents) {
      const Tensor out(device, type, {extent});
      launch(wholeKernel, {out.ref()}, extentText(extent));
      const Raw got = read(out);
      for (int64_t i = 0; i < extent; ++i)
        ASSERT_EQ(got[i], rawOf(type, numberAt(type, i))) << nameOf(type) << "[" << extent << "] at " << i;
    }
}

// Values that are not integers, and signs that a cast could lose.
void special(View out) {
  store(out, {0}, constant(out.type(), {6}, {-0.0, infinity, -infinity, kiln::nan, 0x1p-24, 1.0 / 3}));
}
const Kernel specialKernel = kernel("special", special);

TEST_P(Constants, KeepSignsOfZeroAndRoundOnce) {
  for (const Type type : floatTypes) {
    const Tensor out(device, type, {6});
    launch(specialKernel, {out.ref()});
    const Raw got = read(out);
    const double want[] = {-0.0, INFINITY, -INFINITY, NAN, 0x1p-24, 1.0 / 3};
    for (int i = 0; i < 6; ++i)
      EXPECT_TRUE(same(type, got[i], rawOfReal(type, want[i]))) << nameOf(type) << ", number " << i;
  }
}

/// The uses of a table of 6 x 5 numbers, each a row of `out`, which has 30 columns.
void uses(View x, View out, View product) {
  const Type type = x.type();
  Tile table = constant(type, {6, 5}, numbersOf(type, 30)), a = load(x, {0, 0}, {6, 5});
  store(out, {0, 0}, reshape(table, {30}));
  store(out, {1, 0}, reshape(transpose(table), {30}));
  store(out, {2, 0}, reshape(a + table, {30}));
  store(out, {3, 0}, reshape(where(constant(boolean, {5}, {1, 0, 0, 1, 1}), a, table), {30}));
  store(out, {4, 0}, sum(table));
  store(out, {5, 0}, reduce_max(table, 0));
  Tile last = table;
  for (Tile k : range(3)) {
    if_(k == 1, [&] { last = last + constant(type, {6, 1}, {1, 2, 3, 4, 5, 6}); });
    store(out, {6 + k, 0}, reshape(last, {30}));
  }
  store(out, {9, 0}, reshape(load(x, {constant(i32, {3}, {4, 0, 5}), 0}, {5}), {15}));
  store(out, {constant(i64, {2}, {11, 10}), 0}, broadcast(constant(type, {2, 1}, {7, 8}), {2, 30}));
  store(product, {0, 0}, dot(a, transpose(table)) + dot(table, constant(type, {5, 6}, numbersOf(type, 30))));
}
const Kernel usesKernel = kernel("uses", uses);

TEST_P(Constants, MayBeReadByWhateverReadsTiles) {
  const Tensor x = counting(f32, {6, 5}), out(device, f32, {12, 30}), product(device, f32, {6, 6});
  launch(usesKernel, {x.ref(), out.ref(), product.ref()});
  const Raw got = read(out), products = read(product);
  const auto table = [](int64_t i, int64_t j) { return numberAt(f32, i * 5 + j); };
  const auto at = [&](int64_t row, int64_t column) { return toDouble(f32, got[row * 30 + column]); };
  const bool chosen[] = {true, false, false, true, true};
  for (int64_t i = 0; i < 6; ++i) {
    double total = 0;
    for (int64_t j = 0; j < 5; ++j) {
      const double number = table(i, j), loaded = static_cast<double>(i * 5 + j);
      total += number;
      EXPECT_EQ(at(0, i * 5 + j), number);
      EXPECT_EQ(at(1, j * 6 + i), number);
      EXPECT_EQ(at(2, i * 5 + j), number + loaded);
      EXPECT_EQ(at(3, i * 5 + j), chosen[j] ? loaded : number);
      EXPECT_EQ(at(6, i * 5 + j), number);
      EXPECT_EQ(at(7, i * 5 + j), number + static_cast<double>(i + 1));
      EXPECT_EQ(at(8, i * 5 + j), number + static_cast<double>(i + 1));
    }
    EXPECT_EQ(at(4, i), total);
    for (int64_t n = 0; n < 6; ++n) {
      double want = 0;
      for (int64_t k = 0; k < 5; ++k)
        want += static_cast<double>(i * 5 + k) * table(n, k) + table(i, k) * numberAt(f32, k * 6 + n);
      EXPECT_EQ(toDouble(f32, products[i * 6 + n]), want) << i << ", " << n;
    }
  }
  for (int64_t j = 0; j < 5; ++j) {
    double most = table(0, j);
    for (int64_t i = 1; i < 6; ++i)
      most = std::max(most, table(i, j));
    EXPECT_EQ(at(5, j), most);
    EXPECT_EQ(at(9, j), static_cast<double>(20 + j));
    EXPECT_EQ(at(9, 5 + j), static_cast<double>(j));
    EXPECT_EQ(at(9, 10 + j), static_cast<double>(25 + j));
  }
  EXPECT_EQ(at(11, 29), 7);
  EXPECT_EQ(at(10, 29), 8);
}

KILN_ON_PROCESSORS(Constants);

} // namespace
