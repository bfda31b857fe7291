// Functions that may be fast: the error bounds that dialect/NUMERICS.md states for them, and the results at the ends.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

enum Function { Exp2, Exp, Log2, Log, Tanh, Rsqrt, functionCount };
const char *const names[] = {"exp2", "exp", "log2", "log", "tanh", "rsqrt"};

struct AccuracyConfig {
  int function = 0;
};

constexpr int block = 1024;

void applyFast(View x, View y, AccuracyConfig cfg) {
  Tile n = program_id(0) * block;
  Tile a = load(x, {n}, {block}); // (BLOCK)
  Tile result = cfg.function == Exp2   ? exp2(a, Accuracy::fast)
                : cfg.function == Exp  ? exp(a, Accuracy::fast)
                : cfg.function == Log2 ? log2(a, Accuracy::fast)
                : cfg.function == Log  ? log(a, Accuracy::fast)
                : cfg.function == Tanh ? tanh(a, Accuracy::fast)
                                       : rsqrt(a, Accuracy::fast);
  store(y, {n}, result);
}
const Kernel fastKernel = kernel("fast", applyFast, {field("function", &AccuracyConfig::function)});

void divideFast(View a, View b, View y) {
  Tile n = program_id(0) * block;
  store(y, {n}, divide(load(a, {n}, {block}), load(b, {n}, {block}), Accuracy::fast));
}
const Kernel divideKernel = kernel("divide_fast", divideFast);

double reference(int function, double x) {
  switch (function) {
  case Exp2:
    return std::exp2(x);
  case Exp:
    return std::exp(x);
  case Log2:
    return std::log2(x);
  case Log:
    return std::log(x);
  case Tanh:
    return std::tanh(x);
  default:
    return x == 0 ? std::copysign(INFINITY, x) : 1 / std::sqrt(x);
  }
}

constexpr double least = 0x1p-126; // of the normal numbers of f32

double ulpAt(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent, -125) - 24);
}

/// The error that the documentation permits for `function` with the exact result `want`.
double boundOf(int function, double x, double want) {
  const bool nearOne = x > 0.5 && x < 2;
  switch (function) {
  case Exp2:
    return 4 * ulpAt(want);
  case Exp:
    return (4 + 1.3 * std::fabs(x)) * ulpAt(want);
  case Log2:
    return nearOne ? 0x1p-22 : 4 * ulpAt(want);
  case Log:
    return nearOne ? 0x1p-22 : 5.4 * ulpAt(want);
  case Tanh:
    return std::max(0x1p-11 * std::fabs(want), ulpAt(want));
  default:
    return 2.2 * ulpAt(want);
  }
}

/// Whether `got` is a permitted result for `want`: within the bound, or 0 for a denormal. Near the largest number, that
/// number or infinity is permitted.
bool isWithin(double got, double want, double bound) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got);
  const double rounded = static_cast<double>(static_cast<float>(want));
  if (std::isinf(got) || std::isinf(rounded))
    return got == rounded || (std::fabs(want) + bound > 3.402823e38 && std::fabs(got) + bound > 3.402823e38 &&
                              std::signbit(got) == std::signbit(want));
  return std::fabs(got - want) <= bound || (std::fabs(want) < least * (1 + 0x1p-18) && got == 0);
}

class Accurate : public Semantics {
protected:
  Raw apply(Type type, int function, const Raw &arguments) {
    const int64_t count = static_cast<int64_t>(arguments.size());
    const Tensor x = tensor(type, {count}, arguments), y(device, type, {count});
    launch(fastKernel, {x.ref(), y.ref()}, AccuracyConfig{function}, (count + block - 1) / block);
    return read(y);
  }
};

/// All special words of f32; every 65 521st word, which has every exponent and sign 128 times; and the numbers where
/// the functions change their formula.
Raw sampledWords() {
  Raw result = specialWords(f32);
  for (uint64_t word = 0; word < 0x100000000; word += 65521)
    result.push_back(word);
  std::mt19937 random(1);
  for (int i = 0; i < 32768; ++i)
    result.push_back(rawOfReal(f32, std::uniform_real_distribution<double>(-12, 12)(random)));
  for (const double end : {-149., -126., -125., 127.5, 128., -103.9, -87.4, 88.7, 0.5, 1.0, 2.0, 0x1p-126})
    for (int64_t step = -20; step <= 20; ++step)
      result.push_back(rawOfReal(f32, end) + step);
  return result;
}

