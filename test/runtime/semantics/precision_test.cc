// Products of f32 whose operands a precision permits to round: within the bounds of dialect/NUMERICS.md, and infinite
// or NaN if the exact product is.

#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <fmt/format.h>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

struct PrecisionConfig {
  int m = 16, n = 16, k = 16;
  Precision precision = Precision::ieee;
};

/// c += a · b.
void multiply(View a, View b, View c, PrecisionConfig cfg) {
  Tile left = load(a, {0, 0}, {cfg.m, cfg.k}), right = load(b, {0, 0}, {cfg.k, cfg.n}); // (m, k), (k, n)
  store(c, {0, 0}, dot(left, right, load(c, {0, 0}, {cfg.m, cfg.n}), cfg.precision));
}
const Kernel multiplyKernel =
    kernel("multiply", multiply,
           {field("m", &PrecisionConfig::m), field("n", &PrecisionConfig::n), field("k", &PrecisionConfig::k),
            field("precision", &PrecisionConfig::precision, precisionNames)});

class Precisions : public Semantics {
protected:
  /// a · b + c, of matrices of `m` × `k`, `k` × `n` and `m` × `n` elements.
  std::vector<double> product(int64_t m, int64_t n, int64_t k, Precision precision, const std::vector<double> &a,
                              const std::vector<double> &b, const std::vector<double> &c) {
    const auto raw = [](const std::vector<double> &numbers) {
      Raw words;
      for (const double number : numbers)
        words.push_back(rawOfReal(f32, number));
      return words;
    };
    const Tensor left = tensor(f32, {m, k}, raw(a)), right = tensor(f32, {k, n}, raw(b)),
                 sums = tensor(f32, {m, n}, raw(c));
    launch(multiplyKernel, {left.ref(), right.ref(), sums.ref()},
           fmt::format("m={},n={},k={},precision={}", m, n, k, precisionNames[static_cast<size_t>(precision)]));
    std::vector<double> got;
    for (const uint64_t word : read(sums))
      got.push_back(toDouble(f32, word));
    return got;
  }
};

/// The share of Σ|a · b| that a product of `n` terms may be off by.
double boundOf(Precision precision, double n) {
  const double sums = n * 0x1p-24;
  switch (precision) {
  case Precision::ieee:
    return sums;
  case Precision::tf32:
    return 1.3 * 0x1p-10 + 0x1p-21 + 3 * sums;
  case Precision::tf32x3:
    return 5.1 * 0x1p-22 + 9 * sums;
  case Precision::bf16x3:
    return 3 * 0x1p-16 + 0x1p-22 + 9 * sums;
  }
  return 0;
}

constexpr Precision everyPrecision[] = {Precision::ieee, Precision::tf32, Precision::tf32x3, Precision::bf16x3};

// Factors of all significant bits and of many sizes, ties of the roundings among them, in tiles that fill instructions
// and in others.
TEST_P(Precisions, StayWithinTheirBounds) {
  std::mt19937 random(7);
  const auto number = [&] {
    const uint32_t word = random();
    const double significand = 1 + static_cast<double>(word & 0x7fffff) / 0x1p23,
                 tie = word & 0x1000 ? 0x1p-11 : 0x1p-8;
    return std::ldexp(word % 5 == 0 ? 1 + tie : significand, static_cast<int>(word >> 24 & 31) - 16) *
           (word >> 31 ? -1 : 1);
  };
  const int64_t shapes[][3] = {{16, 8, 16}, {64, 64, 64}, {32, 16, 40}, {17, 9, 33}, {64, 32, 8}, {16, 16, 128}};
  for (const auto &[m, n, k] : shapes)
    for (const Precision precision : everyPrecision) {
      std::vector<double> a(m * k), b(k * n), c(m * n);
      for (std::vector<double> *const numbers : {&a, &b, &c})
        std::generate(numbers->begin(), numbers->end(), number);
      const std::vector<double> got = product(m, n, k, precision, a, b, c);
      for (int64_t i = 0; i < m * n; ++i) {
        double want = c[i], sizes = std::fabs(c[i]);
        for (int64_t t = 0; t < k; ++t) {
          const double term = a[i / n * k + t] * b[t * n + i % n];
          want += term;
          sizes += std::fabs(term);
        }
        ASSERT_LE(std::fabs(got[i] - want), boundOf(precision, static_cast<double>(k + 1)) * sizes)
            << precisionNames[static_cast<size_t>(precision)] << ", " << m << "x" << n << "x" << k << ", element " << i;
      }
    }
}

