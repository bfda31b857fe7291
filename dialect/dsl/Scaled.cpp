// Products of scaled operands: elements and scales are converted to bf16, and their products, which are exact in bf16,
// are multiplied.

#include "dialect/dsl/Scaled.h"
#include "dialect/dsl/Tracer.h"

using namespace mlir;

namespace kiln {

namespace {
/// The numbers of elements along K that may share a scale.
constexpr std::array<int64_t, 2> blockLengths = {16, 32};

/// An operand, and its K dimension.
struct Factor {
  Tile elements;
  std::optional<Tile> scales; // one for each `length` elements along K
  int64_t length = 1;
  Shape shape; // with the whole K
  bool isPacked = false;
  size_t axis = 0;
};
} // namespace

/// Whether the elements' type is allowed for a factor with (`isScaled`) or without scales; otherwise reports an error.
static bool checkElements(Call &call, mlir::Value x, bool isScaled) {
  const Type type = elementOf(x);
  if (type == f8e4m3 || type == f8e5m2 || (isScaled ? type == f4e2m1x2 || type == u8 : type == bf16))
    return true;
  if (isScaled)
    call.expected() << "factors of f8e4m3, f8e5m2 or f4e2m1x2, or of u8 with two floats of 4 bits in each, but got "
                    << describe(x);
  else
    call.expected() << "a factor without scales of f8e4m3, f8e5m2 or bf16, but got " << describe(x);
  return false;
}

/// The number of the factor's elements that share a scale. Reports an error and returns none if none of the lengths
/// fits.
static std::optional<int64_t> lengthOf(Call &call, const Factor &factor, mlir::Value scales) {
  if (elementOf(scales) != f8e8m0 && elementOf(scales) != u8 && elementOf(scales) != f8e4m3)
    return call.expected() << "scales of f8e8m0, u8 or f8e4m3, but got " << describe(scales);
  const int64_t K = factor.shape[factor.axis];
  if (K % blockLengths.front() != 0)
    return call.expected() << "an inner extent that is a multiple of " << blockLengths.front() << ", but got " << K;
  std::string shapes, lengths;
  for (const int64_t length : blockLengths) {
    if (K % length != 0)
      continue;
    Shape wanted = factor.shape;
    wanted[factor.axis] = K / length;
    if (shapeOf(scales) == wanted)
      return length;
    const char *const between = shapes.empty() ? "" : " or ";
    shapes += between + textOf(wanted);
    lengths += between + std::to_string(length);
  }
  return call.expected() << "scales of shape " << shapes << ", one for each " << lengths
                         << " elements of the inner dimension, but got " << textOf(shapeOf(scales));
}

/// Reports an error and returns none if elements and scales do not match.
static std::optional<Factor> factorOf(Call &call, const At &elements, const Scales &scales, bool isRight) {
  mlir::Value x = call.value(elements), s = scales.tile() ? call.value(*scales.tile()) : mlir::Value();
  if (!x || (scales.tile() && !s) || !checkElements(call, x, scales.tile().has_value()))
    return {};
  Factor factor{.shape = shapeOf(x)};
  const size_t rank = factor.shape.size();
  if (rank < 2 || rank > 4)
    return call.expected() << "factors of rank 2 to 4, but got " << describe(x);
  factor.axis = rank - (isRight ? 2 : 1);
  factor.isPacked = isPair(elementOf(x)) || elementOf(x) == u8;
  factor.shape[factor.axis] *= factor.isPacked ? 2 : 1;
  factor.elements = call.result(x);
  if (!s)
    return factor;
  const auto length = lengthOf(call, factor, s);
  if (!length)
    return {};
  factor.length = *length;
  const Tile given = call.result(s);
  factor.scales = elementOf(s) == f8e8m0 ? bitcast(At(given, call.loc), u8) : given;
  return factor;
}

/// Repeats each element `count` times along `axis`, adjacent to each other.
static Tile repeated(const Line &at, const Tile &x, size_t axis, int64_t count) {
  Shape shape = x.shape(at.loc), merged = shape;
  merged[axis] *= count;
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis) + 1, count);
  return reshape(at(broadcast(at(unsqueeze(at(x), static_cast<int>(axis) + 1)), shape)), merged);
}

/// A scale as bf16, which represents every f8e4m3 exactly. A u8 scale s is 2^(s − 127): s becomes bf16's exponent bits,
/// except that 0 becomes a denormal and 255 NaN.
static Tile scaleAsBf16(const Line &at, const Tile &scale) {
  if (scale.type(at.loc) == f8e4m3)
    return cast(at(scale), bf16);
  const Tile s = cast(at(scale), i16);
  const Tile bits =
      where(at(at(s) == at(0)), at(0x40), at(where(at(at(s) == at(255)), at(0x7fc0), at(at(s) << at(7)))));
  return bitcast(at(bits), bf16);
}

/// The two 4-bit floats of each byte, u8 or f4e2m1x2 (sign, two bits of exponent, one of mantissa) as bf16. Their bits
/// are shifted to the fields of bf16. The result, denormals included, is then multiplied by 2^126 to correct the
/// exponent's bias.
static Tile unpacked(const Line &at, const Tile &bytes, size_t axis) {
  Shape shape = bytes.shape(at.loc);
  shape[axis] *= 2;
  const Tile both = cast(at(repeated(at, bitcast(at(bytes), u8), axis, 2)), i16); // (…, K, …)
  Shape along(shape.size(), 1);
  along[axis] = shape[axis];
  const Tile isHigh = at(at(reshape(at(iota(shape[axis], i32, at.loc)), along)) & at(1)) == at(1);
  const Tile code = where(at(isHigh), at(at(both) >> at(4)), at(both));
  const Tile bits = at(at(at(code) & at(7)) << at(6)) | at(at(at(code) & at(8)) << at(12));
  return at(bitcast(at(bits), bf16)) * at(0x1p126);
}

