// Tiles that are made of numbers; operands that repeat; products of operands that no load gives.

#include "test/runtime/semantics/drawn.h"
#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Shapes : public Semantics {};

// --- Tiles that are made ---------------------------------------------------------------------------------------------

void fill(View zero, View constant, View scalar, View counts, Tile s, ExtentConfig cfg) {
  store(zero, {0}, zeros(zero.type(), {cfg.extent}));
  store(constant, {0}, full(constant.type(), {cfg.extent}, 1));
  store(scalar, {0}, full(scalar.type(), {cfg.extent}, s));
  store(counts, {0}, cast(iota(cfg.extent, i64) + cast(iota(cfg.extent), i64), i64));
}
const Kernel fillKernel = kernel("fill", fill, extentField());

// zeros, full of a number and of a scalar that is cast, and iota.
TEST_P(Shapes, TilesAreMadeAtEveryTypeAndExtent) {
  for (const Type type : castTypes)
    for (const int64_t extent : extents) {
      const Tensor zero = tensor(type, {extent}, Raw(extent, 1)), constant(device, type, {extent}),
                   scalar(device, type, {extent}), counts(device, i64, {extent});
      launch(fillKernel, {zero.ref(), constant.ref(), scalar.ref(), counts.ref(), int64_t(-3)}, extentText(extent));
      EXPECT_EQ(read(zero), Raw(extent, 0)) << nameOf(type);
      EXPECT_EQ(read(constant), Raw(extent, wordOf(type, 1))) << nameOf(type);
      EXPECT_EQ(read(scalar), Raw(extent, wordOf(type, -3))) << nameOf(type);
      const Raw numbers = read(counts);
      for (int64_t i = 0; i < extent; ++i)
        ASSERT_EQ(numbers[i], static_cast<uint64_t>(2 * i));
    }
}

// --- Operands that repeat --------------------------------------------------------------------------------------------

struct UnitConfig {
  int left = 0, right = 0; // bit i: dimension i has extent 1
};

const Shape whole{3, 5, 7};

Shape unitsIn(Shape shape, int mask) {
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (mask >> axis & 1)
      shape[axis] = 1;
  return shape;
}

/// a · 1000 + b, where either may have extents of 1.
void combine(View x, View y, View out, UnitConfig cfg) {
  Tile a = load(x, {0, 0, 0}, unitsIn(whole, cfg.left)), b = load(y, {0, 0, 0}, unitsIn(whole, cfg.right));
  store(out, {0, 0, 0}, broadcast(a * 1000 + b, whole));
}
const Kernel combineKernel =
    kernel("combine", combine, {field("left", &UnitConfig::left), field("right", &UnitConfig::right)});

TEST_P(Shapes, ExtentsOfOneRepeatOnEitherSide) {
  const Tensor x = counting(i32, whole), y = counting(i32, whole, 1), out(device, i32, whole);
  for (int left = 0; left < 8; ++left)
    for (const int right : {7 - left, left * 3 % 8}) { // where the left one is whole, and others
      launch(combineKernel, {x.ref(), y.ref(), out.ref()},
             "left=" + std::to_string(left) + ",right=" + std::to_string(right));
      const Raw got = read(out);
      for (int64_t place = 0; place < countOf(whole); ++place) {
        Shape a = indexOf(place, whole), b = a;
        for (size_t axis = 0; axis < whole.size(); ++axis) {
          a[axis] *= left >> axis & 1 ? 0 : 1;
          b[axis] *= right >> axis & 1 ? 0 : 1;
        }
        ASSERT_EQ(got[place], static_cast<uint64_t>(numberOf(a, whole) * 1000 + numberOf(b, whole) + 1))
            << left << ", " << right << " at " << place;
      }
    }
}

// --- Products --------------------------------------------------------------------------------------------------------

/// c = x after n steps of x = y · (xᵀ + y) + a · y, where y = max(a, 0): operands that change and that do not.
void repeatedProduct(View a, View c, Tile n) {
  Tile left = load(a, {0, 0}, {16, 16}), x = left;
  for (Tile i : range(n)) {
    Tile y = max(left, 0.0);
    x = dot(y, transpose(x) + y) + dot(left, y);
  }
  store(c, {0, 0}, x);
}
const Kernel repeatedProductKernel = kernel("repeated_product", repeatedProduct);

