// Elementwise operations × element types × extents, at special and random words.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

/// A scalar, a short extent that changes with the type, and the longest, which includes all pairs of special words.
std::array<int64_t, 3> linesOf(Type type) {
  const auto special = static_cast<int64_t>(specialWords(type).size());
  return {0, extents[static_cast<size_t>(type) % 4], std::max(extents[4], special * special)};
}

// --- Integers --------------------------------------------------------------------------------------------------------

void integerOperations(View x, View y, View out, View flags, ExtentConfig cfg) {
  Tile a = load(x, {0}, lineOf(cfg.extent)), b = load(y, {0}, lineOf(cfg.extent));
  const Tile results[] = {a + b,
                          a - b,
                          a * b,
                          a / b,
                          a % b,
                          a & b,
                          a | b,
                          a ^ b,
                          ~a,
                          a << b,
                          a >> b,
                          min(a, b),
                          max(a, b),
                          -a,
                          abs(a),
                          clamp(a, b, b + 1),
                          where(a < b, a, b),
                          fma(a, b, a),
                          floor(a),
                          ceil(b),
                          popcount(a),
                          clz(a),
                          brev(a)};
  int row = 0;
  for (const Tile &result : results)
    store(out, {row++, 0}, result);
  const Tile tests[] = {a == b, a != b, a<b, a <= b, a> b, a >= b, !(a < b), (a < b) & (a != b), (a < b) ^ (b > 0)};
  row = 0;
  for (const Tile &test : tests)
    store(flags, {row++, 0}, test);
}
const Kernel integerKernel = kernel("integers", integerOperations, extentField());

/// The number of ones, of leading zeros, and the bits in reverse order.
Raw bitResults(Type type, uint64_t word) {
  const int64_t bits = bytesOf(type) * 8;
  uint64_t ones = 0, zeros = 0, reversed = 0;
  for (int64_t bit = 0; bit < bits; ++bit) {
    const uint64_t value = word >> bit & 1;
    ones += value;
    zeros = value ? 0 : zeros + 1; // since the last one
    reversed |= value << (bits - 1 - bit);
  }
  return {ones, zeros, reversed};
}

/// The words of the operations above in wrapping 128-bit arithmetic.
Raw integerResults(Type type, __int128 a, __int128 b) {
  const int bits = static_cast<int>(bytesOf(type) * 8);
  const auto wrap = [&](__int128 value) { return rawOfInteger(type, static_cast<int64_t>(value)); };
  const auto product = static_cast<__int128>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
  const uint64_t amount = wrap(b);
  const bool all = amount >= static_cast<uint64_t>(bits);
  const __int128 above = wideOf(type, wrap(b + 1));
  const Raw bitwise = bitResults(type, wrap(a));
  return {wrap(a + b),
          wrap(a - b),
          wrap(product),
          wrap(b == 0 ? 0 : a / b),
          wrap(b == 0 ? a : a % b),
          wrap(a & b),
          wrap(a | b),
          wrap(a ^ b),
          wrap(~a),
          wrap(all ? 0 : static_cast<__int128>(static_cast<unsigned __int128>(a) << amount)),
          wrap(all ? (a < 0 ? -1 : 0) : a >> amount),
          wrap(std::min(a, b)),
          wrap(std::max(a, b)),
          wrap(-a),
          wrap(a < 0 ? -a : a),
          wrap(std::min(std::max(a, b), above)),
          wrap(a < b ? a : b),
          wrap(product + a),
          wrap(a),
          wrap(b),
          bitwise[0],
          bitwise[1],
          bitwise[2]};
}

class Elementwise : public Semantics {};

TEST_P(Elementwise, IntegerOperationsWrapAndAreTotal) {
  const char *const operations[] = {"+",     "-",   "*",     "/",       "%",           "&",      "|",      "^",
                                    "~",     "<<",  ">>",    "min",     "max",         "neg",    "abs",    "clamp",
                                    "where", "fma", "floor", "ceil of", "popcount of", "clz of", "brev of"};
  constexpr int count = std::size(operations);
  for (const Type type : integerTypes)
    for (const int64_t line : linesOf(type)) {
      const int64_t extent = std::max<int64_t>(line, 1), pairs = static_cast<int64_t>(specialWords(type).size());
      const Raw a = words(type, extent, 1, 1), b = words(type, extent, pairs, 2);
      const Tensor x = tensor(type, {extent}, a), y = tensor(type, {extent}, b), out(device, type, {count, extent}),
                   flags(device, boolean, {9, extent});
      launch(integerKernel, {x.ref(), y.ref(), out.ref(), flags.ref()}, extentText(line));
      const Raw got = read(out), tests = read(flags);
      for (int64_t i = 0; i < extent; ++i) {
        const __int128 l = wideOf(type, a[i]), r = wideOf(type, b[i]);
        const Raw want = integerResults(type, l, r);
        for (int op = 0; op < count; ++op)
          ASSERT_EQ(got[op * extent + i], want[op]) << nameOf(type) << ": word " << a[i] << " " << operations[op] << " "
                                                    << b[i] << " at " << i << " of " << extent;
        const bool truths[] = {l == r,   l != r,          l<r, l <= r, l> r, l >= r,
                               !(l < r), l < r && l != r, (l < r) != (r > 0)};
        for (int test = 0; test < 9; ++test)
          ASSERT_EQ(tests[test * extent + i], truths[test])
              << nameOf(type) << ": test " << test << " of words " << a[i] << ", " << b[i];
      }
    }
}

