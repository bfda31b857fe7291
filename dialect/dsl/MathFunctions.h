// Rarer functions of floats: of angles, and logarithms and powers near their zeros. dialect/README.md says how far each
// may be off, and what it is of ±0, infinities and NaN. Tile.h includes this.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// Of an angle in radians, as large as it may be; NaN of an infinity.
Tile sin(At x);
Tile cos(At x);
/// sin(x) / cos(x).
Tile tan(At x);
/// log(1 + x) and e^x − 1, which lose no digits where they are near 0.
Tile log1p(At x);
Tile expm1(At x);

} // namespace kiln
