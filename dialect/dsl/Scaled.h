// Matrix products with block scales: 16 or 32 elements share a scale (OCP Microscaling Formats, MX, and NVFP4). Also
// conversions from and to 4-bit floats, which are stored in pairs.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// The scales of an operand of `dot_scaled`; `{}` if it has none.
class Scales {
public:
  Scales() = default;
  Scales(const Tile &tile, Loc loc = here()) : given(At(tile, loc)) {}
  Scales(Tile &&tile, Loc loc = here()) : given(At(std::move(tile), loc)) {}
  Scales(const At &tile) : given(tile) {}
  const std::optional<At> &tile() const { return given; }

private:
  std::optional<At> given;
};

/// (scaled a) · (scaled b) + acc, in f32; the rank is 2 to 4, like `tl.dot_scaled`.
/// - Operands: a is (…, M, K) and b (…, K, N). With scales, each is of type f8e4m3, f8e5m2 or f4e2m1x2, or of u8 with
///   the bytes of f4e2m1x2.
/// - An f4e2m1x2 is two 4-bit floats (e2m1) along K, the first in its low half; such an operand has extent K / 2.
/// - Scales: (…, M, K / L) and (…, K / L, N), where L, the number of elements that share a scale, is 16 or 32.
/// - Scales are f8e8m0, or u8 with its bytes: s means 2^(s − 127), and 255 NaN. An f8e4m3 scale means its value, as in
///   NVFP4.
/// - One operand may have no scales, `{}`; it is of type f8e4m3, f8e5m2 or bf16.
/// - An element times its scale is rounded to bf16.
Tile dot_scaled(At a, Scales scaleA, At b, Scales scaleB, At acc);
/// The product with an accumulator of zeros.
Tile dot_scaled(At a, Scales scaleA, At b, Scales scaleB);

/// Rounds to 4-bit floats and stores neighbours along `axis` in one byte (f4e2m1x2), the first in the low half. The
/// extent is halved. Rounds to nearest even. Numbers beyond ±6 and infinities become ±6; NaN becomes 6. The rank is 1
/// to 4.
Tile pack(At x, int axis = -1);
/// The inverse of pack(): the numbers of pairs (f4e2m1x2) in a float type, exactly. The extent along `axis` is doubled.
/// The rank is 1 to 4.
Tile unpack(At x, Type type, int axis = -1);

} // namespace kiln
