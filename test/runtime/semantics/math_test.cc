// Transcendental functions: the error bounds that dialect/README.md states, and the results at the ends.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

enum Function { Exp2, Exp, Log2, Log, Tanh, Erf, Rsqrt, Sin, Cos, Tan, Log1p, Expm1, functionCount };
const char *const names[] = {"exp2",  "exp", "log2", "log", "tanh",  "erf",
                             "rsqrt", "sin", "cos",  "tan", "log1p", "expm1"};

struct MathConfig {
  int function = 0;
};

void applyFunction(View x, View y, MathConfig cfg) {
  constexpr int block = 1024;
  Tile n = program_id(0) * block;
  Tile a = load(x, {n}, {block}); // (BLOCK)
  Tile result = cfg.function == Exp2    ? exp2(a)
                : cfg.function == Exp   ? exp(a)
                : cfg.function == Log2  ? log2(a)
                : cfg.function == Log   ? log(a)
                : cfg.function == Tanh  ? tanh(a)
                : cfg.function == Erf   ? erf(a)
                : cfg.function == Rsqrt ? rsqrt(a)
                : cfg.function == Sin   ? sin(a)
                : cfg.function == Cos   ? cos(a)
                : cfg.function == Tan   ? tan(a)
                : cfg.function == Log1p ? log1p(a)
                                        : expm1(a);
  store(y, {n}, result);
}
const Kernel mathKernel = kernel("math", applyFunction, {field("function", &MathConfig::function)});

long double reference(int function, long double x) {
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
  case Erf:
    return std::erf(x);
  case Sin:
    return std::sin(x);
  case Cos:
    return std::cos(x);
  case Tan:
    return std::tan(x);
  case Log1p:
    return std::log1p(x);
  case Expm1:
    return std::expm1(x);
  default:
    return 1 / std::sqrt(x);
  }
}

/// Distance in units of the last place of a float of `digits` bits and least exponent `least` at `want`.
double ulps(double got, long double want, int digits, int least) {
  int exponent = 0;
  std::frexp(want, &exponent);
  const long double ulp = std::ldexp(1.0L, std::max(exponent, least) - digits);
  return static_cast<double>(std::fabs(got - want) / ulp);
}

class Math : public Semantics {
protected:
  /// The largest error of `function` over `arguments` in ulps; NaN, infinities and zeros must be exact.
  double largestError(Type type, int function, const Raw &arguments) {
    const int64_t count = static_cast<int64_t>(arguments.size());
    const Tensor x = tensor(type, {count}, arguments), y(device, type, {count});
    launch(mathKernel, {x.ref(), y.ref()}, "function=" + std::to_string(function), (count + 1023) / 1024);
    const Raw got = read(y);
    double largest = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double argument = realOf(type, arguments[i]), value = realOf(type, got[i]);
      const long double want = reference(function, argument);
      const bool wide = type == f64;
      const double rounded = wide ? static_cast<double>(want) : static_cast<double>(static_cast<float>(want));
      if (!std::isfinite(rounded) || rounded == 0 || !std::isfinite(value)) {
        // The last float before an infinity may become one within the bound.
        const bool nearEnd = std::fabs(want) > (wide ? 1.797693e308L : 3.402823e38L) && std::isinf(value);
        EXPECT_TRUE(same(type, got[i], rawOfReal(type, rounded)) || nearEnd ||
                    (rounded == 0 && ulps(value, want, wide ? 53 : 24, wide ? -1021 : -125) <= 1))
            << names[function] << "(" << argument << ") is " << value << ", expected " << rounded;
        continue;
      }
      const double error = ulps(value, want, wide ? 53 : 24, wide ? -1021 : -125);
      if (error > largest)
        largest = error;
    }
    return largest;
  }
};

/// Appends multiples of π/2 of every size, next to which sin or cos is small, and to both sides of where the way to
/// reduce them changes.
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

/// Arguments of f32: all special words and every 65 521st word, which meets every exponent and sign 128 times.
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

// The bounds that lowering/math/MathFunctions.h states and derives; of f64 the limits measured.
TEST_P(Math, FunctionsOfF32StayWithinTheirBounds) {
  const double bounds[functionCount] = {2.0, 2.3, 2.2, 1.5, 3.4, 1.7, 1.5, 2.0, 2.0, 4.5, 2.5, 2.5};
  const Raw arguments = sampledWords32();
  for (int function = 0; function < functionCount; ++function) {
    const double error = largestError(f32, function, arguments);
    RecordProperty(names[function], std::to_string(error));
    EXPECT_LE(error, bounds[function]) << names[function];
  }
}

TEST_P(Math, FunctionsOfF64StayWithinTheirBounds) {
  const double bounds[functionCount] = {0.9, 0.9, 0.7, 0.8, 1.2, 2.5, 1.5, 1.0, 1.0, 3.0, 1.5, 2.0};
  Raw arguments = specialWords(f64);
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    arguments.push_back(random());
    arguments.push_back(rawOfReal(f64, std::uniform_real_distribution<double>(-7, 7)(random)));
    arguments.push_back(rawOfReal(f64, std::uniform_real_distribution<double>(-1080, 1030)(random)));
  }
  addAngles(f64, arguments);
  for (int function = 0; function < functionCount; ++function) {
    const double error = largestError(f64, function, arguments);
    RecordProperty(names[function], std::to_string(error));
    EXPECT_LE(error, bounds[function]) << names[function];
  }
}

// A narrow float is widened, computed in f32 and rounded once more: half an ulp, and the error of f32, which is far
// less than another half.
TEST_P(Math, FunctionsOfNarrowFloatsRoundTheF32Result) {
  for (const Type type : {bf16, f16}) {
    Raw arguments(65536);
    for (int i = 0; i < 65536; ++i)
      arguments[i] = i;
    const Tensor x = tensor(type, {65536}, arguments), y(device, type, {65536});
    for (int function = 0; function < functionCount; ++function) {
      launch(mathKernel, {x.ref(), y.ref()}, "function=" + std::to_string(function), 64);
      const Raw got = read(y);
      for (int i = 0; i < 65536; ++i) {
        const double argument = realOf(type, arguments[i]);
        const double want = static_cast<double>(reference(function, argument)), value = realOf(type, got[i]);
        const uint64_t nearest = rawOfReal(type, want);
        const bool neighbour = got[i] + 1 == nearest || got[i] == nearest + 1;
        const double half =
            std::fabs(realOf(type, nearest) - want); // how far the nearest is: a near tie lets both pass
        EXPECT_TRUE(same(type, got[i], nearest) || (neighbour && std::fabs(value - want) <= half * 1.001))
            << names[function] << "(" << argument << ") is " << value << ", expected " << realOf(type, nearest);
      }
    }
  }
}

KILN_ON_EVERY_DEVICE(Math);

} // namespace