// A right operand may change in each iteration, or be loop-invariant.
TEST_P(Shapes, ProductsInALoopReadTheRightOperandOfTheirStep) {
  const int64_t N = 16;
  std::vector<int> a(N * N);
  Raw raw(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    raw[i] = rawOfReal(f32, a[i] = static_cast<int>(i * 7 % 3) - 1);
  const Tensor left = tensor(f32, {N, N}, raw);
  for (const int64_t steps : {0, 1, 3}) {
    std::vector<int> x = a;
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<int> next(N * N);
      for (int64_t m = 0; m < N; ++m)
        for (int64_t n = 0; n < N; ++n)
          for (int64_t k = 0; k < N; ++k) {
            const int y = std::max(a[k * N + n], 0);
            next[m * N + n] += std::max(a[m * N + k], 0) * (x[n * N + k] + y) + a[m * N + k] * y;
          }
      x = next;
    }
    const Tensor c = tensor(f32, {N, N}, Raw(N * N));
    launch(repeatedProductKernel, {left.ref(), c.ref(), steps});
    const Raw got = read(c);
    for (int64_t i = 0; i < N * N; ++i)
      ASSERT_TRUE(same(f32, got[i], rawOfReal(f32, x[i]), false)) << steps << " steps, element " << i;
  }
}

/// An operand joined from two halves, one that the program computes, and their product transposed.
void multiplyJoined(View x, View y, View out) {
  Tile halves = join(load(x, {0, 0}, {32, 16}), load(x, {0, 16}, {32, 16}));                 // (32, 16, 2)
  Tile left = reshape(halves, {32, 32});                                                     // interleaved
  const auto [even, odd] = split(reshape(load(y, {0, 0}, {32, 64}), {32, 32, 2}));           // (32, 32)
  Tile made = cast((unsqueeze(iota(32), 1) + unsqueeze(iota(32) * 3, 0)) % 5 - 2, x.type()); // (32, 32)
  store(out, {0, 0}, dot(left, even, dot(left, made)));
  store(out, {32, 0}, transpose(dot(transpose(odd), transpose(left))));
}
const Kernel multiplyJoinedKernel = kernel("multiply_joined", multiplyJoined, {"x", "y", "out"});

// Products of results of join and split, which were never in memory.
TEST_P(Shapes, FactorsMayBeJoinedSplitAndMade) {
  for (const Type type : {bf16, f32}) {
    std::vector<int> x(32 * 32), y(32 * 64);
    Raw left, right;
    for (size_t i = 0; i < x.size(); ++i)
      left.push_back(rawOfReal(type, x[i] = static_cast<int>(i * 7 % 9) - 4));
    for (size_t i = 0; i < y.size(); ++i)
      right.push_back(rawOfReal(type, y[i] = static_cast<int>(i * 5 % 7) - 3));
    const Tensor a = tensor(type, {32, 32}, left), b = tensor(type, {32, 64}, right), out(device, f32, {64, 32});
    launch(multiplyJoinedKernel, {a.ref(), b.ref(), out.ref()});
    const Raw got = read(out);
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 32; ++j) {
        int first = 0, second = 0;
        for (int k = 0; k < 32; ++k) {
          const int l = x[i * 32 + k % 2 * 16 + k / 2];
          first += l * (y[k * 64 + 2 * j] + (k + 3 * j) % 5 - 2);
          second += l * y[k * 64 + 2 * j + 1];
        }
        ASSERT_EQ(toDouble(f32, got[i * 32 + j]), first) << nameOf(type) << " at " << i << ", " << j;
        ASSERT_EQ(toDouble(f32, got[(32 + i) * 32 + j]), second) << nameOf(type) << " at " << i << ", " << j;
      }
  }
}

KILN_ON_PROCESSORS(Shapes);

// --- Lookups and histograms ------------------------------------------------------------------------------------------

// Elements taken by their positions, along every axis and of every type, and elements counted by their values.

class Lookups : public Semantics {};

struct PlaneConfig {
  int rows = 1, columns = 1, more = 1, axis = 0; // `more` positions along the axis
  bool one = false;                              // the other extent of the positions is 1
  int warps = 4;
};

void takeAlong(View x, View index, View out, PlaneConfig cfg) {
  Shape shape{cfg.rows, cfg.columns}, places = shape;
  places[cfg.axis] = cfg.more;
  if (cfg.one)
    places[1 - cfg.axis] = 1;
  const Tile a = load(x, {0, 0}, shape), at = load(index, {0, 0}, places);
  store(out, {0, 0}, gather(a, at, cfg.axis));
  places[1 - cfg.axis] = shape[1 - cfg.axis];
  store(out, {places[0], 0}, gather(cast(a, out.type()), at, cfg.axis - 2)); // as the caller counts axes
}
const Kernel takeKernel = kernel("take_along", takeAlong,
                                 {field("rows", &PlaneConfig::rows), field("columns", &PlaneConfig::columns),
                                  field("more", &PlaneConfig::more), field("axis", &PlaneConfig::axis),
                                  field("one", &PlaneConfig::one), field("warps", &PlaneConfig::warps)});