TEST_P(Accurate, FastFunctionsStayWithinTheirBounds) {
  const Raw arguments = sampledWords();
  for (int function = 0; function < functionCount; ++function) {
    const Raw got = apply(f32, function, arguments);
    for (size_t i = 0; i < got.size(); ++i) {
      const double x = toDouble(f32, arguments[i]), value = toDouble(f32, got[i]), want = reference(function, x);
      bool good = isWithin(value, want, boundOf(function, x, want));
      if (!good && std::fabs(x) < least) { // may count as a zero
        const double ofZero = reference(function, std::copysign(0.0, x));
        good = isWithin(value, ofZero, boundOf(function, 0, ofZero));
      }
      EXPECT_TRUE(good) << names[function] << "(" << x << ") is " << value << ", expected " << want;
    }
  }
}

TEST_P(Accurate, FastFunctionsKeepTheirEnds) {
  const double zero = 0.0, inf = INFINITY;
  const struct {
    int function;
    double x, want;
  } cases[] = {{Exp2, zero, 1},    {Exp2, -zero, 1},  {Exp2, inf, inf},    {Exp2, -inf, 0},    {Exp2, NAN, NAN},
               {Exp, zero, 1},     {Exp, inf, inf},   {Exp, -inf, 0},      {Exp, NAN, NAN},    {Log2, zero, -inf},
               {Log2, 1, 0},       {Log2, inf, inf},  {Log2, -1, NAN},     {Log2, NAN, NAN},   {Log, zero, -inf},
               {Log, 1, 0},        {Log, inf, inf},   {Log, -1, NAN},      {Log, NAN, NAN},    {Tanh, zero, zero},
               {Tanh, inf, 1},     {Tanh, -inf, -1},  {Tanh, NAN, NAN},    {Rsqrt, zero, inf}, {Rsqrt, inf, 0},
               {Rsqrt, -inf, NAN}, {Rsqrt, NAN, NAN}, {Tanh, -zero, -zero}};
  for (const auto &[function, x, want] : cases)
    for (const Type type : {f32, bf16, f16, f64}) {
      const Raw got = apply(type, function, {rawOfReal(type, x)});
      EXPECT_TRUE(same(type, got[0], rawOfReal(type, want)))
          << names[function] << "(" << x << ") is " << toDouble(type, got[0]) << " in " << nameOf(type);
    }
}

// In f64 every machine has full accuracy. bf16 and f16 round the f32 result: half a unit more.
TEST_P(Accurate, FastFunctionsOfOtherTypes) {
  for (const Type type : {f64, bf16, f16}) {
    Raw arguments;
    for (double x = -9; x < 9; x += 0.037)
      arguments.push_back(rawOfReal(type, x));
    for (int function = 0; function < functionCount; ++function) {
      const Raw got = apply(type, function, arguments);
      for (size_t i = 0; i < got.size(); ++i) {
        const double x = toDouble(type, arguments[i]), value = toDouble(type, got[i]), want = reference(function, x);
        const double unit = type == bf16 ? 0x1p-8 : type == f16 ? 0x1p-11 : 0x1p-51;
        const double bound = (type == f64 ? 0 : boundOf(function, x, want)) + unit * std::fabs(want) + 0x1p-25;
        EXPECT_TRUE((std::isnan(want) && std::isnan(value)) || std::fabs(value - want) <= bound || value == want)
            << names[function] << "(" << x << ") is " << value << ", expected " << want << " in " << nameOf(type);
      }
    }
  }
}

// 2 ulp up to a divisor of 2^126. Denormal operands may count as zeros.
TEST_P(Accurate, FastQuotientsStayWithinTheirBound) {
  Raw a, b;
  std::mt19937 random(3);
  for (int i = 0; i < 65536; ++i) {
    a.push_back(random());
    b.push_back(random());
  }
  const Raw specials = specialWords(f32);
  for (const uint64_t one : specials)
    for (const uint64_t other : specials) {
      a.push_back(one);
      b.push_back(other);
    }
  const int64_t count = static_cast<int64_t>(a.size());
  const Tensor x = tensor(f32, {count}, a), z = tensor(f32, {count}, b), y(device, f32, {count});
  launch(divideKernel, {x.ref(), z.ref(), y.ref()}, "", (count + block - 1) / block);
  const Raw got = read(y);
  const auto flushed = [](double v) { return std::fabs(v) < least ? std::copysign(0.0, v) : v; };
  for (int64_t i = 0; i < count; ++i) {
    const double left = toDouble(f32, a[i]), right = toDouble(f32, b[i]), value = toDouble(f32, got[i]);
    bool good = std::fabs(right) > 0x1p126 && (value == 0 || (std::isinf(left) && std::isnan(value)));
    for (const double l : {left, flushed(left)})
      for (const double r : {right, flushed(right)})
        good |= isWithin(value, l / r, 2 * ulpAt(l / r));
    EXPECT_TRUE(good) << left << " / " << right << " is " << value << ", expected " << left / right;
  }
}

KILN_ON_PROCESSORS(Accurate);

} // namespace
