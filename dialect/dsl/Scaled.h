// Matrix products with block scales: 32 elements share a scale (OCP Microscaling Formats, MX).

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// (scaled a) · (scaled b) + acc, in f32; the rank is 2 to 4, like `tl.dot_scaled`.
/// - Operands: a is (…, M, K) and b (…, K, N), each of type f8e4m3, f8e5m2 or u8.
/// - A u8 holds two 4-bit floats (e2m1) along K, the first in its low half; such an operand has extent K / 2.
/// - Scales are u8: (…, M, K / 32) and (…, K / 32, N). s means 2^(s − 127); 255 is NaN.
/// - An element times its scale is rounded to bf16.
Tile dot_scaled(At a, At scaleA, At b, At scaleB, At acc);
/// The product with an accumulator of zeros.
Tile dot_scaled(At a, At scaleA, At b, At scaleB);

} // namespace kiln
