// Transcendental functions: the error bounds that dialect/NUMERICS.md states, and the results at the ends.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

/// C's functions of long double by the names of Functions.def, and those that C++ does not have.
namespace reference {
using namespace std;
static long double rsqrt(long double x) { return 1 / std::sqrt(x); }
static long double exp10(long double x) { return std::pow(10.0L, x); }
} // namespace reference

namespace {

/// A line of Functions.def.
struct Function {
  const char *name;
  int operands;
  Tile (*verb)(const Tile &a, const Tile &b);
  long double (*reference)(long double a, long double b);
  double f32, f64; // bounds
  std::vector<std::vector<double>> exact;
};

const std::vector<Function> &functions() {
  static const std::vector<Function> list = {
#define ONE(name, narrow, wide, range, ...)                                                                            \
  {#name,                                                                                                              \
   1,                                                                                                                  \
   [](const Tile &a, const Tile &) { return name(a); },                                                                \
   [](long double a, long double) -> long double { return reference::name(a); },                                       \
   narrow,                                                                                                             \
   wide,                                                                                                               \
   {__VA_ARGS__}},
#define TWO(name, narrow, wide, range, ...)                                                                            \
  {#name,                                                                                                              \
   2,                                                                                                                  \
   [](const Tile &a, const Tile &b) { return name(a, b); },                                                            \
   [](long double a, long double b) -> long double { return reference::name(a, b); },                                  \
   narrow,                                                                                                             \
   wide,                                                                                                               \
   {__VA_ARGS__}},
#define KILN_FUNCTION(name, operation, ...) ONE(name, __VA_ARGS__)
#define KILN_FUNCTION_OF_TWO(name, operation, ...) TWO(name, __VA_ARGS__)
#define KILN_COMPOSITE_FUNCTION ONE
#define KILN_COMPOSITE_FUNCTION_OF_TWO TWO
#include "dialect/tile/Functions.def"
  };
  return list;
}

struct MathConfig {
  int function = 0;
};

void applyFunction(View x, View y, View out, MathConfig cfg) {
  constexpr int block = 1024;
  Tile n = program_id(0) * block;
  store(out, {n}, functions()[cfg.function].verb(load(x, {n}, {block}), load(y, {n}, {block}))); // (BLOCK)
}
const Kernel mathKernel = kernel("math", applyFunction, {field("function", &MathConfig::function)});

/// Distance in units of the last place of a float of `digits` bits and least exponent `least` at `want`.
double ulps(double got, long double want, int digits, int least) {
  int exponent = 0;
  std::frexp(want, &exponent);
  const long double ulp = std::ldexp(1.0L, std::max(exponent, least) - digits);
  return static_cast<double>(std::fabs(got - want) / ulp);
}

class Math : public Semantics {
protected:
  /// The device's results for the arguments; `right` is empty for a function of one argument.
  Raw results(Type type, size_t function, const Raw &left, const Raw &right) {
    const int64_t count = static_cast<int64_t>(left.size());
    const Tensor x = tensor(type, {count}, left), y = tensor(type, {count}, right.empty() ? left : right),
                 out(device, type, {count});
    launch(mathKernel, {x.ref(), y.ref(), out.ref()}, MathConfig{static_cast<int>(function)}, (count + 1023) / 1024);
    return read(out);
  }