// A position outside gives 0, for any position.
TEST_P(Lookups, AlongEveryAxisOfEveryType) {
  const int shapes[][3] = {{1, 1, 1}, {1, 64, 17}, {5, 33, 40}, {3, 7, 128}, {16, 16, 3}, {2, 300, 100}};
  int cases = 0;
  for (const auto &[rows, columns, more] : shapes)
    for (const int axis : {0, 1}) {
      const Type type = everyType[cases % std::size(everyType)], number = cases % 2 ? i32 : i64;
      const PlaneConfig cfg{rows, columns, more, axis, cases % 3 == 0, 1 << cases % 4};
      const int64_t extent = axis ? columns : rows;
      const int64_t toRows = axis ? rows : more, toColumns = axis ? more : columns;
      const int64_t indexRows = axis && cfg.one ? 1 : toRows, indexColumns = !axis && cfg.one ? 1 : toColumns;
      const Raw elements = words(type, int64_t{1} * rows * columns, 7, ++cases);
      const int64_t odd[] = {-1, extent, INT32_MIN, INT32_MAX};
      std::vector<int64_t> positions;
      Raw places;
      for (int64_t i = 0; i < indexRows * indexColumns; ++i) {
        positions.push_back(i % 5 == 3 ? odd[i % 4] : i * 13 % extent);
        if (number == i64 && i % 7 == 6)
          positions.back() += int64_t{1} << 32; // whose low half would be inside
        places.push_back(rawOfInteger(number, positions.back()));
      }
      const Tensor x = tensor(type, {rows, columns}, elements),
                   index = tensor(number, {indexRows, indexColumns}, places),
                   out(device, type, {2 * toRows, toColumns});
      launch(takeKernel, {x.ref(), index.ref(), out.ref()}, cfg);
      const Raw got = read(out);
      for (int64_t row = 0; row < toRows; ++row)
        for (int64_t column = 0; column < toColumns; ++column) {
          const int64_t at = positions[(indexRows == 1 ? 0 : row) * indexColumns + (indexColumns == 1 ? 0 : column)];
          const bool within = at >= 0 && at < extent;
          const uint64_t want = !within ? 0 : elements[axis ? row * columns + at : at * columns + column];
          for (const int64_t half : {int64_t{0}, toRows})
            ASSERT_TRUE(isFloat(type) ? same(type, got[(half + row) * toColumns + column], want)
                                      : got[(half + row) * toColumns + column] == want)
                << nameOf(type) << ", " << textOf(takeKernel.fields, cfg) << ", " << row << ", " << column;
        }
    }
}

struct CountConfig {
  int rows = 1, columns = 1, bins = 1, warps = 4;
};
void countAll(View x, View mask, View out, CountConfig cfg) {
  const Tile a = load(x, {0, 0}, {cfg.rows, cfg.columns}), m = load(mask, {0, 0}, {cfg.rows, cfg.columns});
  store(out, {0, 0}, histogram(a, cfg.bins));
  store(out, {1, 0}, histogram(a, cfg.bins, m));
  store(out, {2, 0}, histogram(reshape(a, {cfg.rows * cfg.columns}), cfg.bins, false));
}
const Kernel countKernel = kernel("count_all", countAll,
                                  {field("rows", &CountConfig::rows), field("columns", &CountConfig::columns),
                                   field("bins", &CountConfig::bins), field("warps", &CountConfig::warps)});

// Values outside and masked-off ones are not counted; many equal ones are.
TEST_P(Lookups, HistogramsOfEveryInteger) {
  const int shapes[][3] = {{1, 1, 1}, {1, 100, 64}, {7, 33, 5}, {3, 1000, 300}, {64, 16, 2}};
  int cases = 0;
  for (const auto &[rows, columns, bins] : shapes)
    for (const Type type : integerTypes) {
      const CountConfig cfg{rows, columns, bins, 1 << cases++ % 4};
      const int64_t count = int64_t{1} * rows * columns;
      Raw elements, mask, want(3 * bins);
      for (int64_t i = 0; i < count; ++i) {
        int64_t n = i % 3 == 0 ? 1 : i * i % (bins + 9) - 4;
        if (type == i64 && i % 50 == 49)
          n += int64_t{1} << 40; // whose low half would be counted
        elements.push_back(rawOfInteger(type, n));
        mask.push_back(i * 7 % 3 != 0);
        const int64_t is = integerOf(type, elements.back());
        if (is >= 0 && is < bins) {
          ++want[is];
          want[bins + is] += mask.back();
        }
      }
      const Tensor x = tensor(type, {rows, columns}, elements), m = tensor(boolean, {rows, columns}, mask),
                   out(device, i32, {3, bins});
      launch(countKernel, {x.ref(), m.ref(), out.ref()}, cfg);
      EXPECT_EQ(read(out), want) << nameOf(type) << " " << rows << "x" << columns << ", " << bins << " bins";
    }
}

KILN_ON_PROCESSORS(Lookups);

} // namespace
