// Products of operands of every shape and form; tiles that are made of numbers; operands that repeat.

#include "test/runtime/semantics/drawn.h"

#include <cmath>

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

struct DotConfig {
  int m = 1, n = 1, k = 1;
  bool turned = false;
};

/// c = a · b + c; `turned` reads b as (N, K).
void multiply(View a, View b, View c, DotConfig cfg) {
  Tile right = cfg.turned ? transpose(load(b, {0, 0}, {cfg.n, cfg.k})) : load(b, {0, 0}, {cfg.k, cfg.n}); // (K, N)
  store(c, {0, 0}, dot(load(a, {0, 0}, {cfg.m, cfg.k}), right, load(c, {0, 0}, {cfg.m, cfg.n})));
}
const Kernel multiplyKernel = kernel("multiply", multiply,
                                     {field("m", &DotConfig::m), field("n", &DotConfig::n), field("k", &DotConfig::k),
                                      field("turned", &DotConfig::turned)});

// Small whole numbers: every product and sum is exact, in any order.
TEST_P(Shapes, DotMultipliesMatricesOfEveryShape) {
  std::mt19937 random(6);
  const int shapes[][3] = {{1, 1, 1},   {1, 17, 3},  {3, 1, 17},   {17, 3, 64}, {64, 64, 64},
                           {5, 768, 9}, {8, 32, 16}, {33, 31, 65}, {2, 16, 256}};
  int cases = 0;
  for (const Type type : {i8, bf16, f16, f32, f64})
    for (const auto &[m, n, k] : shapes) { // nine: each type meets each shape once, turned or not
      const bool turned = cases++ % 2;
      const Type out = type == i8 ? i32 : type == f64 ? f64 : f32;
      const auto make = [&](Type element, int64_t rows, int64_t columns, std::vector<int> &numbers) {
        numbers.resize(rows * columns);
        Raw raw(numbers.size());
        for (size_t i = 0; i < raw.size(); ++i) {
          numbers[i] = static_cast<int>(random() % 15) - 7;
          raw[i] = isFloat(element) ? rawOfReal(element, numbers[i]) : rawOfInteger(element, numbers[i]);
        }
        return tensor(element, {rows, columns}, raw);
      };
      std::vector<int> l, r, acc;
      const Tensor a = make(type, m, k, l), b = turned ? make(type, n, k, r) : make(type, k, n, r),
                   c = make(out, m, n, acc);
      launch(multiplyKernel, {a.ref(), b.ref(), c.ref()},
             "m=" + std::to_string(m) + ",n=" + std::to_string(n) + ",k=" + std::to_string(k) +
                 (turned ? ",turned=1" : ""));
      const Raw got = read(c);
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          int want = acc[i * n + j];
          for (int s = 0; s < k; ++s)
            want += l[i * k + s] * (turned ? r[j * k + s] : r[s * n + j]);
          ASSERT_TRUE(same(out, got[i * n + j], isFloat(out) ? rawOfReal(out, want) : rawOfInteger(out, want), false))
              << nameOf(type) << " " << m << "x" << n << "x" << k << (turned ? " turned" : "") << " at " << i << ", "
              << j;
        }
    }
}

/// c = 2 · Σ_k a · b + 1 over n columns of a, eight at a time.
void sumOfProducts(View a, View b, View c, Tile n) {
  Tile acc = zeros(f32, {40, 64});
  for (Tile k : range(0, n, 8))
    acc = dot(load(a, {0, k}, {40, 8}), load(b, {k, 0}, {8, 64}), acc);
  store(c, {0, 0}, acc * 2.0 + 1.0);
}
const Kernel sumOfProductsKernel = kernel("sum_of_products", sumOfProducts);

// The result is larger than the operands, whose padding is zero, and the sum may have no steps.
TEST_P(Shapes, SumsOfProductsReachEveryElementOfTheResult) {
  const int64_t M = 19, K = 21, N = 37;
  std::vector<int> a(M * K), b(K * N);
  Raw rawA(a.size()), rawB(b.size());
  for (size_t i = 0; i < a.size(); ++i)
    rawA[i] = rawOfReal(f32, a[i] = static_cast<int>(i * 7 % 11) - 5);
  for (size_t i = 0; i < b.size(); ++i)
    rawB[i] = rawOfReal(f32, b[i] = static_cast<int>(i * 5 % 13) - 6);
  const Tensor left = tensor(f32, {M, K}, rawA), right = tensor(f32, {K, N}, rawB);
  for (const int64_t steps : {0, 8, 24}) {
    const Tensor c = tensor(f32, {39, 50}, Raw(39 * 50, rawOfReal(f32, 7)));
    launch(sumOfProductsKernel, {left.ref(), right.ref(), c.ref(), steps});
    const Raw got = read(c);
    for (int64_t m = 0; m < 39; ++m)
      for (int64_t n = 0; n < 50; ++n) {
        int want = 0;
        for (int64_t k = 0; k < std::min(steps, K) && m < M && n < N; ++k)
          want += a[m * K + k] * b[k * N + n];
        ASSERT_TRUE(same(f32, got[m * 50 + n], rawOfReal(f32, 2 * want + 1), false)) << steps << ": " << m << ", " << n;
      }
  }
}

/// a = a · b, in place.
void multiplyOver(View a, View b) {
  store(a, {0, 0}, dot(load(a, {0, 0}, {48, 48}), load(b, {0, 0}, {48, 48}), zeros(f32, {48, 48})));
}
const Kernel multiplyOverKernel = kernel("multiply_over", multiplyOver);

TEST_P(Shapes, AProductMayOverwriteItsOperand) {
  const int64_t N = 48;
  std::vector<int> a(N * N);
  Raw raw(a.size()), turn(a.size(), rawOfReal(f32, 0));
  for (size_t i = 0; i < a.size(); ++i)
    raw[i] = rawOfReal(f32, a[i] = static_cast<int>(i * 7 % 97));
  for (int64_t n = 0; n < N; ++n)
    turn[n * N + N - 1 - n] = rawOfReal(f32, 1); // turns the columns about
  const Tensor x = tensor(f32, {N, N}, raw), b = tensor(f32, {N, N}, turn);
  launch(multiplyOverKernel, {x.ref(), b.ref()});
  const Raw got = read(x);
  for (int64_t m = 0; m < N; ++m)
    for (int64_t n = 0; n < N; ++n)
      ASSERT_TRUE(same(f32, got[m * N + n], rawOfReal(f32, a[m * N + N - 1 - n]), false)) << m << ", " << n;
}

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

struct ProductConfig {
  int m = 1, n = 1, k = 1;
  int form = 0;
};

/// Products of operands that are transposed, computed, constant, or products themselves.
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
TEST_P(Shapes, ProductsOfAnyOperands) {
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

KILN_ON_PROCESSORS(Shapes);

} // namespace