  /// The largest error of a function over its arguments in ulps; NaN, infinities and zeros must be exact.
  double largestError(Type type, size_t index, const Raw &left, const Raw &right = {}) {
    const Function &function = functions()[index];
    const Raw got = results(type, index, left, right);
    const bool wide = type == f64;
    double largest = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double a = toDouble(type, left[i]), b = right.empty() ? 0 : toDouble(type, right[i]),
                   value = toDouble(type, got[i]);
      const long double want = function.reference(a, b);
      const double rounded = wide ? static_cast<double>(want) : static_cast<double>(static_cast<float>(want));
      const double error = ulps(value, want, wide ? 53 : 24, wide ? -1021 : -125);
      if (!std::isfinite(rounded) || rounded == 0 || !std::isfinite(value)) {
        // The last floats before an infinity may become one within the bound, and it may become the last of them.
        const long double end = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
        const bool nearEnd = std::fabs(want) > end * (1 - 0x1p-22L) && std::fabs(want) < end * (1 + 0x1p-22L) &&
                             (std::isinf(value) || std::fabs(value) > end * (1 - 0x1p-22L));
        EXPECT_TRUE(same(type, got[i], rawOfReal(type, rounded)) || nearEnd || (rounded == 0 && error <= 1))
            << function.name << "(" << a << ", " << b << ") is " << value << ", expected " << rounded;
        continue;
      }
      largest = std::max(largest, error);
    }
    return largest;
  }
};

/// Appends multiples of π/2 of all magnitudes, next to which sin or cos is small, and numbers on both sides of each
/// change of the reduction's method.
void addAngles(Type type, Raw &arguments) {
  const int largest = type == f64 ? 1023 : 127;
  for (int exponent = -1; exponent < largest; ++exponent)
    for (const long double factor : {1.0L, 1.25L, 1.75L}) {
      const long double turns = std::floor(std::ldexp(factor, exponent));
      arguments.push_back(rawOfReal(type, static_cast<double>(turns * 1.57079632679489661923132169163975144L)));
    }
  for (const double limit : {0x1p17, 0x1p20})
    for (int64_t step = -20; step <= 20; ++step)
      arguments.push_back(rawOfReal(type, limit) + step);
  if (type == f64) // of all f64 the next to a multiple of π/2
    arguments.push_back(rawOfReal(f64, 0x1.6ac5b262ca1ffp+849));
}

/// Arguments of f32: all special words and every 65 521st word, which has every exponent and sign 128 times.
Raw sampledWords32() {
  Raw result = specialWords(f32);
  for (uint64_t word = 0; word < 0x100000000; word += 65521)
    result.push_back(word);
  std::mt19937 random(1);
  for (int i = 0; i < 65536; ++i) // where the functions bend
    result.push_back(rawOfReal(f32, std::uniform_real_distribution<double>(-12, 12)(random)));
  // The arguments with the largest errors among all floats.
  for (const double worst : {-0x1.ffd2b6p-2, -0x1.7910bep+2, 0x1.69ea2p+0, 0x1.69e472p+0, 0.0620233})
    for (int64_t step = -20; step <= 20; ++step)
      result.push_back(rawOfReal(f32, worst) + step);
  for (const double end :
       {-151., -150., -149., -126., -125., -124., 127.5, 128., -104., -103.9, -87.4, -86., 88.7, 88.8})
    for (int64_t step = -20; step <= 20; ++step)
      result.push_back(rawOfReal(f32, end) + step);
  addAngles(f32, result);
  return result;
}

/// Arguments of f64: special words, others, and numbers where the functions bend, overflow or end.
Raw sampledWords64() {
  Raw result = specialWords(f64);
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    result.push_back(random());
    for (const double end : {1.2, 7., 30.})
      result.push_back(rawOfReal(f64, std::uniform_real_distribution<double>(-end, end)(random)));
    result.push_back(rawOfReal(f64, std::uniform_real_distribution<double>(-1080, 1030)(random)));
  }
  addAngles(f64, result);
  return result;
}