// --- bool ------------------------------------------------------------------------------------------------------------

void boolOperations(View x, View y, View out, ExtentConfig cfg) {
  Tile a = load(x, {0}, lineOf(cfg.extent)), b = load(y, {0}, lineOf(cfg.extent));
  const Tile results[] = {a & b,  a | b,           a ^ b,    !a,       ~b, a == b, a != b, a<b, a <= b, a> b,
                          a >= b, where(a, b, !b), a & true, false | b};
  int row = 0;
  for (const Tile &result : results)
    store(out, {row++, 0}, result);
}
const Kernel boolKernel = kernel("bools", boolOperations, extentField());

// false < true; any byte except 0 is true.
TEST_P(Elementwise, BoolOperationsAreLogical) {
  for (const int64_t line : scalarAndExtents) {
    const int64_t extent = std::max<int64_t>(line, 1);
    Raw left(extent), right(extent);
    for (int64_t i = 0; i < extent; ++i) {
      left[i] = i % 2 * (1 + i % 5);
      right[i] = i / 2 % 2 * 0x80;
    }
    const Tensor x = tensor(boolean, {extent}, left), y = tensor(boolean, {extent}, right),
                 out(device, boolean, {14, extent});
    launch(boolKernel, {x.ref(), y.ref(), out.ref()}, extentText(line));
    const Raw got = read(out);
    for (int64_t i = 0; i < extent; ++i) {
      const bool a = left[i], b = right[i];
      const bool want[] = {a && b,  a || b,  a != b,  !a,      !b,     a == b, a != b,
                           !a && b, !a || b, a && !b, a || !b, a == b, a,      b};
      for (int op = 0; op < 14; ++op)
        ASSERT_EQ(got[op * extent + i], want[op]) << "operation " << op << " of " << a << ", " << b << " in " << line;
    }
  }
}

// --- Floats ----------------------------------------------------------------------------------------------------------