/// The operand's elements times their scales, if it has any.
static Tile scaled(const Line &at, const Factor &factor) {
  const Tile elements = factor.isPacked ? unpacked(at, factor.elements, factor.axis) : cast(at(factor.elements), bf16);
  if (!factor.scales)
    return elements;
  return at(elements) * at(repeated(at, scaleAsBf16(at, *factor.scales), factor.axis, factor.length));
}

/// Both operands as bf16. Reports an error and returns none if one is wrong.
static std::optional<std::array<Tile, 2>> scaledFactors(const At &a, const Scales &scaleA, const At &b,
                                                        const Scales &scaleB) {
  Call call("dot_scaled", a.loc);
  if (!scaleA.tile() && !scaleB.tile())
    return call.expected() << "scales of at least one factor; use dot()";
  const auto left = factorOf(call, a, scaleA, false), right = factorOf(call, b, scaleB, true);
  if (!left || !right)
    return {};
  const size_t rank = left->shape.size();
  if (right->shape.size() != rank || left->shape[rank - 1] != right->shape[rank - 2] ||
      !std::equal(left->shape.begin(), left->shape.end() - 2, right->shape.begin()))
    return call.expected() << "leading and inner extents to match, but got " << textOf(left->shape) << " and "
                           << textOf(right->shape);
  const Line at{a.loc};
  return std::array<Tile, 2>{scaled(at, *left), scaled(at, *right)};
}

Tile dot_scaled(At a, Scales scaleA, At b, Scales scaleB, At acc) {
  const Line at{a.loc};
  const auto factors = scaledFactors(a, scaleA, b, scaleB);
  return factors ? dot(at((*factors)[0]), at((*factors)[1]), acc) : Call("dot_scaled", a.loc).poison();
}

Tile dot_scaled(At a, Scales scaleA, At b, Scales scaleB) {
  const Line at{a.loc};
  const auto factors = scaledFactors(a, scaleA, b, scaleB);
  return factors ? dot(at((*factors)[0]), at((*factors)[1])) : Call("dot_scaled", a.loc).poison();
}

// --- Pairs -----------------------------------------------------------------------------------------------------------

/// The axis of a conversion of pairs. Reports an error and returns none if there is none, or if the rank is too large.
static std::optional<size_t> pairsAxis(Call &call, mlir::Value value, int axis) {
  const auto along = axisOf(call, value, axis);
  if (along && shapeOf(value).size() > 4)
    return call.expected() << "a tile of rank 1 to 4, but got " << describe(value);
  return along;
}

Tile unpack(At x, Type type, int axis) {
  Call call("unpack", x.loc);
  const mlir::Value value = call.value(x);
  const auto along = value ? pairsAxis(call, value, axis) : std::nullopt;
  if (!along)
    return call.poison();
  if (!isPair(elementOf(value)))
    return call.expected() << "a tile of f4e2m1x2, but got " << describe(value) << "; use bitcast()";
  if (!isFloat(type) || !hasArithmetic(type))
    return call.expected() << "a float type with arithmetic, but got " << nameOf(type);
  const Line at{x.loc};
  return cast(at(unpacked(at, call.result(value), *along)), type);
}

/// The code of the nearest 4-bit float of each f32 or f64, an i32: a sign, and the number of floats from 0 on. These
/// are ½ apart below 2, 1 below 4, and 2 from there on. Adding 2^23 (2^52 in f64) rounds a multiple of these distances.
static Tile codeOf(const Line &at, const Tile &x) {
  const bool isDouble = x.type(at.loc) == f64;
  const double unit = isDouble ? 0x1p52 : 0x1p23;
  const Type word = isDouble ? i64 : i32;
  const Tile size = min(at(abs(at(x))), at(6.0)); // also of NaN
  const Tile isLow = at(size) < at(2.0), isMiddle = at(size) < at(4.0);
  const Tile high = where(at(isMiddle), at(full(x.type(at.loc), {}, at(1.0), at.loc)), at(0.5));
  const Tile steps = where(at(isLow), at(2.0), at(high)), before = where(at(isMiddle), at(2), at(4));
  const Tile rounded = bitcast(at(at(at(size) * at(steps)) + at(unit)), word);
  const Tile code = at(at(cast(at(rounded), i32)) & at(7)) + at(where(at(isLow), at(0), at(before)));
  const Tile isNegative = at(at(bitcast(at(x), word)) < at(0)) & at(at(x) == at(x));
  return at(code) | at(where(at(isNegative), at(8), at(0)));
}

Tile pack(At x, int axis) {
  Call call("pack", x.loc);
  const mlir::Value value = call.value(x);
  const auto along = value ? pairsAxis(call, value, axis) : std::nullopt;
  if (!along)
    return call.poison();
  const Type from = elementOf(value);
  Shape shape = shapeOf(value), first(shape.size(), 0), second = first, steps(shape.size(), 1);
  if (!isFloat(from) || !hasArithmetic(from))
    return call.expected() << "floats with arithmetic, but got " << describe(value);
  if (shape[*along] % 2 != 0)
    return call.expected() << "an even extent along axis " << *along << ", but got " << describe(value);
  shape[*along] /= 2;
  second[*along] = 1;
  steps[*along] = 2;
  const Line at{x.loc};
  const Tile codes = codeOf(at, call.result(call.cast(value, from == f64 ? f64 : f32)));
  const Tile low = extract(at(codes), first, shape, steps), high = extract(at(codes), second, shape, steps);
  return bitcast(at(cast(at(at(low) | at(at(high) << at(4))), u8)), f4e2m1x2);
}

} // namespace kiln