// An operand that is infinite or NaN has the effect that it has in the exact product: the parts into which other
// operands are split change nothing. No finite product becomes infinite.
TEST_P(Precisions, InfinitiesAndNaNsAreThoseOfTheProduct) {
  const double infinity = INFINITY, most = 0x1.fcp127; // of what bf16 has
  const double specials[] = {infinity, -infinity, NAN, most, -most, 0x1p-126, 0, -0.0};
  const int64_t m = 16, n = 16, k = 32;
  for (const Precision precision : everyPrecision)
    for (const double left : specials)
      for (const double right : {1.0, 1.0 / 3, -1.0, 0.0, infinity, static_cast<double>(NAN)}) {
        std::vector<double> a(m * k, 0.125), b(k * n, 0.125), c(m * n, 1);
        a[5 * k + 7] = left;
        b[7 * n + 3] = right;
        const std::vector<double> got = product(m, n, k, precision, a, b, c);
        for (int64_t i = 0; i < m * n; ++i) {
          double want = c[i];
          for (int64_t t = 0; t < k; ++t)
            want += a[i / n * k + t] * b[t * n + i % n];
          if (std::isfinite(want))
            ASSERT_NEAR(got[i], want, boundOf(precision, k + 1) * (std::fabs(want) + k))
                << precisionNames[static_cast<size_t>(precision)] << ": " << left << " by " << right << " at " << i;
          else
            ASSERT_PRED2([](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }, got[i], want)
                << precisionNames[static_cast<size_t>(precision)] << ": " << left << " by " << right << " at " << i;
        }
      }
}

// --- Terms outside of views ------------------------------------------------------------------------------------------

struct DepthConfig {
  int rows = 1, depth = 1;
};
const std::vector<Field> depthFields = {field("rows", &DepthConfig::rows), field("depth", &DepthConfig::depth)};

/// c = c + a · b, of tiles that are as large as their views.
void whole(View a, View b, View c, DepthConfig cfg) {
  Tile left = load(a, {0, 0}, {cfg.rows, cfg.depth}),
       right = load(b, {0, 0}, {cfg.depth, 33}); // (rows, depth), (depth, 33)
  store(c, {0, 0}, dot(left, right, load(c, {0, 0}, {cfg.rows, 33})));
}
const Kernel wholeKernel = kernel("whole", whole, depthFields);

/// rows × columns ones, but `special` in rows or, `across`, columns from `from` on, before `to`.
Raw onesBut(Type type, int64_t rows, int64_t columns, bool across, int64_t from, int64_t to, double special) {
  Raw raw;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int64_t k = across ? i % columns : i / columns;
    raw.push_back(rawOfReal(type, from <= k && k < to ? special : 1));
  }
  return raw;
}

// A term with an operand outside of its view may be omitted, on either side, or be infinity times zero; no other may.
TEST_P(Precisions, LeaveOutTermsWithAFactorOutsideAlone) {
  for (const Type type : {f32, bf16, f16, f64})
    for (const int64_t rows : {1, 16})
      for (const int64_t depth : {20, 64}) {
        const Type sums = type == f64 ? f64 : f32;
        const int64_t inside = depth - 7;
        const auto product = [&](const Tensor &a, const Tensor &b) {
          const Tensor c = tensor(sums, {rows, 33}, Raw(rows * 33, 0));
          launch(wholeKernel, {a.ref(), b.ref(), c.ref()}, fmt::format("rows={},depth={}", rows, depth));
          return read(c);
        };
        const Raw infinite = onesBut(type, rows, depth, true, inside, depth, INFINITY),
                  below = onesBut(type, depth, 33, false, inside, depth, INFINITY);
        const Tensor ones = tensor(type, {rows, inside}, Raw(rows * inside, rawOfReal(type, 1))),
                     short33 = tensor(type, {inside, 33}, Raw(inside * 33, rawOfReal(type, 1)));
        for (const Raw &got :
             {product(tensor(type, {rows, depth}, infinite), short33), product(ones, tensor(type, {depth, 33}, below))})
          for (const uint64_t word : got) {
            const double sum = toDouble(sums, word);
            ASSERT_TRUE(std::isnan(sum) || sum == static_cast<double>(inside)) << nameOf(type) << ": " << sum;
          }
        const Tensor left = tensor(type, {rows, depth}, onesBut(type, rows, depth, true, 2, 3, INFINITY)),
                     right = tensor(type, {depth, 33}, onesBut(type, depth, 33, false, 2, 3, 0));
        for (const uint64_t word : product(left, right))
          ASSERT_TRUE(std::isnan(toDouble(sums, word))) << nameOf(type);
      }
}

KILN_ON_PROCESSORS(Precisions);

} // namespace
