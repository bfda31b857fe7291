// Limits of a launch. With them, sums of a few extents, program numbers and constants cannot overflow in generated
// code.

#pragma once

namespace kiln::abi {

/// The largest extent of a view is 2^extentBits, and the largest extent of a grid 2^gridBits.
inline constexpr int extentBits = 56, gridBits = 40;
/// The largest extent of a view with `tile.fits_32` is 2^smallExtentBits. Differences of sums of two such extents fit
/// in 32 bits.
inline constexpr int smallExtentBits = 30;

} // namespace kiln::abi
