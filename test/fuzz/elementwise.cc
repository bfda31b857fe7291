// The table of elementwise verbs.

#include "test/fuzz/verbs.h"

#include <algorithm>
#include <cmath>

namespace kiln::fuzz {

using Operands = std::span<const At>;
using Known = std::span<const Facts>;
using Result = std::optional<Facts>;

static bool numbers(Type type) { return type != boolean; }
static bool integers(Type type) { return isInteger(type); }
static bool floats(Type type) { return isFloat(type); }
/// Floats in which two machines' results of a function are not far apart.
static bool finer(Type type) { return isFloat(type) && bytesOf(type) > 1; }
static bool bits(Type type) { return !isFloat(type); }
static bool all(Type) { return true; }

static bool allExact(Known known) {
  return std::ranges::all_of(known, [](const Facts &facts) { return facts.exact(); });
}
static bool anyOpenZero(Known known) {
  return std::ranges::any_of(known, [](const Facts &facts) { return facts.openZero; });
}

/// Exact results of exact operands, of unknown magnitude.
static Result opaque(Type type, Known known) {
  if (!allExact(known))
    return {};
  Facts facts = anything(type);
  facts.openZero &= anyOpenZero(known);
  return facts;
}

static Result truth(Type, Known known) {
  return allExact(known) ? Result(Facts{.bound = 1, .openZero = false}) : Result();
}

/// The result of a rounded operation whose operands' errors make `error` and whose magnitude is at most `bound`.
static Result rounded(Type type, Known known, double bound, bool whole, double error) {
  Facts facts{.bound = bound, .whole = whole, .openZero = anyOpenZero(known)};
  if (!allExact(known)) {
    facts.absolute = error + unitOf(type) * bound;
    facts.whole = false;
    if (facts = within(type, facts); !facts.bounded())
      return {};
    return facts;
  }
  return within(type, facts);
}

static Result sumFacts(Type type, Known known) {
  return rounded(type, known, known[0].bound + known[1].bound, known[0].whole && known[1].whole,
                 known[0].error() + known[1].error());
}

static Result productFacts(Type type, Known known) {
  const Facts &a = known[0], &b = known[1];
  const double error = allExact(known) ? 0 : a.error() * b.bound + b.error() * a.bound + a.error() * b.error();
  const double bound = a.bound == 0 || b.bound == 0 ? std::max(a.bound, b.bound) : a.bound * b.bound;
  return rounded(type, known, bound, a.whole && b.whole, error);
}

static Result fmaFacts(Type type, Known known) {
  const Facts factors[] = {known[0], known[1]};
  const Result product = productFacts(type, factors);
  if (!product)
    return {};
  const Facts terms[] = {*product, known[2]};
  return sumFacts(type, terms);
}

/// min and max: which zero they give is open.
static Result extremeFacts(Type type, Known known) {
  Facts facts = either(known[0], known[1]);
  if (!facts.exact() && !facts.bounded())
    return {};
  if (!facts.exact())
    facts.absolute = facts.error(), facts.relative = 0;
  facts.openZero = isFloat(type);
  return within(type, facts);
}

/// max of the lower limit, then min of the upper one: NaN gives the lower limit.
static Result clampedFacts(Type type, Known known) {
  if (!allExact(known))
    return {};
  return within(type, {.bound = std::max(known[1].bound, known[2].bound),
                       .whole = known[0].whole && known[1].whole && known[2].whole,
                       .openZero = isFloat(type)});
}

static Result magnitudeFacts(Type type, Known known) { return within(type, known[0]); }

static Result wholeFacts(Type type, Known known) {
  if (!allExact(known))
    return {};
  Facts facts = known[0];
  facts.bound += 1;
  facts.whole = true;
  return within(type, facts);
}

static Result selectFacts(Type type, Known known) {
  if (!known[0].exact())
    return {};
  return within(type, either(known[1], known[2]));
}

/// Division, square root: any operand may give infinity or NaN, and the sign of a zero below may decide which.
static Result quotientFacts(Type type, Known known) {
  return isFloat(type) && known[1].openZero ? Result() : opaque(type, known);
}

/// A function within `ulps` units of the exact result in f32, or f64; narrow floats are computed in f32 and rounded.
static auto function(double narrow, double wide, double (*bound)(double)) {
  return [=](Type type, Known known) -> Result {
    const Facts &x = known[0];
    if (!x.exact())
      return {};
    Facts facts{.bound = bound(x.bound), .whole = false, .openZero = x.openZero};
    const double ulps = type == f64 ? wide : type == f32 ? narrow : 1;
    facts.relative = 2 * ulps * unitOf(type);
    facts.absolute = 2 * ulps * (type == f16 ? 0x1p-24 : type == f64 ? 0x1p-1074 : 0x1p-133);
    return within(type, facts);
  };
}
static double oneOrMore(double bound) { return std::isfinite(bound) ? 1.01 : bound; }
/// exp, its variants and exp10 are drawn on small operands only: near overflow, machines may differ in whether the
/// result is infinite.
static double grown(double bound) { return bound <= 9 ? 1.01 * std::pow(10, bound) : INFINITY; }
static double unknown(double) { return INFINITY; }

static Result grownFacts(Type type, Known known, double narrow, double wide) {
  return known[0].bound <= 9 ? function(narrow, wide, grown)(type, known) : Result();
}

/// The rules of Functions.def about results. If the sign of a zero is unspecified, only functions that map both zeros
/// to zero are drawn. Powers are of small integers.
enum class Range { unit, open, steep };
template <Range range> static auto functionFacts(double narrow, double wide) {
  return [=](Type type, Known known) -> Result {
    if (!allExact(known) || ((known.size() == 2 || range == Range::open) && anyOpenZero(known)))
      return {};
    if (range != Range::steep)
      return function(narrow, wide, range == Range::unit ? oneOrMore : unknown)(type, known);
    if (known.size() == 1)
      return grownFacts(type, known, narrow, wide);
    const bool isSmall = std::ranges::all_of(known, [](const Facts &facts) { return facts.whole && facts.bound <= 9; });
    return isSmall ? function(narrow, wide, unknown)(type, known) : Result();
  };
}

/// A fast logarithm: an error in units in the last place, and an absolute one near 0. Its operands are integers: some
/// machines treat a denormal as 0.
static auto fastLogarithm(double narrow, double wide) {
  return [=](Type type, Known known) -> Result {
    if (!known[0].whole)
      return {};
    Result facts = function(narrow, wide, unknown)(type, known);
    if (facts && type != f64) {
      facts->absolute += 0x1p-21;
      return within(type, *facts);
    }
    return facts;
  };
}

/// A fast tanh is off by 2⁻¹¹ of itself.
static Result fastTanhFacts(Type type, Known known) {
  Result facts = function(3.4, 1.2, oneOrMore)(type, known);
  if (facts && type != f64) {
    facts->relative += 0x1p-10;
    return within(type, *facts);
  }
  return facts;
}

/// −1, 0 or 1, and NaN.
static Result signFacts(Type type, Known known) {
  const Facts &x = known[0];
  if (!x.exact())
    return {};
  return within(type, {.bound = std::isfinite(x.bound) ? 1 : x.bound, .openZero = x.openZero});
}

/// With a NaN from any operand.
static Result spreadClampFacts(Type type, Known known) {
  Result facts = clampedFacts(type, known);
  if (facts && !known[0].bounded()) {
    facts->bound = anything(type).bound;
    facts->whole &= !isFloat(type);
  }
  return facts;
}

/// The sign of a zero or of a NaN differs between machines.
static Result copysignFacts(Type type, Known known) {
  if (!allExact(known) || !known[1].bounded() || known[1].openZero)
    return {};
  Facts facts = known[0];
  facts.openZero = false; // it gets the other's sign
  return within(type, facts);
}

/// sigmoid and silu: 5 units in the last place, and the smallest normal number; narrow floats are rounded once more.
static auto logistic(double (*bound)(double)) {
  return [=](Type type, Known known) -> Result {
    Result facts = function(5, 5, bound)(type, known);
    if (facts && type != f16)
      facts->absolute += type == f64 ? 0x1p-1020 : 0x1p-124;
    return facts;
  };
}
static double itself(double bound) { return bound; }
static double oneMore(double bound) { return bound + 1; }

/// 5 units in the last place of the larger of the result and 1.
static Result softplusFacts(Type type, Known known) {
  Result facts = function(5, 5, oneMore)(type, known);
  if (facts)
    facts->absolute += 10 * unitOf(type == f64 ? f64 : f32);
  return facts;
}

/// 2 units in the last place, if the divisor is no denormal number and at most 2^126. Denormal results may be 0. A NaN
/// or infinite dividend gives NaN or infinity. A denormal dividend may be 0, and 0 / 0 is NaN, so it is whole.
static Result fastQuotientFacts(Type type, Known known) {
  if (!allExact(known) || known[1].openZero || !known[0].whole || !known[1].whole || !(known[1].bound <= 0x1p24))
    return {};
  Facts facts = anything(type);
  facts.openZero = true;
  facts.relative = 4 * unitOf(type);
  facts.absolute = type == f64 ? 0x1p-1020 : type == f16 ? 0x1p-23 : 0x1p-124;
  return facts;
}

/// A line of Functions.def.
static Elementwise function(const char *text, int operands, Tile (*trace)(Operands),
                            const std::function<Result(Type, Known)> &facts) {
  return {text, operands, finer, false, trace, facts};
}

std::span<const Elementwise> elementwise() {
  static const std::vector<Elementwise> table = {
      {"$0 + $1", 2, numbers, false, [](Operands x) { return x[0] + x[1]; }, sumFacts},
      {"$0 - $1", 2, numbers, false, [](Operands x) { return x[0] - x[1]; }, sumFacts},
      {"$0 * $1", 2, numbers, false, [](Operands x) { return x[0] * x[1]; }, productFacts},
      {"$0 / $1", 2, numbers, false, [](Operands x) { return x[0] / x[1]; }, quotientFacts},
      {"$0 % $1", 2, numbers, false, [](Operands x) { return x[0] % x[1]; }, opaque},
      {"mulhi($0, $1)", 2, integers, false, [](Operands x) { return mulhi(x[0], x[1]); }, opaque},
      {"-$0", 1, numbers, false, [](Operands x) { return -x[0]; }, magnitudeFacts},
      {"abs($0)", 1, numbers, false, [](Operands x) { return abs(x[0]); }, magnitudeFacts},
      {"min($0, $1)", 2, numbers, false, [](Operands x) { return min(x[0], x[1]); }, extremeFacts},
      {"max($0, $1)", 2, numbers, false, [](Operands x) { return max(x[0], x[1]); }, extremeFacts},
      {"fma($0, $1, $2)", 3, numbers, false, [](Operands x) { return fma(x[0], x[1], x[2]); }, fmaFacts},
      {"clamp($0, $1, $2)", 3, numbers, false, [](Operands x) { return clamp(x[0], x[1], x[2]); }, clampedFacts},
      {"where($0, $1, $2)", 3, all, false, [](Operands x) { return where(x[0], x[1], x[2]); }, selectFacts},
      {"$0 == $1", 2, all, true, [](Operands x) { return x[0] == x[1]; }, truth},
      {"$0 != $1", 2, all, true, [](Operands x) { return x[0] != x[1]; }, truth},
      {"$0 < $1", 2, all, true, [](Operands x) { return x[0] < x[1]; }, truth},
      {"$0 <= $1", 2, all, true, [](Operands x) { return x[0] <= x[1]; }, truth},
      {"$0 > $1", 2, all, true, [](Operands x) { return x[0] > x[1]; }, truth},
      {"$0 >= $1", 2, all, true, [](Operands x) { return x[0] >= x[1]; }, truth},
      {"$0 & $1", 2, bits, false, [](Operands x) { return x[0] & x[1]; }, opaque},
      {"$0 | $1", 2, bits, false, [](Operands x) { return x[0] | x[1]; }, opaque},
      {"$0 ^ $1", 2, bits, false, [](Operands x) { return x[0] ^ x[1]; }, opaque},
      {"~$0", 1, bits, false, [](Operands x) { return ~x[0]; }, opaque},
      {"$0 << $1", 2, integers, false, [](Operands x) { return x[0] << x[1]; }, opaque},
      {"$0 >> $1", 2, integers, false, [](Operands x) { return x[0] >> x[1]; }, opaque},
      {"popcount($0)", 1, integers, false, [](Operands x) { return popcount(x[0]); }, opaque},
      {"clz($0)", 1, integers, false, [](Operands x) { return clz(x[0]); }, opaque},
      {"brev($0)", 1, integers, false, [](Operands x) { return brev(x[0]); }, opaque},
      {"floor($0)", 1, numbers, false, [](Operands x) { return floor(x[0]); }, wholeFacts},
      {"ceil($0)", 1, numbers, false, [](Operands x) { return ceil(x[0]); }, wholeFacts},
      {"sqrt($0)", 1, floats, false, [](Operands x) { return sqrt(x[0]); }, opaque},
      {"exp($0, Accuracy::fast)", 1, finer, false, [](Operands x) { return exp(x[0], Accuracy::fast); },
       [](Type type, Known known) { return grownFacts(type, known, 4 + 1.3 * 9, 0.9); }},
      {"exp2($0, Accuracy::fast)", 1, finer, false, [](Operands x) { return exp2(x[0], Accuracy::fast); },
       [](Type type, Known known) { return grownFacts(type, known, 4, 0.9); }},
      {"log($0, Accuracy::fast)", 1, finer, false, [](Operands x) { return log(x[0], Accuracy::fast); },
       fastLogarithm(5.4, 0.8)},
      {"log2($0, Accuracy::fast)", 1, finer, false, [](Operands x) { return log2(x[0], Accuracy::fast); },
       fastLogarithm(4, 0.7)},
      {"tanh($0, Accuracy::fast)", 1, finer, false, [](Operands x) { return tanh(x[0], Accuracy::fast); },
       fastTanhFacts},
#define ONE(name, f32, f64, range, ...)                                                                                \
  function(#name "($0)", 1, [](Operands x) { return name(x[0]); }, functionFacts<Range::range>(f32, f64)),
#define TWO(name, f32, f64, range, ...)                                                                                \
  function(#name "($0, $1)", 2, [](Operands x) { return name(x[0], x[1]); }, functionFacts<Range::range>(f32, f64)),
#define KILN_FUNCTION(name, operation, ...) ONE(name, __VA_ARGS__)
#define KILN_FUNCTION_OF_TWO(name, operation, ...) TWO(name, __VA_ARGS__)
#define KILN_COMPOSITE_FUNCTION ONE
#define KILN_COMPOSITE_FUNCTION_OF_TWO TWO
#include "dialect/tile/Functions.def"
      {"min($0, $1, Nans::propagate)", 2, numbers, false, [](Operands x) { return min(x[0], x[1], Nans::propagate); },
       extremeFacts},
      {"max($0, $1, Nans::propagate)", 2, numbers, false, [](Operands x) { return max(x[0], x[1], Nans::propagate); },
       extremeFacts},
      {"clamp($0, $1, $2, Nans::propagate)", 3, numbers, false,
       [](Operands x) { return clamp(x[0], x[1], x[2], Nans::propagate); }, spreadClampFacts},
      {"isnan($0)", 1, numbers, true, [](Operands x) { return isnan(x[0]); }, truth},
      {"isinf($0)", 1, numbers, true, [](Operands x) { return isinf(x[0]); }, truth},
      {"isfinite($0)", 1, numbers, true, [](Operands x) { return isfinite(x[0]); }, truth},
      {"round($0)", 1, numbers, false, [](Operands x) { return round(x[0]); }, wholeFacts},
      {"trunc($0)", 1, numbers, false, [](Operands x) { return trunc(x[0]); }, wholeFacts},
      {"sign($0)", 1, numbers, false, [](Operands x) { return sign(x[0]); }, signFacts},
      {"copysign($0, $1)", 2, floats, false, [](Operands x) { return copysign(x[0], x[1]); }, copysignFacts},
      {"sigmoid($0)", 1, finer, false, [](Operands x) { return sigmoid(x[0]); }, logistic(oneOrMore)},
      {"silu($0)", 1, finer, false, [](Operands x) { return silu(x[0]); }, logistic(itself)},
      {"softplus($0)", 1, finer, false, [](Operands x) { return softplus(x[0]); }, softplusFacts},
      {"divide($0, $1, Accuracy::fast)", 2, finer, false, [](Operands x) { return divide(x[0], x[1], Accuracy::fast); },
       fastQuotientFacts},
  };
  return table;
}

int elementwiseRow(std::string_view text) {
  const auto row = std::ranges::find(elementwise(), text, &Elementwise::text);
  return static_cast<int>(row - elementwise().begin());
}

} // namespace kiln::fuzz
