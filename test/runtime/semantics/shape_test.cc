// Shapes, reductions and the matrix product.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class Shapes : public Semantics {};

// --- Moves -----------------------------------------------------------------------------------------------------------

void moves(View x, View reshaped, View transposed, View broadcasted, View permuted) {
  Tile a = load(x, {0, 0, 0}, {3, 5, 8});
  store(reshaped, {0, 0}, reshape(a, {24, 5}));
  store(transposed, {0, 0, 0}, transpose(a));
  store(permuted, {0, 0, 0}, transpose(reshape(transpose(a, {2, 0, 1}), {5, 8, 3}), {1, 2, 0}));
  Tile column = reshape(load(x, {1, 2, 0}, {1, 1, 8}), {8, 1});
  store(broadcasted, {0, 0}, broadcast(column, {8, 6}) + unsqueeze(iota(6), 0) * 1000);
}
const Kernel movesKernel = kernel("moves", moves);

TEST_P(Shapes, MovesKeepRowMajorOrder) {
  for (const Type type : {i32, f32, i64, f64}) {
    const Tensor x = counting(type, {3, 5, 8}), reshaped(device, type, {24, 5}), transposed(device, type, {3, 8, 5}),
                 broadcasted(device, type, {8, 6}), permuted(device, type, {8, 3, 5});
    launch(movesKernel, {x.ref(), reshaped.ref(), transposed.ref(), broadcasted.ref(), permuted.ref()});
    const Raw source = read(x), turned = read(transposed), columns = read(broadcasted), order = read(permuted);
    EXPECT_EQ(read(reshaped), source);
    Raw middle(120); // (8, 3, 5) after the first transpose
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 5; ++j)
        for (int k = 0; k < 8; ++k) {
          ASSERT_EQ(turned[(i * 8 + k) * 5 + j], source[(i * 5 + j) * 8 + k]) << nameOf(type);
          middle[(k * 3 + i) * 5 + j] = source[(i * 5 + j) * 8 + k];
        }
    for (int i = 0; i < 5; ++i) // (5, 8, 3) → (8, 3, 5)
      for (int j = 0; j < 8; ++j)
        for (int k = 0; k < 3; ++k)
          ASSERT_EQ(order[(j * 3 + k) * 5 + i], middle[(i * 8 + j) * 3 + k]) << nameOf(type);
    const auto number = [&](uint64_t raw) {
      return isFloat(type) ? realOf(type, raw) : static_cast<double>(integerOf(type, raw));
    };
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 6; ++j)
        ASSERT_EQ(number(columns[i * 6 + j]), 56 + i + 1000 * j) << nameOf(type);
  }
}

// --- Reductions ------------------------------------------------------------------------------------------------------

struct ReduceConfig {
  int rows = 1, columns = 1;
  int less = 0; // what is taken from every element: what lies outside is not zero either
};

void reductions(View x, View overColumns, View overRows, View best, ReduceConfig cfg) {
  Tile a = load(x, {0, 0}, {cfg.rows, cfg.columns});
  if (cfg.less)
    a = a - cfg.less;
  int kind = 0;
  for (int axis : {1, 0}) {
    View out = axis == 1 ? overColumns : overRows;
    kind = 0;
    for (const Tile &result : {sum(a, axis), reduce_max(a, axis), reduce_min(a, axis)})
      store(out, {kind++, 0}, cast(result, out.type()));
  }
  store(best, {0, 0}, argmax(a, 1));
  store(best, {1, 0}, argmax(a, 0));
}
const Kernel reductionsKernel = kernel(
    "reductions", reductions,
    {field("rows", &ReduceConfig::rows), field("columns", &ReduceConfig::columns), field("less", &ReduceConfig::less)});

