// Shapes at every rank: permutations, new dimensions, broadcasting, reductions along any axis; and products whose
// operands are no plain loads.

#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <numeric>

using namespace kiln;
using namespace kiln::test;

namespace {

class Moves : public Semantics {};
const Shape allExtents{2, 3, 4, 5, 3}; // of tiles of rank 5; the first ones are those of lower ranks

Shape extentsOf(int rank) { return Shape(allExtents.begin(), allExtents.begin() + rank); }

/// Row-major strides.
Shape stridesOf(const Shape &shape) {
  Shape strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

int64_t countOf(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

// --- Permutations ----------------------------------------------------------------------------------------------------

struct OrderConfig {
  int number = 0; // of the permutation, in lexicographic order
};

std::vector<int> orderOf(int rank, int number) {
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  while (number-- > 0)
    std::next_permutation(order.begin(), order.end());
  return order;
}

/// Turns a tile of the views' rank, as loaded and after arithmetic.
void turn(View x, View y, View z, OrderConfig cfg) {
  const std::vector<int> order = orderOf(x.rank(), cfg.number);
  Tile a = load(x, Offsets(x.rank(), 0), extentsOf(x.rank()));
  store(y, Offsets(x.rank(), 0), transpose(a, order));
  store(z, {0}, reshape(transpose(a + 1, order), {countOf(extentsOf(x.rank()))}));
}
const Kernel turnKernel = kernel("turn", turn, {field("number", &OrderConfig::number)});

TEST_P(Moves, EveryPermutationOfUpToFourDimensions) {
  const int counts[] = {1, 1, 2, 6, 24, 120};
  for (int rank = 1; rank <= 5; ++rank)
    for (int number = 0; number < counts[rank]; number += rank < 5 ? 1 : 17) {
      const Shape shape = extentsOf(rank), from = stridesOf(shape);
      const std::vector<int> order = orderOf(rank, number);
      Shape turned(rank);
      for (int axis = 0; axis < rank; ++axis)
        turned[axis] = shape[order[axis]];
      const Tensor x = counting(i32, shape), y(device, i32, turned), z(device, i32, {countOf(shape)});
      launch(turnKernel, {x.ref(), y.ref(), z.ref()}, "number=" + std::to_string(number));
      const Raw got = read(y), flat = read(z);
      const Shape to = stridesOf(turned);
      for (int64_t place = 0; place < countOf(shape); ++place) {
        int64_t source = 0;
        for (int axis = 0; axis < rank; ++axis)
          source += place / to[axis] % turned[axis] * from[order[axis]];
        ASSERT_EQ(got[place], static_cast<uint64_t>(source)) << "rank " << rank << ", permutation " << number;
        ASSERT_EQ(flat[place], static_cast<uint64_t>(source + 1)) << "rank " << rank << ", permutation " << number;
      }
    }
}

// --- New dimensions and broadcasting ---------------------------------------------------------------------------------

void outer(View x, View y, View out) {
  Tile a = load(x, {0}, {3}), b = load(y, {0}, {5}); // (3), (5)
  store(out, {0, 0, 0}, unsqueeze(a, 1) * 10 + b);
  store(out, {1, 0, 0}, unsqueeze(a, -1) * 10 + unsqueeze(b, 0));
  store(out, {2, 0, 0}, transpose(unsqueeze(b, -1) + unsqueeze(a * 10, -2)));
  store(out, {3, 0, 0}, broadcast(unsqueeze(a, 1), {3, 5}) * 10 + broadcast(b, {3, 5}));
  store(out, {4, 0, 0}, where(unsqueeze(a, 1) > 1, b, unsqueeze(a, 1))); // the condition is broadcast, too
  store(out, {5, 0, 0}, full(i32, {1, 5}, 7) - full(i32, {3, 1}, 3));
}
const Kernel outerKernel = kernel("outer", outer);

TEST_P(Moves, ShapesBroadcastAsInNumPy) {
  const Tensor x = counting(i32, {3}), y = counting(i32, {5}, 2), out(device, i32, {6, 3, 5});
  launch(outerKernel, {x.ref(), y.ref(), out.ref()});
  const Raw got = read(out);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 5; ++j) {
      for (int form = 0; form < 4; ++form)
        EXPECT_EQ(got[(form * 3 + i) * 5 + j], static_cast<uint64_t>(i * 10 + j + 2)) << form << ": " << i << ", " << j;
      EXPECT_EQ(got[(4 * 3 + i) * 5 + j], static_cast<uint64_t>(i > 1 ? j + 2 : i)) << i << ", " << j;
      EXPECT_EQ(got[(5 * 3 + i) * 5 + j], 4u) << i << ", " << j;
    }
}

struct MaskConfig {
  int left = 0, right = 0; // bit i: dimension i has extent 1
};

Shape unitsIn(Shape shape, int mask) {
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (mask >> axis & 1)
      shape[axis] = 1;
  return shape;
}

/// a · 100 + b, where either may have extents of 1.
void combine(View x, View y, View out, MaskConfig cfg) {
  const Shape all = extentsOf(3);
  Tile a = load(x, {0, 0, 0}, unitsIn(all, cfg.left)), b = load(y, {0, 0, 0}, unitsIn(all, cfg.right));
  store(out, {0, 0, 0}, broadcast(a * 100 + b, all));
}
const Kernel combineKernel =
    kernel("combine", combine, {field("left", &MaskConfig::left), field("right", &MaskConfig::right)});

TEST_P(Moves, ExtentsOfOneRepeatOnEitherSide) {
  const Shape all = extentsOf(3), strides = stridesOf(all);
  const Tensor x = counting(f32, all), y = counting(f32, all, 1), out(device, f32, all);
  for (int left = 0; left < 8; ++left)
    for (int right = 0; right < 8; right += left == 0 ? 1 : 3) {
      launch(combineKernel, {x.ref(), y.ref(), out.ref()},
             "left=" + std::to_string(left) + ",right=" + std::to_string(right));
      const Raw got = read(out);
      for (int64_t place = 0; place < countOf(all); ++place) {
        int64_t a = 0, b = 0;
        for (int axis = 0; axis < 3; ++axis) {
          const int64_t at = place / strides[axis] % all[axis] * strides[axis];
          a += left >> axis & 1 ? 0 : at;
          b += right >> axis & 1 ? 0 : at;
        }
        ASSERT_EQ(realOf(f32, got[place]), static_cast<double>(a * 100 + b + 1)) << left << ", " << right;
      }
    }
}

void fill(View zero, View constant, View scalar, View counts, Tile s, ExtentConfig cfg) {
  store(zero, {0}, zeros(zero.type(), {cfg.extent}));
  store(constant, {0}, full(constant.type(), {cfg.extent}, 1));
  store(scalar, {0}, full(scalar.type(), {cfg.extent}, s));
  store(counts, {0}, cast(iota(cfg.extent, i64) + cast(iota(cfg.extent), i64), i64));
}
const Kernel fillKernel = kernel("fill", fill, extentField());

// zeros, full of a number and of a scalar that is cast, and iota.
TEST_P(Moves, TilesAreMadeAtEveryTypeAndExtent) {
  for (const Type type : everyType)
    for (const int64_t extent : extents) {
      const Tensor zero = tensor(type, {extent}, Raw(extent, 1)), constant(device, type, {extent}),
                   scalar(device, type, {extent}), counts(device, i64, {extent});
      launch(fillKernel, {zero.ref(), constant.ref(), scalar.ref(), counts.ref(), int64_t(-3)}, extentText(extent));
      EXPECT_EQ(read(zero), Raw(extent, 0)) << nameOf(type);
      EXPECT_EQ(read(constant), Raw(extent, isFloat(type) ? rawOfReal(type, 1) : 1)) << nameOf(type);
      EXPECT_EQ(read(scalar), Raw(extent, isFloat(type) ? rawOfReal(type, -3) : rawOfInteger(type, -3)))
          << nameOf(type);
      const Raw numbers = read(counts);
      for (int64_t i = 0; i < extent; ++i)
        ASSERT_EQ(numbers[i], static_cast<uint64_t>(2 * i));
    }
}

// --- Reductions ------------------------------------------------------------------------------------------------------

struct AxisConfig {
  int axis = 0;
};

/// Reduces a tile of the view's rank along an axis, negative ones counted from the end, and a turned tile.
void reduceAxis(View x, View out, View best, AxisConfig cfg) {
  Tile a = load(x, Offsets(x.rank(), 0), extentsOf(x.rank()));
  Tile turned = x.rank() > 1 ? transpose(transpose(a)) : a;
  int row = 0;
  for (const Tile &tile : {a, turned})
    for (const Tile &result : {sum(tile, cfg.axis), reduce_max(tile, cfg.axis), reduce_min(tile, cfg.axis)}) {
      const int64_t count = result.rank() == 0 ? 1 : countOf(result.shape());
      store(out, {row++, 0}, cast(reshape(result, {count}), out.type()));
    }
  Tile places = argmax(a, cfg.axis);
  store(best, {0}, reshape(places, {places.rank() == 0 ? 1 : countOf(places.shape())}));
}
const Kernel reduceAxisKernel = kernel("reduce_axis", reduceAxis, {field("axis", &AxisConfig::axis)});

TEST_P(Moves, ReductionsOfAnyRankAlongAnyAxis) {
  std::mt19937 random(11);
  for (const Type type : {boolean, f32})
    for (int rank = 1; rank <= 5; ++rank)
      for (int axis = -rank; axis < rank; ++axis) {
        const Shape shape = extentsOf(rank), strides = stridesOf(shape);
        std::vector<int> numbers(countOf(shape));
        Raw raw;
        for (int &number : numbers) {
          number = type == boolean ? random() % 2 : static_cast<int>(random() % 7) - 3;
          raw.push_back(isFloat(type) ? rawOfReal(type, number) : rawOfInteger(type, number));
        }
        const int64_t along = axis < 0 ? axis + rank : axis, length = shape[along], step = strides[along];
        const int64_t lines = countOf(shape) / length;
        const Tensor x = tensor(type, shape, raw), out(device, i32, {6, lines}), best(device, i32, {lines});
        launch(reduceAxisKernel, {x.ref(), out.ref(), best.ref()}, "axis=" + std::to_string(axis));
        const Raw got = read(out), places = read(best);
        for (int64_t line = 0; line < lines; ++line) {
          const int64_t first = line / step * step * length + line % step;
          int total = 0, most = numbers[first], least = most;
          int64_t place = 0;
          for (int64_t i = 0; i < length; ++i) {
            const int number = numbers[first + i * step];
            total += number;
            least = std::min(least, number);
            if (number > most) {
              most = number;
              place = i;
            }
          }
          const int want[] = {total, most, least};
          for (int row = 0; row < 6; ++row)
            ASSERT_EQ(static_cast<int32_t>(got[row * lines + line]), want[row % 3])
                << nameOf(type) << ", rank " << rank << ", axis " << axis << ", row " << row << ", line " << line;
          ASSERT_EQ(static_cast<int64_t>(places[line]), place)
              << nameOf(type) << ", rank " << rank << ", axis " << axis;
        }
      }
}

// --- Products --------------------------------------------------------------------------------------------------------

struct ProductConfig {
  int m = 1, n = 1, k = 1;
  int form = 0;
};

/// Products of operands that are turned, computed, made in the program, or products themselves.
void products(View a, View b, View c, ProductConfig cfg) {
  Tile left = load(a, {0, 0}, {cfg.m, cfg.k}), right = load(b, {0, 0}, {cfg.k, cfg.n}); // (M, K), (K, N)
  const Tile turnedLeft = transpose(load(a, {0, 0}, {cfg.k, cfg.m}));
  const Tile ones = full(left.type(), {cfg.n, cfg.n}, 1);
  Tile result;
  switch (cfg.form) {
  case 0:
    result = dot(turnedLeft, right);
    break;
  case 1:
    result = dot(turnedLeft, transpose(load(b, {0, 0}, {cfg.n, cfg.k})));
    break;
  case 2:
    result = dot(left + 1, max(right, 0));
    break;
  case 3:
    result = dot(cast(dot(left, right), left.type()), ones);
    break;
  case 4:
    result = dot(full(left.type(), {cfg.m, cfg.k}, 2),
                 cast(unsqueeze(iota(cfg.k), 1) + zeros(i32, {1, cfg.n}), left.type()));
    break;
  case 5:
    result = dot(left, right, broadcast(unsqueeze(sum(dot(left, right), 0), 0), {cfg.m, cfg.n}), Precision::tf32);
    break;
  default:
    result = transpose(dot(left, right, Precision::tf32x3)) * 2;
  }
  store(c, {0, 0}, result);
}
const Kernel productsKernel = kernel("products", products,
                                     {field("m", &ProductConfig::m), field("n", &ProductConfig::n),
                                      field("k", &ProductConfig::k), field("form", &ProductConfig::form)});

// Small whole numbers: exact in any order, in every type and, on a CPU, at every precision.
TEST_P(Moves, ProductsOfAnyOperands) {
  std::mt19937 random(12);
  const int shapes[][3] = {{1, 1, 1}, {3, 17, 5}, {17, 64, 33}};
  for (const Type type : {i8, bf16, f32})
    for (const auto &[m, n, k] : shapes)
      for (int form = 0; form < 7; ++form) {
        const Type out = type == i8 ? i32 : type == f64 ? f64 : f32;
        std::vector<int> l(std::max(m, k) * std::max(m, k)), r(std::max(n, k) * std::max(n, k));
        const auto make = [&](std::vector<int> &numbers, int64_t rows, int64_t columns) {
          numbers.resize(rows * columns);
          Raw raw;
          for (int &number : numbers) {
            number = random() % 8 == 0 ? static_cast<int>(random() % 5) - 2 : 0; // few, so that i8 and bf16 hold sums
            raw.push_back(isFloat(type) ? rawOfReal(type, number) : rawOfInteger(type, number));
          }
          return tensor(type, {rows, columns}, raw);
        };
        const Tensor a = form <= 1 ? make(l, k, m) : make(l, m, k), b = form == 1 ? make(r, n, k) : make(r, k, n),
                     c(device, out, form == 6 ? Shape{n, m} : Shape{m, n});
        launch(productsKernel, {a.ref(), b.ref(), c.ref()},
               "m=" + std::to_string(m) + ",n=" + std::to_string(n) + ",k=" + std::to_string(k) +
                   ",form=" + std::to_string(form));
        const auto leftAt = [&](int i, int s) { return form <= 1 ? l[s * m + i] : l[i * k + s]; };
        const auto rightAt = [&](int s, int j) { return form == 1 ? r[j * k + s] : r[s * n + j]; };
        const auto product = [&](int i, int j) {
          int total = 0;
          for (int s = 0; s < k; ++s)
            total += form == 2   ? (leftAt(i, s) + 1) * std::max(rightAt(s, j), 0)
                     : form == 4 ? 2 * s
                                 : leftAt(i, s) * rightAt(s, j);
          return total;
        };
        const Raw got = read(c);
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            int want = form == 3 ? 0 : product(i, j);
            for (int other = 0; form == 3 && other < n; ++other)
              want += product(i, other);
            for (int other = 0; form == 5 && other < m; ++other)
              want += product(other, j);
            want *= form == 6 ? 2 : 1;
            const uint64_t word = got[form == 6 ? j * m + i : i * n + j];
            ASSERT_TRUE(same(out, word, isFloat(out) ? rawOfReal(out, want) : rawOfInteger(out, want), false))
                << nameOf(type) << " " << m << "x" << n << "x" << k << ", form " << form << " at " << i << ", " << j;
          }
      }
}

KILN_ON_PROCESSORS(Moves);

} // namespace
