// Functions that are composed of others: exact where those are, and within the bounds of those.

#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <numeric>
#include <tuple>

using namespace kiln;
using namespace kiln::test;

namespace {

class Functions : public Semantics {
protected:
  /// Numbers of the type, and words worth trying.
  Raw numbers(Type type, int64_t count) {
    Raw raw = specialWords(type);
    std::mt19937 random(11);
    while (static_cast<int64_t>(raw.size()) < count)
      raw.push_back(rawOfReal(type, (static_cast<double>(random() % 20001) - 10000) / 250));
    return raw;
  }
};

void exact(View x, View y, View out, View truths, ExtentConfig cfg) {
  Tile a = load(x, {0}, {cfg.extent}), b = load(y, {0}, {cfg.extent});
  int row = 0;
  for (const Tile &result : {round(a), trunc(a), copysign(a, b), sign(a), min(a, b, Nans::propagate),
                             max(a, b, Nans::propagate), clamp(a, b, 2, Nans::propagate)})
    store(out, {row++, 0}, result);
  store(truths, {0, 0}, isnan(a));
  store(truths, {1, 0}, isinf(a));
  store(truths, {2, 0}, isfinite(a));
}
const Kernel exactKernel = kernel("exact", exact, extentField());

TEST_P(Functions, ThoseThatRoundNothingAreExact) {
  for (const Type type : floatTypes) {
    const int64_t count = 300;
    const Raw left = numbers(type, count);
    Raw right(left.rbegin(), left.rend());
    const Tensor x = tensor(type, {count}, left), y = tensor(type, {count}, right), out(device, type, {7, count}),
                 truths(device, boolean, {3, count});
    launch(exactKernel, {x.ref(), y.ref(), out.ref(), truths.ref()}, extentText(count));
    const Raw got = read(out), asked = read(truths);
    for (int64_t i = 0; i < count; ++i) {
      const double a = toDouble(type, left[i]), b = toDouble(type, right[i]);
      const auto least = [](double p, double q) { return std::isnan(p) || std::isnan(q) ? NAN : std::fmin(p, q); };
      const auto most = [](double p, double q) { return std::isnan(p) || std::isnan(q) ? NAN : std::fmax(p, q); };
      const double want[] = {std::nearbyint(a), std::trunc(a), std::copysign(a, b), a > 0 ? 1 : a < 0 ? -1 : a,
                             least(a, b),       most(a, b),    least(most(a, b), 2)};
      for (int row = 0; row < 7; ++row)
        ASSERT_TRUE(same(type, got[row * count + i], rawOfReal(type, want[row]), /*signOfZero=*/row < 4))
            << nameOf(type) << ", row " << row << ", of " << a << " and " << b << ": got "
            << toDouble(type, got[row * count + i]);
      ASSERT_EQ(asked[i], std::isnan(a)) << nameOf(type) << " " << a;
      ASSERT_EQ(asked[count + i], std::isinf(a)) << nameOf(type) << " " << a;
      ASSERT_EQ(asked[2 * count + i], std::isfinite(a)) << nameOf(type) << " " << a;
    }
  }
}

void sameBits(View x, View y, ExtentConfig cfg) { store(y, {0}, bitcast(load(x, {0}, {cfg.extent}), y.type())); }
const Kernel sameBitsKernel = kernel("same_bits", sameBits, extentField());

TEST_P(Functions, BitcastKeepsBits) {
  for (const auto &[from, to] :
       std::vector<std::pair<Type, Type>>{{f32, i32}, {i32, f32}, {f64, i64}, {i64, f64}, {bf16, f16}, {f16, bf16}}) {
    const Raw raw = words(from, 300, 1, 3);
    const Tensor x = tensor(from, {300}, raw), y(device, to, {300});
    launch(sameBitsKernel, {x.ref(), y.ref()}, extentText(300));
    EXPECT_EQ(read(y), raw) << nameOf(from) << " to " << nameOf(to);
  }
}

void smooth(View x, View out, ExtentConfig cfg) {
  Tile a = load(x, {0}, {cfg.extent});
  int row = 0;
  for (const Tile &result : {sigmoid(a), silu(a), softplus(a)})
    store(out, {row++, 0}, result);
}
const Kernel smoothKernel = kernel("smooth", smooth, extentField());

// sigmoid: exp has an error of 2.3 units in the last place (f64: 0.9), all of which may remain in 1 + e^−|x| or in the
// numerator e^−|x|. The sum and the quotient round once each: 4 units in all, and one more for silu's product.
// softplus: the larger of two nonnegative terms. The logarithm of a number from 1 to 2 has an error of 2.3 / 2 + 1/2
// units of 2^−23, and is rounded and added: 4 units of the larger of the result and 1.
TEST_P(Functions, SmoothOnesAreWithinTheirParts) {
  for (const Type type : {f32, f64}) {
    const int64_t count = 400;
    const Raw raw = numbers(type, count);
    const Tensor x = tensor(type, {count}, raw), out(device, type, {3, count});
    launch(smoothKernel, {x.ref(), out.ref()}, extentText(count));
    const Raw got = read(out);
    const double unit = type == f32 ? 0x1p-23 : 0x1p-52, least = type == f32 ? 0x1p-126 : 0x1p-1022;
    for (int64_t i = 0; i < count; ++i) {
      const double a = toDouble(type, raw[i]);
      const long double e = std::exp(-std::abs(static_cast<long double>(a))), s = (a < 0 ? e : 1) / (1 + e);
      const long double want[] = {s, std::isinf(a) && a < 0 ? NAN : a * s, std::fmax(a, 0.0) + std::log1p(e)};
      for (int row = 0; row < 3; ++row) {
        const double value = toDouble(type, got[row * count + i]), exact = static_cast<double>(want[row]);
        if (std::isnan(a) || std::isnan(exact) || std::isinf(exact)) {
          EXPECT_TRUE(same(type, got[row * count + i], rawOfReal(type, std::isnan(a) ? NAN : exact)))
              << nameOf(type) << ", row " << row << " of " << a << ": got " << value;
          continue;
        }
        const double size = row == 2 ? std::max(1.0, exact) : std::abs(exact);
        EXPECT_NEAR(value, exact, 5 * unit * size + least) << nameOf(type) << ", row " << row << " of " << a;
      }
    }
  }
}

/// Whether a narrow float is `exact`, off by `tolerance` at most before it is rounded once.
bool isRoundedOnce(Type type, uint64_t got, double exact, double tolerance) {
  if (std::isnan(exact))
    return std::isnan(toDouble(type, got));
  const auto rounded = [&](double value) { return toDouble(type, rawOfReal(type, value)); };
  const double value = toDouble(type, got);
  return rounded(exact - tolerance) <= value && value <= rounded(exact + tolerance);
}

constexpr int64_t programExtent = 256;

void spelt(View x, View out) {
  Tile n = program_id(0) * static_cast<int>(programExtent);
  Tile a = load(x, {n}, {programExtent});
  const Tile results[] = {sigmoid(a), silu(a), softplus(a), tan(a), exp10(a), hypot(a, flip(a))};
  for (int row = 0; row < static_cast<int>(std::size(results)); ++row)
    store(out, {row, n}, results[row]);
}
const Kernel speltKernel = kernel("spelt", spelt);

// Narrow results are those of f32, within its bounds (dialect/NUMERICS.md), rounded once. Every narrow number is tried.
TEST_P(Functions, NarrowFloatsAreRoundedOnce) {
  for (const Type type : {f8e4m3, f8e5m2, bf16, f16}) {
    const int64_t count = int64_t{1} << (8 * bytesOf(type));
    Raw raw(count);
    std::iota(raw.begin(), raw.end(), 0);
    const Tensor x = tensor(type, {count}, raw), out(device, type, {6, count});
    launch(speltKernel, {x.ref(), out.ref()}, "", count / programExtent);
    const Raw got = read(out);
    const double unit = 0x1p-23, least = 0x1p-126;
    for (int64_t i = 0; i < count; ++i) {
      const double a = toDouble(type, raw[i]),
                   b = toDouble(type, raw[i / programExtent * programExtent + programExtent - 1 - i % programExtent]);
      const long double e = std::exp(-std::abs(static_cast<long double>(a))), s = (a < 0 ? e : 1) / (1 + e);
      const long double want[] = {s,
                                  std::isinf(a) && a < 0 ? NAN : a * s,
                                  std::fmax(a, 0.0) + std::log1p(e),
                                  std::tan(static_cast<long double>(a)),
                                  std::pow(10.0L, static_cast<long double>(a)),
                                  std::hypot(static_cast<long double>(a), static_cast<long double>(b))};
      const double units[] = {5, 5, 5, 4.5, 2, 1.5};
      for (int row = 0; row < 6; ++row) {
        const double exact = std::isnan(a) && row < 5 ? NAN : static_cast<double>(want[row]);
        const double size = row == 2 ? std::max(1.0, exact) : std::abs(exact);
        const double tolerance = std::isfinite(exact) ? units[row] * unit * size + least : 0;
        EXPECT_TRUE(isRoundedOnce(type, got[row * count + i], exact, tolerance))
            << nameOf(type) << ", function " << row << " of " << a << ", " << b << ": expected " << exact
            << ", but got " << toDouble(type, got[row * count + i]);
      }
    }
  }
}

struct RowsConfig {
  int rows = 3, columns = 5, axis = 1;
};

void normalise(View x, View y, RowsConfig cfg) {
  store(y, {0, 0}, softmax(load(x, {0, 0}, {cfg.rows, cfg.columns}), cfg.axis));
}
const Kernel normaliseKernel = kernel(
    "normalise", normalise,
    {field("rows", &RowsConfig::rows), field("columns", &RowsConfig::columns), field("axis", &RowsConfig::axis)});

// Each power has an error of 2.3 units and the rounding of its difference, at most 100 · 2^−24 of it; the sum of n
// positive terms n · 2^−24; the quotient rounds once.
TEST_P(Functions, SoftmaxIsThatOfNumbersOfAnySize) {
  for (const auto &[rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{3, 5}, {17, 100}})
    for (const int axis : {0, 1, -1})
      for (const double shift : {0.0, 3000.0, -3000.0}) {
        std::mt19937 random(7);
        Raw raw(rows * columns);
        for (uint64_t &word : raw)
          word = rawOfReal(f32, shift + static_cast<double>(random() % 1024) / 32);
        const Tensor x = tensor(f32, {rows, columns}, raw), y(device, f32, {rows, columns});
        launch(normaliseKernel, {x.ref(), y.ref()},
               RowsConfig{static_cast<int>(rows), static_cast<int>(columns), axis});
        const Raw got = read(y);
        for (int64_t i = 0; i < rows * columns; ++i) {
          double total = 0, largest = -INFINITY;
          const int64_t count = axis == 0 ? rows : columns;
          const int64_t first = axis == 0 ? i % columns : i / columns * columns, step = axis == 0 ? columns : 1;
          for (int64_t j = 0; j < count; ++j)
            largest = std::max(largest, toDouble(f32, raw[first + j * step]));
          for (int64_t j = 0; j < count; ++j)
            total += std::exp(toDouble(f32, raw[first + j * step]) - largest);
          const double want = std::exp(toDouble(f32, raw[i]) - largest) / total;
          ASSERT_NEAR(toDouble(f32, got[i]), want, want * (static_cast<double>(rows + columns) + 140) * 0x1p-24)
              << i << " along " << axis << ", shift " << shift;
        }
      }
}

// In f32, rounded once: 3000 powers of 1 are summed, and f16 could sum only 2048.
TEST_P(Functions, SoftmaxOfNarrowFloatsIsRoundedOnce) {
  for (const auto &[type, rows, columns] : std::vector<std::tuple<Type, int64_t, int64_t>>{
           {f16, 3, 100}, {bf16, 3, 100}, {f8e5m2, 3, 100}, {f16, 1, 3000}}) {
    std::mt19937 random(7);
    Raw raw(rows * columns);
    for (uint64_t &word : raw)
      word = rawOfReal(type, columns > 1000 ? 8 : static_cast<double>(random() % 64) / 8);
    const Tensor x = tensor(type, {rows, columns}, raw), y(device, type, {rows, columns});
    launch(normaliseKernel, {x.ref(), y.ref()}, RowsConfig{static_cast<int>(rows), static_cast<int>(columns)});
    const Raw got = read(y);
    for (int64_t row = 0; row < rows; ++row) {
      double total = 0; // no number is larger than 8
      for (int64_t j = 0; j < columns; ++j)
        total += std::exp(toDouble(type, raw[row * columns + j]) - 8);
      for (int64_t j = 0; j < columns; ++j) {
        const double want = std::exp(toDouble(type, raw[row * columns + j]) - 8) / total;
        ASSERT_TRUE(
            isRoundedOnce(type, got[row * columns + j], want, want * (static_cast<double>(columns) + 140) * 0x1p-24))
            << nameOf(type) << ", " << row << ", " << j << ": expected " << want << ", but got "
            << toDouble(type, got[row * columns + j]);
      }
    }
  }
}

void remainders(View x, View y, View out, ExtentConfig cfg) {
  store(out, {0}, load(x, {0}, {cfg.extent}) % load(y, {0}, {cfg.extent}));
}
const Kernel remaindersKernel = kernel("remainders", remainders, extentField());

// Every quotient: small ones, those next to an integer, and the largest. The remainder is exact in f64, and in every
// narrower type.
TEST_P(Functions, RemaindersOfFloatsAreExact) {
  for (const Type type : floatTypes) {
    const Raw special = specialWords(type);
    Raw left, right;
    for (const uint64_t a : special)
      for (const uint64_t b : special)
        left.push_back(a), right.push_back(b);
    std::mt19937_64 random(5);
    const uint64_t mask = ~uint64_t(0) >> (64 - 8 * bytesOf(type));
    for (int i = 0; i < 3000; ++i) {
      const uint64_t a = random() & mask, b = random() & mask;
      left.push_back(a), right.push_back(b);
      const double divisor = static_cast<double>(random() % 4096) / 256;
      left.push_back(rawOfReal(type, divisor * static_cast<double>(random() % 1024))); // often a multiple
      right.push_back(rawOfReal(type, divisor));
    }
    const int64_t count = static_cast<int64_t>(left.size());
    const Tensor x = tensor(type, {count}, left), y = tensor(type, {count}, right), out(device, type, {count});
    launch(remaindersKernel, {x.ref(), y.ref(), out.ref()}, extentText(count));
    const Raw got = read(out);
    for (int64_t i = 0; i < count; ++i) {
      const double a = toDouble(type, left[i]), b = toDouble(type, right[i]);
      ASSERT_TRUE(same(type, got[i], rawOfReal(type, std::fmod(a, b))))
          << nameOf(type) << ": " << a << " % " << b << " is " << toDouble(type, got[i]) << ", expected "
          << std::fmod(a, b);
    }
  }
}

void upperHalves(View x, View y, View out, ExtentConfig cfg) {
  store(out, {0}, mulhi(load(x, {0}, {cfg.extent}), load(y, {0}, {cfg.extent})));
}
const Kernel upperHalvesKernel = kernel("upper_halves", upperHalves, extentField());

TEST_P(Functions, MulhiIsTheUpperHalfOfTheProduct) {
  for (const Type type : integerTypes) {
    const int64_t count = 300;
    const Raw left = words(type, count, 1, 3), right = words(type, count, specialWords(type).size(), 4);
    const Tensor x = tensor(type, {count}, left), y = tensor(type, {count}, right), out(device, type, {count});
    launch(upperHalvesKernel, {x.ref(), y.ref(), out.ref()}, extentText(count));
    const Raw got = read(out);
    const int bits = 8 * bytesOf(type);
    for (int64_t i = 0; i < count; ++i) {
      const __int128 a = wideOf(type, left[i]), b = wideOf(type, right[i]);
      const auto product =
          isUnsigned(type)
              ? static_cast<__int128>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b) >> bits)
              : (a * b) >> bits;
      ASSERT_EQ(got[i], rawOfInteger(type, static_cast<int64_t>(product)))
          << nameOf(type) << " " << left[i] << ", " << right[i];
    }
  }
}

