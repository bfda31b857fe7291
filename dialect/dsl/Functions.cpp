// Functions composed of others. Each passes on its caller's line.

#include "dialect/dsl/MathFunctions.h"
#include "dialect/dsl/Tracer.h"

#include <functional>
#include <numeric>

namespace kiln {

Tile &operator+=(Tile &a, At b) { return a = At(a, b.loc) + b; }
Tile &operator-=(Tile &a, At b) { return a = At(a, b.loc) - b; }
Tile &operator*=(Tile &a, At b) { return a = At(a, b.loc) * b; }
Tile &operator/=(Tile &a, At b) { return a = At(a, b.loc) / b; }
Tile &operator%=(Tile &a, At b) { return a = At(a, b.loc) % b; }
Tile &operator&=(Tile &a, At b) { return a = At(a, b.loc) & b; }
Tile &operator|=(Tile &a, At b) { return a = At(a, b.loc) | b; }
Tile &operator^=(Tile &a, At b) { return a = At(a, b.loc) ^ b; }
Tile &operator<<=(Tile &a, At b) { return a = At(a, b.loc) << b; }
Tile &operator>>=(Tile &a, At b) { return a = At(a, b.loc) >> b; }

/// x as a tile, which gives a number a type.
static Tile tileOf(const char *name, const At &x) {
  Call call(name, x.loc);
  mlir::Value value = call.value(x);
  return value ? call.result(value) : call.poison();
}

// --- Reductions ------------------------------------------------------------------------------------------------------

std::array<Tile, 2> max_at(At x, Axes axes, bool keep) { return {reduce_max(x, axes, keep), argmax(x, axes, keep)}; }
std::array<Tile, 2> min_at(At x, Axes axes, bool keep) { return {reduce_min(x, axes, keep), argmin(x, axes, keep)}; }
Tile any(At x, Axes axes, bool keep) { return reduce_or(x, std::move(axes), keep); }
Tile all(At x, Axes axes, bool keep) { return reduce_and(x, std::move(axes), keep); }

// --- NaN -------------------------------------------------------------------------------------------------------------

Tile isnan(At x) {
  const Line at{x.loc};
  const Tile operand = tileOf("isnan", x),
             value = hasArithmetic(operand.type(x.loc)) ? operand : cast(at(operand), f32);
  return at(value) != at(value);
}

/// An 8-bit float as f32, because rounding to 8 bits leaves no infinity to compare with.
static Tile widened(const Line &at, const Tile &value) {
  const Type type = value.type(at.loc);
  return isFloat(type) && bytesOf(type) == 1 ? cast(at(value), f32) : value;
}

Tile isinf(At x) {
  const Line at{x.loc};
  const Tile value = widened(at, tileOf("isinf", x));
  return isFloat(value.type(x.loc)) ? abs(at(value)) == at(infinity) : isnan(x);
}

Tile isfinite(At x) {
  const Line at{x.loc};
  const Tile value = widened(at, tileOf("isfinite", x));
  return isFloat(value.type(x.loc)) ? abs(at(value)) < at(infinity) : at(value) == at(value);
}

/// `chosen`, or NaN where an operand is NaN.
static Tile orNaN(const Line &at, const Tile &chosen, const At &a, const At &b) {
  if (!isFloat(chosen.type(at.loc)))
    return chosen;
  const Tile wrong = isnan(a) | isnan(b);
  return where(at(wrong), at(nan), at(chosen));
}

Tile min(At a, At b, Nans nans) {
  const Line at{a.loc};
  return nans == Nans::ignore ? min(a, b) : orNaN(at, min(a, b), a, b);
}

Tile max(At a, At b, Nans nans) {
  const Line at{a.loc};
  return nans == Nans::ignore ? max(a, b) : orNaN(at, max(a, b), a, b);
}

Tile clamp(At x, At low, At high, Nans nans) {
  const Line at{x.loc};
  return min(at(max(x, low, nans)), high, nans);
}

/// `reduced`, or NaN where the reduced elements of x have one.
static Tile orNaNAlong(const At &x, const Axes &axes, bool keep, const Tile &reduced) {
  const Line at{x.loc};
  if (!isFloat(reduced.type(x.loc)))
    return reduced;
  return where(at(any(at(isnan(x)), axes, keep)), at(nan), at(reduced));
}

Tile reduce_max(At x, Axes axes, Nans nans, bool keep) {
  const Tile most = reduce_max(x, axes, keep);
  return nans == Nans::ignore ? most : orNaNAlong(x, axes, keep, most);
}

Tile reduce_min(At x, Axes axes, Nans nans, bool keep) {
  const Tile least = reduce_min(x, axes, keep);
  return nans == Nans::ignore ? least : orNaNAlong(x, axes, keep, least);
}

/// `scanned`, or NaN from the first NaN of x on.
static Tile nanFromFirstNaN(const At &x, int axis, bool reverse, const Tile &scanned) {
  const Line at{x.loc};
  if (!isFloat(scanned.type(x.loc)))
    return scanned;
  return where(at(cumor(at(isnan(x)), axis, reverse)), at(nan), at(scanned));
}

Tile cummax(At x, int axis, Nans nans, bool reverse) {
  const Tile most = cummax(x, axis, reverse);
  return nans == Nans::ignore ? most : nanFromFirstNaN(x, axis, reverse, most);
}

Tile cummin(At x, int axis, Nans nans, bool reverse) {
  const Tile least = cummin(x, axis, reverse);
  return nans == Nans::ignore ? least : nanFromFirstNaN(x, axis, reverse, least);
}

// --- Functions -------------------------------------------------------------------------------------------------------

Tile sign(At x) {
  const Line at{x.loc};
  const Tile value = tileOf("sign", x);
  const Tile others = isUnsigned(value.type(x.loc)) ? value : where(at(at(value) < at(0)), at(-1), at(value));
  return where(at(at(value) > at(0)), at(1), at(others));
}

/// Operands as tiles of one type and shape. Reports an error and returns none unless they are floats, or integers with
/// `whole`.
static std::vector<Tile> unified(const char *name, std::initializer_list<const At *> operands, bool whole = false) {
  Call call(name, (*operands.begin())->loc);
  llvm::SmallVector<At, 2> numbers; // a lone number is a float
  llvm::SmallVector<const At *, 2> places;
  for (const At *operand : operands) {
    const auto literal = Tracer::literalOf(*operand);
    numbers.push_back(literal && operands.size() == 1 && !whole ? At(literal->asReal(), operand->loc) : *operand);
  }
  for (const At &number : numbers)
    places.push_back(&number);
  const Operands values = unify(call, places);
  if (values && (whole ? !isInteger(values.type) : !isFloat(values.type)))
    call.expected() << (whole ? "integers" : "floats") << ", but got " << nameOf(values.type) << "; use cast()";
  else if (values) {
    std::vector<Tile> tiles;
    for (const mlir::Value value : values.values)
      tiles.push_back(call.result(value));
    return tiles;
  }
  return {};
}

static Tile poison(const At &x) { return Call("", x.loc).poison(); }

static bool isNarrow(Type type) { return isFloat(type) && bytesOf(type) < 4; }

/// `function` of the value: of narrow floats in f32, and rounded once.
template <class Function> static Tile inF32(const Line &at, const Tile &value, Function function) {
  const Type type = value.type(at.loc);
  return isNarrow(type) ? cast(at(function(cast(at(value), f32))), type) : function(value);
}

Tile tan(At x) {
  const Line at{x.loc};
  const std::vector<Tile> operands = unified("tan", {&x});
  if (operands.empty())
    return poison(x);
  return inF32(at, operands[0], [&](const Tile &value) {
    const Tile rise = sin(at(value)), run = cos(at(value)); // named, so that the order is defined
    return at(rise) / at(run);
  });
}

/// pow(10, x).
Tile exp10(At x) {
  const Line at{x.loc};
  const std::vector<Tile> operands = unified("exp10", {&x});
  return operands.empty() ? poison(x) : pow(at(10), at(operands[0]));
}

/// Operands far from 1 are scaled by a power of two that keeps their squares in range, or at least the larger one. The
/// sum of squares has an error of 1 ulp. The root halves it, or leaves at most 1 ulp, and rounds.
Tile hypot(At a, At b) {
  const Line at{a.loc};
  const std::vector<Tile> operands = unified("hypot", {&a, &b});
  if (operands.empty())
    return poison(a);
  const Type type = operands[0].type(a.loc);
  if (isNarrow(type))
    return cast(at(hypot(at(cast(at(operands[0]), f32)), at(cast(at(operands[1]), f32)))), type);
  const double limit = type == f64 ? 0x1p500 : 0x1p60, factor = type == f64 ? 0x1p600 : 0x1p90;
  const Tile x = abs(at(operands[0])), y = abs(at(operands[1])), size = max(at(x), at(y));
  const Tile isLarge = at(size) > at(limit), isSmall = at(size) < at(1 / limit);
  const auto scale = [&](double large, double small) {
    return where(at(isLarge), at(large), at(where(at(isSmall), at(small), at(full(type, {}, at(1), a.loc)))));
  };
  const Tile down = scale(1 / factor, factor), p = at(x) * at(down), q = at(y) * at(down);
  const Tile root = sqrt(at(fma(at(p), at(p), at(at(q) * at(q)))));
  return where(at(at(size) == at(infinity)), at(infinity), at(at(root) * at(scale(factor, 1 / factor))));
}

/// The high half of an unsigned 64-bit product, by 32-bit halves. For signed numbers mulhi() subtracts the other
/// factor.
static Tile upperHalf(const Line &at, const Tile &a, const Tile &b) {
  const auto high = [&](const Tile &x) { return at(x) >> at(32); };
  const auto low = [&](const Tile &x) { return at(x) & at(0xffffffff); };
  const auto times = [&](const Tile &x, const Tile &y) { return at(x) * at(y); };
  const auto sum = [&](const Tile &x, const Tile &y) { return at(x) + at(y); };
  const Tile middle = sum(times(high(a), low(b)), high(times(low(a), low(b))));
  const Tile other = sum(times(low(a), high(b)), low(middle));
  return sum(sum(times(high(a), high(b)), high(middle)), high(other));
}

Tile cdiv(At a, At b) {
  const Line at{a.loc};
  const std::vector<Tile> numbers = unified("cdiv", {&a, &b}, /*whole=*/true);
  if (numbers.empty())
    return poison(a);
  const Tile quotient = at(numbers[0]) / at(numbers[1]), rest = at(numbers[0]) % at(numbers[1]);
  const Tile isMore = at(rest) > at(0);
  return at(quotient) + at(cast(at(isMore), quotient.type(a.loc)));
}

Tile mulhi(At a, At b) {
  const Line at{a.loc};
  const std::vector<Tile> factors = unified("mulhi", {&a, &b}, /*whole=*/true);
  if (factors.empty())
    return poison(a);
  const Type type = factors[0].type(a.loc);
  const auto as = [&](const Tile &x, Type other) { return cast(at(x), other); };
  if (bytesOf(type) < 8) {
    const Type wide = isUnsigned(type) ? u64 : i64;
    return as(at(at(as(factors[0], wide)) * at(as(factors[1], wide))) >> at(8 * bytesOf(type)), type);
  }
  Tile upper = as(upperHalf(at, as(factors[0], u64), as(factors[1], u64)), type);
  if (isUnsigned(type))
    return upper;
  for (const int i : {0, 1})
    upper = at(upper) - at(at(at(factors[i]) >> at(63)) & at(factors[1 - i]));
  return upper;
}

/// Swaps adjacent bits, then adjacent pairs of bits, and so on. LLVM emits one instruction for it if the target has
/// one.
Tile brev(At x) {
  const Line at{x.loc};
  const std::vector<Tile> operands = unified("brev", {&x}, /*whole=*/true);
  if (operands.empty())
    return poison(x);
  const Type type = operands[0].type(x.loc);
  const int64_t bits = 8 * bytesOf(type);
  Tile word = cast(at(operands[0]), isUnsigned(type) ? type : unsignedOf(type));
  for (int64_t distance = 1; distance < bits; distance *= 2) {
    uint64_t lower = 0; // mask of the lower group of each pair
    for (int64_t bit = 0; bit < bits; bit += 2 * distance)
      lower |= ((uint64_t{1} << distance) - 1) << bit;
    const Tile down = at(at(word) >> at(distance)) & at(lower), up = at(at(word) & at(lower)) << at(distance);
    word = at(down) | at(up);
  }
  return cast(at(word), type);
}

/// e^−|x|, at most 1.
static Tile smallPower(const Line &at, const Tile &x) { return exp(at(-at(abs(at(x))))); }

Tile sigmoid(At x) {
  const Line at{x.loc};
  return inF32(at, tileOf("sigmoid", x), [&](const Tile &value) {
    const Tile small = smallPower(at, value), part = where(at(at(value) < at(0)), at(small), at(1));
    return at(part) / at(at(1) + at(small));
  });
}

Tile silu(At x) {
  const Line at{x.loc};
  return inF32(at, tileOf("silu", x), [&](const Tile &value) { return at(value) * at(sigmoid(at(value))); });
}

Tile softplus(At x) {
  const Line at{x.loc};
  return inF32(at, tileOf("softplus", x), [&](const Tile &value) {
    const Tile linear = max(at(value), at(0), Nans::propagate), small = smallPower(at, value);
    return at(linear) + at(log(at(at(1) + at(small))));
  });
}

/// The mean of floats of 32 or 64 bits.
static Tile meanOf(const Line &at, const Tile &value, const Axes &axes, bool keep) {
  const Tile total = sum(at(value), axes, keep);
  const auto countOf = [&](const Tile &tile) {
    const Shape shape = tile.shape(at.loc);
    return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
  };
  return at(total) / at(countOf(value) / countOf(total));
}

Tile mean(At x, Axes axes, bool keep) {
  const Line at{x.loc};
  const std::vector<Tile> operands = unified("mean", {&x});
  if (operands.empty())
    return poison(x);
  return inF32(at, operands[0], [&](const Tile &value) { return meanOf(at, value, axes, keep); });
}

Tile var(At x, Axes axes, bool keep) {
  const Line at{x.loc};
  const std::vector<Tile> operands = unified("var", {&x});
  if (operands.empty())
    return poison(x);
  return inF32(at, operands[0], [&](const Tile &value) {
    const Tile centred = at(value) - at(meanOf(at, value, axes, kiln::keep));
    return meanOf(at, at(centred) * at(centred), axes, keep);
  });
}

Tile softmax(At x, int axis) {
  const Line at{x.loc};
  return inF32(at, tileOf("softmax", x), [&](const Tile &value) {
    const Tile power = exp(at(at(value) - at(reduce_max(at(value), axis, keep))));
    return at(power) / at(sum(at(power), axis, keep));
  });
}

} // namespace kiln
