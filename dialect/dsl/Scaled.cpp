// Products of scaled operands: elements and scales are converted to bf16, and their products, which are exact in bf16,
// are multiplied.

#include "dialect/dsl/Scaled.h"
#include "dialect/dsl/Tracer.h"

using namespace mlir;

namespace kiln {

namespace {
constexpr int64_t blockLength = 32;

/// An operand, and its K dimension.
struct Factor {
  Tile elements, scales;
  Shape shape; // with the whole K
  size_t axis = 0;
};
} // namespace

/// Reports an error and returns none if elements and scales do not match.
static std::optional<Factor> factorOf(Call &call, const At &elements, const At &scales, bool isRight) {
  mlir::Value x = call.value(elements), s = call.value(scales);
  if (!x || !s)
    return {};
  const Type type = elementOf(x);
  if (type != f8e4m3 && type != f8e5m2 && type != u8) {
    call.expected() << "factors of f8e4m3 or f8e5m2, or of u8 with two floats of 4 bits in each, but got "
                    << describe(x);
    return {};
  }
  if (elementOf(s) != u8) {
    call.expected() << "scales of u8, but got " << describe(s);
    return {};
  }
  Factor factor{.shape = shapeOf(x)};
  const size_t rank = factor.shape.size();
  if (rank < 2 || rank > 4) {
    call.expected() << "factors of rank 2 to 4, but got " << describe(x);
    return {};
  }
  factor.axis = rank - (isRight ? 2 : 1);
  int64_t &K = factor.shape[factor.axis];
  K *= type == u8 ? 2 : 1;
  if (K % blockLength != 0) {
    call.expected() << "an inner extent that is a multiple of " << blockLength << ", but got " << K;
    return {};
  }
  Shape wanted = factor.shape;
  wanted[factor.axis] = K / blockLength;
  if (shapeOf(s) != wanted) {
    call.expected() << "scales of shape " << textOf(wanted) << ", one for each " << blockLength
                    << " elements of the inner dimension, but got " << textOf(shapeOf(s));
    return {};
  }
  factor.elements = call.result(x);
  factor.scales = call.result(s);
  return factor;
}

/// Repeats each element `count` times along `axis`, adjacent to each other.
static Tile repeated(const Line &at, const Tile &x, size_t axis, int64_t count) {
  Shape shape = x.shape(at.loc), merged = shape;
  merged[axis] *= count;
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis) + 1, count);
  return reshape(at(broadcast(at(unsqueeze(at(x), static_cast<int>(axis) + 1)), shape)), merged);
}

/// 2^(s − 127) as bf16 with exponent bits s; 0 is a denormal, and 255 is NaN.
static Tile powerOf(const Line &at, const Tile &scale) {
  const Tile s = cast(at(scale), i16);
  const Tile bits =
      where(at(at(s) == at(0)), at(0x40), at(where(at(at(s) == at(255)), at(0x7fc0), at(at(s) << at(7)))));
  return bitcast(at(bits), bf16);
}

/// Two 4-bit floats in a byte (sign, two bits of exponent, one of mantissa) as bf16: shifted to bf16's exponent they
/// are the numbers, denormals included, up to the bias.
static Tile unpacked(const Line &at, const Tile &bytes, size_t axis) {
  Shape shape = bytes.shape(at.loc);
  shape[axis] *= 2;
  const Tile both = cast(at(repeated(at, bytes, axis, 2)), i16); // (…, K, …)
  Shape along(shape.size(), 1);
  along[axis] = shape[axis];
  const Tile isHigh = at(at(reshape(at(iota(shape[axis], i32, at.loc)), along)) & at(1)) == at(1);
  const Tile code = where(at(isHigh), at(at(both) >> at(4)), at(both));
  const Tile bits = at(at(at(code) & at(7)) << at(6)) | at(at(at(code) & at(8)) << at(12));
  return at(bitcast(at(bits), bf16)) * at(0x1p126);
}

/// The operand's elements times their scales.
static Tile scaled(const Line &at, const Factor &factor) {
  const bool isPacked = factor.elements.type(at.loc) == u8;
  const Tile elements = isPacked ? unpacked(at, factor.elements, factor.axis) : cast(at(factor.elements), bf16);
  return at(elements) * at(repeated(at, powerOf(at, factor.scales), factor.axis, blockLength));
}

/// Both operands as bf16. Reports an error and returns none if one is wrong.
static std::optional<std::array<Tile, 2>> scaledFactors(const At &a, const At &scaleA, const At &b, const At &scaleB) {
  Call call("dot_scaled", a.loc);
  const auto left = factorOf(call, a, scaleA, false), right = factorOf(call, b, scaleB, true);
  if (!left || !right)
    return {};
  const size_t rank = left->shape.size();
  if (right->shape.size() != rank || left->shape[rank - 1] != right->shape[rank - 2] ||
      !std::equal(left->shape.begin(), left->shape.end() - 2, right->shape.begin())) {
    call.expected() << "leading and inner extents to match, but got " << textOf(left->shape) << " and "
                    << textOf(right->shape);
    return {};
  }
  const Line at{a.loc};
  return std::array<Tile, 2>{scaled(at, *left), scaled(at, *right)};
}

Tile dot_scaled(At a, At scaleA, At b, At scaleB, At acc) {
  const Line at{a.loc};
  const auto factors = scaledFactors(a, scaleA, b, scaleB);
  return factors ? dot(at((*factors)[0]), at((*factors)[1]), acc) : Call("dot_scaled", a.loc).poison();
}

Tile dot_scaled(At a, At scaleA, At b, At scaleB) {
  const Line at{a.loc};
  const auto factors = scaledFactors(a, scaleA, b, scaleB);
  return factors ? dot(at((*factors)[0]), at((*factors)[1])) : Call("dot_scaled", a.loc).poison();
}

} // namespace kiln