// Small whole numbers with ties: sums are exact in any order.
TEST_P(Shapes, ReductionsGoAlongTheirAxisAtEveryExtent) {
  std::mt19937 random(5);
  for (const Type type : {i8, i32, i64, bf16, f16, f32, f64})
    for (const int64_t extent : {1, 3, 7, 15, 17, 64, 768})
      for (const int64_t other : {1, 3, 16}) {
        const Type out = type == i8 ? i32 : type;
        Raw raw(extent * other);
        std::vector<int> numbers(raw.size());
        const int range = type == bf16 || type == f16 ? 1 : 5; // 768 of them stay exact in f16; bf16 is rounded below
        for (size_t i = 0; i < raw.size(); ++i) {
          numbers[i] = static_cast<int>(random() % (2 * range + 1)) - range;
          raw[i] = isFloat(type) ? rawOfReal(type, numbers[i]) : rawOfInteger(type, numbers[i]);
        }
        const Tensor x = tensor(type, {other, extent}, raw), rows(device, out, {3, other}),
                     columns(device, out, {3, extent}), best(device, i32, {2, std::max(other, extent)});
        launch(reductionsKernel, {x.ref(), rows.ref(), columns.ref(), best.ref()},
               "rows=" + std::to_string(other) + ",columns=" + std::to_string(extent) + ",less=9");
        const auto check = [&](const Raw &got, int64_t lines, int64_t length, int64_t lineStride, int64_t step,
                               int64_t row) {
          const Raw places = read(best);
          for (int64_t line = 0; line < lines; ++line) {
            int total = 0, most = INT32_MIN, least = INT32_MAX;
            int64_t place = 0;
            for (int64_t i = 0; i < length; ++i) {
              const int value = numbers[line * lineStride + i * step] - 9;
              total += value;
              least = std::min(least, value);
              if (value > most) {
                most = value;
                place = i;
              }
            }
            const int want[] = {total, most, least};
            for (int kind = 0; kind < 3; ++kind)
              ASSERT_TRUE(same(out, got[kind * lines + line],
                               isFloat(out) ? rawOfReal(out, want[kind]) : rawOfInteger(out, want[kind]), false))
                  << nameOf(type) << " " << other << "x" << extent << ", kind " << kind << ", line " << line;
            ASSERT_EQ(static_cast<int64_t>(places[row * std::max(other, extent) + line]), place)
                << nameOf(type) << " " << other << "x" << extent << ", line " << line;
          }
        };
        check(read(rows), other, extent, extent, 1, 0);
        check(read(columns), extent, other, 1, extent, 1);
      }
}

// NaN is passed over by max, min and argmax unless there is nothing else.
TEST_P(Shapes, ReductionsPassOverNaN) {
  const double lines[5][4] = {{NAN, 6, 8, NAN},
                              {NAN, -INFINITY, INFINITY, 1},
                              {3, NAN, 3, 2},
                              {NAN, NAN, NAN, NAN},
                              {-INFINITY, NAN, -INFINITY, NAN}};
  const double most[] = {8, INFINITY, 3, NAN, -INFINITY}, least[] = {6, -INFINITY, 2, NAN, -INFINITY};
  const int place[] = {2, 2, 0, 0, 0};
  for (const Type type : floatTypes) {
    Raw raw;
    for (const auto &line : lines)
      for (const double value : line)
        raw.push_back(rawOfReal(type, value));
    const Tensor x = tensor(type, {5, 4}, raw), rows(device, type, {3, 5}), columns(device, type, {3, 4}),
                 best(device, i32, {2, 5});
    launch(reductionsKernel, {x.ref(), rows.ref(), columns.ref(), best.ref()}, "rows=5,columns=4");
    const Raw got = read(rows), places = read(best);
    for (int line = 0; line < 5; ++line) {
      EXPECT_TRUE(same(type, got[5 + line], rawOfReal(type, most[line]))) << nameOf(type) << " max of line " << line;
      EXPECT_TRUE(same(type, got[10 + line], rawOfReal(type, least[line]))) << nameOf(type) << " min of line " << line;
      EXPECT_EQ(places[line], static_cast<uint64_t>(place[line])) << nameOf(type) << " argmax of line " << line;
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
  for (const Type type : {i8, bf16, f16, f32, f64})
    for (const bool turned : {false, true})
      for (const auto &[m, n, k] : shapes) {
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

// A right operand may change from step to step, or be the same in all.
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

KILN_ON_PROCESSORS(Shapes);

} // namespace