void quotientsUp(View x, View y, View out, ExtentConfig cfg) {
  store(out, {0}, cdiv(load(x, {0}, {cfg.extent}), load(y, {0}, {cfg.extent})));
}
const Kernel quotientsUpKernel = kernel("quotients_up", quotientsUp, extentField());

TEST_P(Functions, CdivRoundsQuotientsUp) {
  static_assert(cdiv(7, 2) == 4 && cdiv(8, 2) == 4 && cdiv(-7, 2) == -3 && cdiv(INT64_MAX, 1) == INT64_MAX);
  for (const Type type : integerTypes) {
    const int64_t count = 300;
    const Raw left = words(type, count, 1, 3);
    Raw right = words(type, count, specialWords(type).size(), 4);
    for (uint64_t &divisor : right)
      if (wideOf(type, divisor) < 1)
        divisor = 3;
    const Tensor x = tensor(type, {count}, left), y = tensor(type, {count}, right), out(device, type, {count});
    launch(quotientsUpKernel, {x.ref(), y.ref(), out.ref()}, extentText(count));
    const Raw got = read(out);
    for (int64_t i = 0; i < count; ++i) {
      const __int128 a = wideOf(type, left[i]), b = wideOf(type, right[i]), want = a > 0 ? (a + b - 1) / b : a / b;
      ASSERT_EQ(got[i], rawOfInteger(type, static_cast<int64_t>(want)))
          << nameOf(type) << " " << left[i] << ", " << right[i];
    }
  }
}

KILN_ON_PROCESSORS(Functions);

} // namespace