void floatOperations(View x, View y, View out, View flags, ExtentConfig cfg) {
  Tile a = load(x, {0}, lineOf(cfg.extent)), b = load(y, {0}, lineOf(cfg.extent));
  const Tile results[] = {a + b,  a - b,    a * b,   a / b,   min(a, b),          max(a, b),        -a,
                          abs(a), floor(a), ceil(a), sqrt(a), where(a < b, a, b), clamp(a, b, 2.5), clamp(a, -1, b)};
  int row = 0;
  for (const Tile &result : results)
    store(out, {row++, 0}, result);
  const Tile tests[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  row = 0;
  for (const Tile &test : tests)
    store(flags, {row++, 0}, test);
}
const Kernel floatKernel = kernel("floats", floatOperations, extentField());

/// The operations above, each rounded once: f64 by the hardware, the others through f64, which has more than twice
/// their bits.
std::vector<double> floatResults(double a, double b) {
  return {a + b,
          a - b,
          a * b,
          a / b,
          std::fmin(a, b),
          std::fmax(a, b),
          -a,
          std::fabs(a),
          std::floor(a),
          std::ceil(a),
          std::sqrt(a),
          a < b ? a : b,
          std::fmin(std::fmax(a, b), 2.5),
          std::fmin(std::fmax(a, -1), b)};
}

TEST_P(Elementwise, FloatOperationsRoundOnceAndCompareAsIeee) {
  const char *const operations[] = {"+",   "-",     "*",    "/",    "min",   "max",        "neg",
                                    "abs", "floor", "ceil", "sqrt", "where", "clamp from", "clamp to"};
  for (const Type type : everyFloat)
    for (const int64_t line : linesOf(type)) {
      const int64_t extent = std::max<int64_t>(line, 1), pairs = static_cast<int64_t>(specialWords(type).size());
      const Raw a = words(type, extent, 1, 3), b = words(type, extent, pairs, 4);
      const Tensor x = tensor(type, {extent}, a), y = tensor(type, {extent}, b), out(device, type, {14, extent}),
                   flags(device, boolean, {6, extent});
      launch(floatKernel, {x.ref(), y.ref(), out.ref(), flags.ref()}, extentText(line));
      const Raw got = read(out), tests = read(flags);
      for (int64_t i = 0; i < extent; ++i) {
        const double l = toDouble(type, a[i]), r = toDouble(type, b[i]);
        const std::vector<double> want = floatResults(l, r);
        for (int op = 0; op < 14; ++op) // which zero min and max give is left open; `where` computes nothing
          ASSERT_TRUE(same(type, got[op * extent + i], op == 11 ? (l < r ? a[i] : b[i]) : rawOfReal(type, want[op]),
                           op != 4 && op != 5 && op < 12))
              << nameOf(type) << ": " << l << " " << operations[op] << " " << r << " is "
              << toDouble(type, got[op * extent + i]) << ", expected " << want[op] << ", at " << i << " of " << extent;
        const bool truths[] = {l == r, l != r, l<r, l <= r, l> r, l >= r};
        for (int test = 0; test < 6; ++test)
          ASSERT_EQ(tests[test * extent + i], truths[test])
              << nameOf(type) << ": test " << test << " of " << l << ", " << r;
      }
    }
}

void multiplyAdd(View x, View y, View z, View out, ExtentConfig cfg) {
  store(out, {0},
        fma(load(x, {0}, lineOf(cfg.extent)), load(y, {0}, lineOf(cfg.extent)), load(z, {0}, lineOf(cfg.extent))));
}
const Kernel multiplyAddKernel = kernel("multiply_add", multiplyAdd, extentField());

// The third operand is so far below a tie of the product of the others that only the exact sum shows it.
TEST_P(Elementwise, FmaRoundsTheExactSumOnce) {
  for (const Type type : everyFloat) {
    const int digits = type == f8e5m2   ? 3
                       : type == f8e4m3 ? 4
                       : type == bf16   ? 8
                       : type == f16    ? 11
                       : type == f32    ? 24
                                        : 53;
    // (1 + u)(1 + u) = 1 + 2u + u²; with u = 2^(1 − digits) the u² is below the last place. The addend moves the sum to
    // a tie, from which u² decides.
    const double u = std::ldexp(1.0, 1 - digits);
    Raw a, b, c, want;
    for (const double sign : {1., -1.})
      for (const double tie : {u / 2, -u / 2, 3 * u / 2}) {
        a.push_back(rawOfReal(type, 1 + u));
        b.push_back(rawOfReal(type, sign * (1 + u)));
        c.push_back(rawOfReal(type, sign * tie));
        // The exact sum of the narrower types has at most 2 · 24 + 2 bits: exact in f64.
        want.push_back(rawOfReal(type, type == f64 ? std::fma(1 + u, sign * (1 + u), sign * tie)
                                                   : sign * ((1 + u) * (1 + u) + tie)));
      }
    const int64_t count = static_cast<int64_t>(a.size());
    const Tensor x = tensor(type, {count}, a), y = tensor(type, {count}, b), z = tensor(type, {count}, c),
                 out(device, type, {count});
    launch(multiplyAddKernel, {x.ref(), y.ref(), z.ref(), out.ref()}, extentText(count));
    const Raw got = read(out);
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(got[i], want[i]) << nameOf(type) << " at " << i;
  }
}

// Multiplication and addition stay two roundings: they are never contracted.
void multiplyThenAdd(View x, View y, View z, View out, ExtentConfig cfg) {
  store(out, {0},
        load(x, {0}, lineOf(cfg.extent)) * load(y, {0}, lineOf(cfg.extent)) + load(z, {0}, lineOf(cfg.extent)));
}
const Kernel multiplyThenAddKernel = kernel("multiply_then_add", multiplyThenAdd, extentField());

TEST_P(Elementwise, ProductsAndSumsAreNotContracted) {
  const float a = 1 + 0x1p-12f, c = -1 - 0x1p-11f;
  for (const int64_t line : scalarAndExtents) {
    const int64_t extent = std::max<int64_t>(line, 1);
    const Tensor x = tensor(f32, {extent}, Raw(extent, rawOfReal(f32, a))),
                 z = tensor(f32, {extent}, Raw(extent, rawOfReal(f32, c))), out(device, f32, {extent});
    launch(multiplyThenAddKernel, {x.ref(), x.ref(), z.ref(), out.ref()}, extentText(line));
    for (const uint64_t got : read(out))
      ASSERT_EQ(toDouble(f32, got), 0) << line; // with one rounding it would be 2^-24
  }
}

KILN_ON_PROCESSORS(Elementwise);

} // namespace
