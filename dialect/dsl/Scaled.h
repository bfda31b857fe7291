// Products of factors whose elements share scales, by blocks of 32 (OCP Microscaling Formats).

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// (scales of a · a) · (scales of b · b) + acc, in f32. a is (…, M, K) and b (…, K, N) of f8e4m3 or f8e5m2, each of its
/// own, or of u8 with two floats of 4 bits (e2m1) in a byte along K, the first in its low half: then they have K / 2
/// there. Scales are u8, (…, M, K / 32) and (…, K / 32, N): s stands for 2^(s − 127), and 255 for NaN. Rank 2 to 4. An
/// element times its scale is rounded to bf16.
Tile dot_scaled(At a, At scaleA, At b, At scaleB, At acc);
/// The same from an accumulator of zeros.
Tile dot_scaled(At a, At scaleA, At b, At scaleB);

} // namespace kiln
