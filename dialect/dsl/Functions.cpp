// Verbs that are spelt from others. Each passes on the line that it was written at.

#include "dialect/dsl/MathFunctions.h"
#include "dialect/dsl/Tracer.h"

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

namespace {
/// Operands and numbers of one function, all at the line where the user wrote it.
struct Line {
  Loc loc;
  template <class T> At operator()(T operand) const { return At(operand, loc); }
};
} // namespace

/// x as a tile, so that a number has a type.
static Tile tileOf(const char *name, const At &x) {
  Verb verb(name, x.loc);
  mlir::Value value = verb.value(x);
  return value ? verb.result(value) : verb.poison();
}

// --- Reductions ------------------------------------------------------------------------------------------------------

std::array<Tile, 2> max_at(At x, Axes axes, bool keep) { return {reduce_max(x, axes, keep), argmax(x, axes, keep)}; }
std::array<Tile, 2> min_at(At x, Axes axes, bool keep) { return {reduce_min(x, axes, keep), argmin(x, axes, keep)}; }
Tile any(At x, Axes axes, bool keep) { return reduce_or(x, std::move(axes), keep); }
Tile all(At x, Axes axes, bool keep) { return reduce_and(x, std::move(axes), keep); }

// --- NaN -------------------------------------------------------------------------------------------------------------

Tile isnan(At x) {
  const Line at{x.loc};
  const Tile value = tileOf("isnan", x);
  return at(value) != at(value);
}

/// A float of 8 bits as f32: rounding to 8 bits leaves no infinity to compare with.
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

/// `chosen`, or a NaN where one of the operands is.
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

/// `reduced`, or a NaN where a line of x has one.
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

/// `scanned`, or a NaN from the first of x on.
static Tile orNaNBehind(const At &x, int axis, bool reverse, const Tile &scanned) {
  const Line at{x.loc};
  if (!isFloat(scanned.type(x.loc)))
    return scanned;
  return where(at(cumor(at(isnan(x)), axis, reverse)), at(nan), at(scanned));
}

Tile cummax(At x, int axis, Nans nans, bool reverse) {
  const Tile most = cummax(x, axis, reverse);
  return nans == Nans::ignore ? most : orNaNBehind(x, axis, reverse, most);
}

Tile cummin(At x, int axis, Nans nans, bool reverse) {
  const Tile least = cummin(x, axis, reverse);
  return nans == Nans::ignore ? least : orNaNBehind(x, axis, reverse, least);
}

// --- Functions -------------------------------------------------------------------------------------------------------

Tile sign(At x) {
  const Line at{x.loc};
  const Tile value = tileOf("sign", x);
  const Tile others = isUnsigned(value.type(x.loc)) ? value : where(at(at(value) < at(0)), at(-1), at(value));
  return where(at(at(value) > at(0)), at(1), at(others));
}

Tile tan(At x) {
  const Line at{x.loc};
  const Tile value = tileOf("tan", x);
  const Type type = value.type(x.loc);
  if (isFloat(type) && bytesOf(type) < 4) // rounds once
    return cast(at(tan(at(cast(at(value), f32)))), type);
  return at(sin(at(value))) / at(cos(at(value)));
}

Tile sigmoid(At x) {
  const Line at{x.loc};
  const Tile value = tileOf("sigmoid", x), small = exp(at(-at(abs(at(value))))); // e^−|x|, at most 1
  return where(at(at(value) < at(0)), at(small), at(1)) / at(at(1) + at(small));
}

Tile silu(At x) {
  const Line at{x.loc};
  const Tile value = tileOf("silu", x);
  return at(value) * at(sigmoid(at(value)));
}

Tile softplus(At x) {
  const Line at{x.loc};
  const Tile value = tileOf("softplus", x), small = exp(at(-at(abs(at(value)))));
  return at(max(at(value), at(0), Nans::propagate)) + at(log(at(at(1) + at(small))));
}

Tile softmax(At x, int axis) {
  const Line at{x.loc};
  const Tile value = tileOf("softmax", x), power = exp(at(at(value) - at(reduce_max(at(value), axis, keep))));
  return at(power) / at(sum(at(power), axis, keep));
}

} // namespace kiln