/// Pairs: all of special words, some of any words, of numbers of similar magnitude, and of numbers with powers of any
/// magnitude, including bases next to 1.
void addPairs(Type type, int count, Raw &left, Raw &right) {
  const Raw special = specialWords(type);
  for (const uint64_t a : special)
    for (const uint64_t b : special)
      left.push_back(a), right.push_back(b);
  std::mt19937_64 random(3);
  const auto add = [&](double a, double b) {
    left.push_back(rawOfReal(type, a));
    right.push_back(rawOfReal(type, b));
  };
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const uint64_t mask = ~uint64_t(0) >> (64 - 8 * bytesOf(type));
  const double most = type == f64 ? 1085 : 155;
  for (int i = 0; i < count; ++i) {
    left.push_back(random() & mask), right.push_back(random() & mask);
    const double size = std::exp(between(-30, 30));
    add(between(-1, 1) * size, between(-1, 1) * size);
    add(static_cast<double>(random() % 41) - 20, static_cast<double>(random() % 41) - 20);
    const double base =
        toDouble(type, rawOfReal(type, i % 2 ? std::exp(between(-3, 3)) : 1 + std::ldexp(between(-1, 1), -i % 40)));
    add(base, between(-most, most) / std::log2(base));
  }
}

// Functions.def has the bounds; lowering/math/MathFunctions.h derives them.
TEST_P(Math, FunctionsStayWithinTheirBounds) {
  for (const Type type : {f32, f64}) {
    const Raw arguments = type == f64 ? sampledWords64() : sampledWords32();
    Raw left, right;
    addPairs(type, 10000, left, right);
    for (size_t i = 0; i < functions().size(); ++i) {
      const Function &function = functions()[i];
      const double error =
          function.operands == 2 ? largestError(type, i, left, right) : largestError(type, i, arguments);
      RecordProperty(std::string(function.name) + "_" + nameOf(type), std::to_string(error));
      EXPECT_LE(error, type == f64 ? function.f64 : function.f32) << function.name << " of " << nameOf(type);
    }
  }
}

// The exact cases of Functions.def, in every type that can represent the numbers.
TEST_P(Math, ExactCasesAreExact) {
  for (const Type type : {bf16, f16, f32, f64})
    for (size_t i = 0; i < functions().size(); ++i)
      for (const std::vector<double> &numbers : functions()[i].exact) {
        const auto rawOf = [&](double number) { return rawOfReal(type, number); };
        if (std::ranges::any_of(numbers, [&](double number) { return toDouble(type, rawOf(number)) != number; }))
          continue;
        ASSERT_EQ(numbers.size(), functions()[i].operands + 1u) << functions()[i].name;
        const Raw got = results(type, i, {rawOf(numbers[0])}, {rawOf(numbers[1])});
        EXPECT_EQ(got[0], rawOf(numbers.back()))
            << functions()[i].name << " of " << numbers[0] << " in " << nameOf(type);
      }
}

// A narrow float is widened, computed in f32 and rounded once more: half an ulp, and the error of f32, which is far
// less than another half.
TEST_P(Math, FunctionsOfNarrowFloatsRoundTheF32Result) {
  for (const Type type : {bf16, f16}) {
    Raw arguments(65536), left, right;
    for (int i = 0; i < 65536; ++i)
      arguments[i] = i;
    addPairs(type, 5000, left, right);
    for (size_t index = 0; index < functions().size(); ++index) {
      const Function &function = functions()[index];
      const Raw &first = function.operands == 2 ? left : arguments,
                &second = function.operands == 2 ? right : arguments;
      const Raw got = results(type, index, first, second);
      for (size_t i = 0; i < got.size(); ++i) {
        const double a = toDouble(type, first[i]), b = toDouble(type, second[i]), value = toDouble(type, got[i]);
        const double want = static_cast<double>(function.reference(a, b));
        const uint64_t nearest = rawOfReal(type, want);
        const bool neighbour = got[i] + 1 == nearest || got[i] == nearest + 1;
        const double half =
            std::fabs(toDouble(type, nearest) - want); // how far the nearest is: a near tie lets both pass
        EXPECT_TRUE(same(type, got[i], nearest) || (neighbour && std::fabs(value - want) <= half * 1.001))
            << function.name << "(" << a << ", " << b << ") is " << value << ", expected " << toDouble(type, nearest);
      }
    }
  }
}

KILN_ON_PROCESSORS(Math);

} // namespace
